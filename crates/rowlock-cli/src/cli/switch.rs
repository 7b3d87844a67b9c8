//! `switch`: what an operator stops, and lets go on.

use std::str::FromStr;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use jiff::Timestamp;
use rowlock::Name;
use rowlock::job::parse_duration;
use rowlock::switch::{Mode, Target};

use super::moment;

#[derive(Debug, Subcommand)]
pub enum Switch {
    /// Stop a kind, a queue or a pair
    Set(SwitchSet),
    /// Let it go on
    #[command(after_help = "Example:\n  rowlock switch clear kind:send_email")]
    Clear {
        /// kind:NAME, queue:NAME or pair:NAME
        target: SwitchTarget,
    },
    /// List the switches that are on
    #[command(after_help = "Example:\n  rowlock switch list --json")]
    List,
}

#[derive(Debug, Args)]
#[command(after_help = "\
reject  an enqueue is answered `rejected` and nothing is stored. Safe for a kind that a pair derives
        from rows: a later tick finds them. For any other the jobs are lost: it needs --lose-jobs
hold    an enqueue is stored, and not run until the switch is cleared or its time is over
pause   nothing is run; a pair that is paused doesn't look for rows

Examples:
  rowlock switch set queue:mail pause --reason 'provider is down' --for 2h
  rowlock switch set kind:send_email hold --reason 'wrong template'
  rowlock switch set pair:create_database pause --reason migration --until 2030-01-31T09:00:00Z")]
#[command(group = ArgGroup::new("end"))]
pub struct SwitchSet {
    /// kind:NAME, queue:NAME or pair:NAME
    pub target: SwitchTarget,
    /// reject, hold or pause
    pub mode: Mode,
    /// Why, for whoever looks at it next
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub reason: String,
    /// It clears itself after this time, like 30m or 2h
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, group = "end")]
    pub time: Option<Duration>,
    /// It clears itself then, in RFC 3339, like 2030-01-31T09:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment, group = "end")]
    pub until: Option<Timestamp>,
    /// Who says so
    #[arg(long, value_name = "WHO", env = "USER", hide_env_values = true)]
    pub by: Option<String>,
    /// Yes, reject what nobody will enqueue again
    #[arg(long)]
    pub lose_jobs: bool,
}

/// What a switch is about, as it is typed.
#[derive(Debug, Clone)]
pub struct SwitchTarget {
    pub target: Target,
    pub name: Name,
}

impl std::fmt::Display for SwitchTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.target, self.name)
    }
}

impl FromStr for SwitchTarget {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "write kind:NAME, queue:NAME or pair:NAME".to_owned();
        let (word, name) = text.split_once(':').ok_or_else(form)?;
        let target = [Target::Kind, Target::Queue, Target::Pair]
            .into_iter()
            .find(|target| target.as_str() == word)
            .ok_or_else(form)?;
        let name = Name::new(name).map_err(|why| why.to_string())?;
        Ok(Self { target, name })
    }
}

fn reason(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("say why, for whoever looks at it next".to_owned()),
        text => Ok(text.to_owned()),
    }
}
