//! What can be typed.

mod cron;
mod dashboard;
mod doctor;
mod drain;
mod guard;
mod migrate;
mod proof;
mod reconcile;
mod switch;
mod top;

pub use cron::Cron;
pub use dashboard::Dashboard;
pub use doctor::{Doctor, Mend};
pub use drain::{Drain, DrainRun};
pub use guard::{Budget, BudgetSet, Guard};
pub use migrate::{Migrate, Roles};
pub use proof::{
    Bench, BenchPart, BenchPinned, BenchPostgres, BenchRedis, BenchSoak, BenchSqlite, Crash, Demo,
    Verify,
};
pub use reconcile::{Lift, Reconcile};
pub use switch::{Switch, SwitchSet, SwitchTarget};
pub use top::Top;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use jiff::Timestamp;
use rowlock::engine::postgres::Schema;
use rowlock::job::{UniqueUntil, parse_duration};
use rowlock::{JobId, JobState, Name};

const EXAMPLES: &str = "\
Start here:
  rowlock dev                                   a store and a worker with demo kinds
  rowlock enqueue echo '{\"hello\":\"world\"}'      in a second terminal
  rowlock job show 1

Exit codes: 0 ok, 1 failed, 2 usage or bad input, 3 not found, 4 can't open or reach the database,
5 no tables of ours or another schema, 6 findings of doctor, verify, reconcile check or demo crash,
or a missed goal of bench, 7 conflict";

/// Durable background jobs whose truth is a row in your own database.
#[derive(Debug, Parser)]
#[command(name = "rowlock", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Verb,
}

/// Flags of every verb.
#[derive(Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// Where the jobs are: sqlite:PATH, sqlite:PATH?synchronous=normal, or
    /// postgres://USER@HOST/DATABASE [default: the configuration's url, else sqlite:rowlock.db]
    #[arg(long, global = true, env = "ROWLOCK_URL", hide_env_values = true)]
    pub url: Option<String>,
    /// The schema that has the tables, in PostgreSQL [default: the configuration's schema, else
    /// rowlock]
    #[arg(
        long,
        global = true,
        env = "ROWLOCK_SCHEMA",
        hide_env_values = true,
        value_name = "NAME",
        value_parser = schema
    )]
    pub schema: Option<Schema>,
    /// The configuration [default: rowlock.toml in this folder, if it is there]
    #[arg(
        long,
        global = true,
        env = "ROWLOCK_CONFIG",
        hide_env_values = true,
        value_name = "PATH"
    )]
    pub config: Option<PathBuf>,
    /// Write JSON to stdout; lists are one object a line
    #[arg(long, global = true)]
    pub json: bool,
    /// How stderr is written: text for people, or json with one object a line
    #[arg(
        long,
        global = true,
        value_name = "FORM",
        value_enum,
        default_value = "text"
    )]
    pub log: Log,
}

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Log {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Try it out: a store and a worker with the kinds echo, sleep and flaky, in one process
    Dev(Dev),
    /// Write a commented rowlock.toml to start from
    #[command(after_help = "Example:\n  rowlock init && rowlock work")]
    Init,
    /// Write the kinds, pairs, crons, routes and budgets of rowlock.toml to the database, where
    /// everybody reads them
    #[command(after_help = "Example:\n  rowlock apply --config deploy/rowlock.toml")]
    Apply,
    /// Make or look at the tables
    #[command(subcommand)]
    Migrate(Migrate),
    /// Add a job, or many from a file
    Enqueue(Box<Enqueue>),
    /// Run the jobs that rowlock.toml has handlers for
    Work(Work),
    /// Look at jobs and change them
    #[command(subcommand)]
    Job(Job),
    /// Look at queues, pause and resume them
    #[command(subcommand)]
    Queue(Queue),
    /// Stop a kind, a queue or a pair at once, for everybody, and let it go on
    #[command(subcommand)]
    Switch(Switch),
    /// Look at the pairs, which turn rows that need work into jobs, and run, check and drill them
    #[command(subcommand)]
    Reconcile(Reconcile),
    /// Look at what recurs, run it now, stop it
    #[command(subcommand)]
    Cron(Cron),
    /// Send jobs on to Redis or Sidekiq, look at the routes, give one up
    #[command(subcommand)]
    Drain(Drain),
    /// Show what keeps the server from removing old rows, and by policy end it
    Guard(Guard),
    /// Say how many transactions of a workload class may run at once
    #[command(subcommand)]
    Budget(Budget),
    /// Count jobs by state and queue
    #[command(after_help = "Example:\n  rowlock stats --json | jq .queues.default.pending")]
    Stats,
    /// Serve pages to watch the store and step in, and its JSON API
    Dashboard(Dashboard),
    /// Watch queues, workers, jobs, pairs, routes and health on the terminal, and step in
    Top(Top),
    /// Look for what is wrong or about to go wrong, and name the command that mends it
    Doctor(Doctor),
    /// Check that nothing was lost and nothing ran that must not, from two logs and the store
    Verify(Verify),
    /// See for yourself, in a store of its own that is gone at the end
    #[command(subcommand)]
    Demo(Demo),
    /// Measure this machine: rowlock, a bare loop of the same SQL, and a textbook's queue
    #[command(subcommand)]
    Bench(Bench),
    /// Print what makes a shell complete rowlock's commands
    #[command(after_help = "\
Examples:
  rowlock completions bash > ~/.local/share/bash-completion/completions/rowlock
  rowlock completions zsh > ~/.zfunc/_rowlock
  rowlock completions fish > ~/.config/fish/completions/rowlock.fish")]
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Write the manual: one page per verb into a folder, or the first one to stdout
    #[command(after_help = "\
Examples:
  rowlock man | man -l -
  rowlock man ~/.local/share/man/man1")]
    Man {
        /// The folder; it is made if it isn't there
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
A SQLite file is made if it isn't there; in PostgreSQL, `migrate up` comes first. The handlers and
the drains of rowlock.toml run too. Payloads of the demo kinds:
  echo   anything: it is written to stdout
  sleep  {\"for\":\"2s\"}
  flaky  {\"failures\":2}   fails twice, a second apart, then succeeds

Example:
  rowlock dev --url sqlite:/tmp/try.db")]
pub struct Dev {
    /// Serve the dashboard, the API, /livez, /readyz and /metrics here [default: [dashboard] bind,
    /// else 127.0.0.1:7878, if it is free]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    #[command(flatten)]
    pub volume: Volume,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, Args)]
pub struct Volume {
    /// Log every job
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Log warnings and errors only
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  rowlock enqueue echo '{\"hello\":\"world\"}'
  rowlock enqueue send_email '{\"to\":\"ada@example.com\"}' --in 10m --unique welcome:ada
  rowlock enqueue --from jobs.ndjson

--from reads one object a line: kind, and optionally payload, queue, priority, scheduled_at (RFC
3339), max_attempts, unique_key, unique_until, tags:
  {\"kind\":\"send_email\",\"payload\":{\"to\":\"ada@example.com\"},\"unique_key\":\"welcome:ada\"}
It stops at the first bad line; the lines before it are in, and the message says how to go on.")]
pub struct Enqueue {
    /// What has to be done
    #[arg(required_unless_present = "from")]
    pub kind: Option<Name>,
    /// The data for it [default: {}]
    #[arg(value_name = "JSON", allow_negative_numbers = true)]
    pub payload: Option<String>,
    /// Where it waits [default: as its kind says]
    #[arg(long)]
    pub queue: Option<Name>,
    /// Higher goes first, -32768 to 32767 [default: as its kind says]
    #[arg(long, allow_hyphen_values = true)]
    pub priority: Option<i16>,
    /// Not before this has passed, like 30s, 10m, 2h or 7d
    #[arg(long = "in", value_name = "DURATION", value_parser = parse_duration, conflicts_with = "at")]
    pub delay: Option<Duration>,
    /// Not before this moment, in RFC 3339, like 2030-01-31T09:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub at: Option<Timestamp>,
    /// How many attempts it may use [default: as its kind says]
    #[arg(long, value_name = "N")]
    pub max_attempts: Option<u32>,
    /// At most one live job of this kind with this key
    #[arg(long, value_name = "KEY")]
    pub unique: Option<String>,
    /// How long the key stays taken: start or finished [default: as its kind says]
    #[arg(long, value_name = "WHEN")]
    pub unique_until: Option<UniqueUntil>,
    /// A label for finding it; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<Name>,
    /// The W3C trace context that whoever runs it gets [default: the environment's TRACEPARENT]
    #[arg(long, value_name = "CONTEXT")]
    pub traceparent: Option<String>,
    /// Refuse a kind that no worker has declared yet
    #[arg(long)]
    pub known: bool,
    /// Add many: one JSON object a line, from a file or from stdin (-)
    #[arg(long, value_name = "FILE|-", conflicts_with_all = [
        "kind", "payload", "queue", "priority", "delay", "at", "max_attempts", "unique", "unique_until", "tags",
    ])]
    pub from: Option<PathBuf>,
    /// Write down here, for `verify`, what we were told
    #[arg(long, value_name = "FILE")]
    pub told: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
SIGTERM or Ctrl-C: takes no more jobs and lets the running ones finish within [worker] grace; a
second one gives them back at once.
With --from no database is opened: the jobs come from Redis, where `rowlock drain run` puts them
and fetches what became of them. Without it, jobs that go by a route are left alone.

Examples:
  rowlock work
  rowlock work --queue mail --queue default --concurrency 4
  rowlock work --listen 127.0.0.1:9090
  rowlock work --from redis://127.0.0.1:6379/0
  rowlock work --once")]
pub struct Work {
    /// Take jobs from here, which a drain fills, instead of a database: redis://HOST:PORT/DB
    #[arg(
        long,
        value_name = "SINK",
        env = "ROWLOCK_FROM",
        hide_env_values = true
    )]
    pub from: Option<String>,
    /// Only jobs of this queue; may be repeated [default: every queue]
    #[arg(long = "queue", value_name = "QUEUE")]
    pub queues: Vec<Name>,
    /// How many jobs run at once [default: [worker] concurrency, else 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub concurrency: Option<u32>,
    /// End when nothing is due any more
    #[arg(long)]
    pub once: bool,
    /// How long to wait for a database (or a Redis) that can't be reached yet, before exit code 4
    /// [default: [worker] wait, else 60s; with --once not at all]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub wait: Option<Duration>,
    /// Serve /livez, /readyz and /metrics here, and nothing else, like 0.0.0.0:9090
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Write down here, for `verify`, what is run; several workers may share the file
    #[arg(long, value_name = "FILE")]
    pub ran: Option<PathBuf>,
    /// End at once when stdin closes or this process is gone, which started us
    #[arg(long, hide = true, value_name = "PID")]
    pub leashed: Option<i32>,
    #[command(flatten)]
    pub volume: Volume,
}

#[derive(Debug, Subcommand)]
pub enum Job {
    /// Show one job
    #[command(after_help = "Example:\n  rowlock job show 1")]
    Show {
        /// Its number
        id: JobId,
    },
    /// List jobs by rising number
    #[command(after_help = "\
Examples:
  rowlock job list --state failed --since 2h
  rowlock job list --kind send_email --limit 500 --after 1000 --json")]
    List(Which),
    /// Give ended jobs all their attempts again
    #[command(after_help = "\
Without numbers and --state only failed jobs are meant, also by --all.

Examples:
  rowlock job retry 5 6 7
  rowlock job retry --kind send_email --since 2h")]
    Retry(Change),
    /// Call off waiting jobs, and ask the workers of running ones to stop
    #[command(after_help = "\
With a filter, jobs that have ended already are left alone.

Examples:
  rowlock job cancel 5
  rowlock job cancel --queue mail --tag spring_campaign")]
    Cancel(Change),
    /// Remove jobs that aren't running
    #[command(after_help = "\
Examples:
  rowlock job delete 5
  rowlock job delete --state cancelled --until 7d")]
    Delete(Change),
}

/// Which jobs are meant.
#[derive(Debug, Args)]
pub struct Which {
    /// These jobs
    #[arg(value_name = "ID", conflicts_with_all = ["state", "queue", "kind", "key", "tag", "since", "until", "limit", "after"])]
    pub ids: Vec<JobId>,
    /// In this state: pending, processing, completed, failed or cancelled
    #[arg(long)]
    pub state: Option<JobState>,
    /// In this queue
    #[arg(long)]
    pub queue: Option<Name>,
    /// Of this kind
    #[arg(long)]
    pub kind: Option<Name>,
    /// With this unique key
    #[arg(long)]
    pub key: Option<String>,
    /// With this label
    #[arg(long)]
    pub tag: Option<Name>,
    /// Added at or after: RFC 3339, or how long ago, like 2h
    #[arg(long, value_name = "TIME", value_parser = when)]
    pub since: Option<When>,
    /// Added before: RFC 3339, or how long ago, like 2h
    #[arg(long, value_name = "TIME", value_parser = when)]
    pub until: Option<When>,
    /// At most so many [default: 50 for list, otherwise all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Only numbers above this one
    #[arg(long, value_name = "ID")]
    pub after: Option<JobId>,
}

impl Which {
    /// Whether anything restricts it.
    pub fn is_filter(&self) -> bool {
        self.state.is_some()
            || self.queue.is_some()
            || self.kind.is_some()
            || self.key.is_some()
            || self.tag.is_some()
            || self.since.is_some()
            || self.until.is_some()
            || self.after.is_some()
    }
}

/// Which jobs are to be changed.
#[derive(Debug, Args)]
pub struct Change {
    #[command(flatten)]
    pub which: Which,
    /// Every job there is; needs --yes
    #[arg(long, conflicts_with = "ids")]
    pub all: bool,
    /// Yes, really every job
    #[arg(long, requires = "all")]
    pub yes: bool,
    /// Write down here, for `verify`, what was retried, cancelled or deleted
    #[arg(long, value_name = "FILE")]
    pub told: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Queue {
    /// List the queues that have jobs or settings
    #[command(after_help = "Example:\n  rowlock queue list")]
    List,
    /// Stop taking jobs from a queue; what runs goes on
    #[command(after_help = "Example:\n  rowlock queue pause mail --reason 'provider is down'")]
    Pause {
        /// The queue
        name: Name,
        /// Why, for whoever looks at it next
        #[arg(long)]
        reason: Option<String>,
    },
    /// Take jobs from a paused queue again
    #[command(after_help = "Example:\n  rowlock queue resume mail")]
    Resume {
        /// The queue
        name: Name,
    },
}

/// A moment, or how long ago it was.
#[derive(Debug, Clone, Copy)]
pub enum When {
    At(Timestamp),
    Ago(Duration),
}

impl When {
    /// The moment, seen from `now`.
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(time) => now.saturating_sub(time).unwrap_or(Timestamp::MIN),
        }
    }
}

fn schema(text: &str) -> Result<Schema, String> {
    Schema::new(text).map_err(|why| why.to_string())
}

fn when(text: &str) -> Result<When, String> {
    match parse_duration(text) {
        Ok(ago) => Ok(When::Ago(ago)),
        Err(_) => text.parse().map(When::At).map_err(|_| {
            "write a time like 2030-01-31T09:00:00Z, or how long ago, like 2h".to_owned()
        }),
    }
}

fn moment(text: &str) -> Result<Timestamp, String> {
    text.parse()
        .map_err(|_| "write it in RFC 3339, like 2030-01-31T09:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_sound() {
        super::Cli::command().debug_assert();
    }
}
