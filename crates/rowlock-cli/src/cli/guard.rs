//! `guard` and `budget`: what may pin the server's horizon, and how many at once.

use std::time::Duration;

use clap::{Args, Subcommand};
use rowlock::Name;
use rowlock::guard::Action;
use rowlock::job::parse_duration;

#[derive(Debug, Args)]
#[command(after_help = "\
While a transaction is open, the server keeps every row that it might still look at, and tables
grow. What pins this horizon: sessions, prepared transactions, replication slots, and standbys with
feedback. PostgreSQL only.
A session is due when its transaction is older than --max-age, or when more of its class run at once
than its budget's max: then the youngest are. rowlock's own sessions and maintenance (autovacuum,
VACUUM, REINDEX, CREATE INDEX, a superuser's pg_dump) are spared, maintenance not with
--include-superusers; prepared transactions, slots and standbys are only named.
observe    it is only told
cancel     the statement that runs is cancelled; a transaction that is idle goes on
terminate  the session is ended

Examples:
  rowlock guard --once
  rowlock guard --class analytics --max-age 10m --action cancel
  rowlock guard --once --json | jq 'select(.transactions > 1000000)'")]
pub struct Guard {
    /// Only this class: a [budget.NAME] of rowlock.toml
    #[arg(long, value_name = "CLASS")]
    pub class: Option<Name>,
    /// How old a transaction may become, like 30s or 10m [default: [guard] max_age, else 5m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub max_age: Option<Duration>,
    /// observe, cancel or terminate [default: [guard] action, else observe]
    #[arg(long, value_name = "ACTION")]
    pub action: Option<Action>,
    /// Maintenance isn't spared [default: [guard] include_superusers]
    #[arg(long)]
    pub include_superusers: bool,
    /// Look once, then end
    #[arg(long, conflicts_with = "every")]
    pub once: bool,
    /// How often to look [default: [guard] every, else 10s]
    #[arg(long, value_name = "DURATION", value_parser = every)]
    pub every: Option<Duration>,
    /// How long to wait for a database that can't be reached yet, before exit code 4 [default:
    /// [worker] wait, else 60s; with --once
    /// not at all]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub wait: Option<Duration>,
}

fn every(text: &str) -> Result<Duration, String> {
    let every = parse_duration(text).map_err(|why| why.to_string())?;
    match every < Duration::from_millis(100) {
        true => Err("it is too short: use 100ms or more".to_owned()),
        false => Ok(every),
    }
}

#[derive(Debug, Subcommand)]
pub enum Budget {
    /// List the workload classes, how many of each may run at once, and who belongs to them
    #[command(after_help = "Example:\n  rowlock budget list --json")]
    List,
    /// Say how many transactions of a class may run at once; every process keeps to it from then on
    #[command(after_help = "\
What runs already goes on. A class that is new is known by the comment /* class:NAME */ in its
statements, unless --application-name or --role say otherwise. `rowlock apply` writes what
rowlock.toml says.

Examples:
  rowlock budget set analytics --max 1
  rowlock budget set reports --max 4 --application-name 'Metabase*'")]
    Set(BudgetSet),
    /// Forget a class: whoever asks for a place in it is refused
    #[command(after_help = "Example:\n  rowlock budget remove analytics")]
    Remove {
        /// The class
        class: Name,
    },
}

#[derive(Debug, Args)]
pub struct BudgetSet {
    /// The class
    pub class: Name,
    /// How many may run at once, 1 to 1000
    #[arg(long, value_name = "N")]
    pub max: u32,
    /// Sessions that call themselves so belong to it; * stands for any text
    #[arg(long, value_name = "NAME")]
    pub application_name: Option<String>,
    /// Sessions of this role belong to it; * stands for any text
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// Statements with the comment /* class:NAME */ belong to it
    #[arg(long, value_name = "NAME")]
    pub tag: Option<Name>,
}
