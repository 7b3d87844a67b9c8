//! `drain`: the routes, by which jobs go on to Redis or Sidekiq.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use rowlock::Name;
use rowlock::job::parse_duration;

use super::Volume;

#[derive(Debug, Subcommand)]
pub enum Drain {
    /// Send due jobs on, and apply what becomes of them, until SIGTERM or Ctrl-C
    Run(DrainRun),
    /// List the routes: what waits, what was sent, who drains, and how full Redis is
    #[command(after_help = "\
UNSENT is what is due and not sent yet, LAG how long the oldest of it has been due, SENT what Redis
has and hasn't answered for. READY to PUSHED are Redis' own numbers.

Examples:
  rowlock drain status
  rowlock drain status --json | jq 'select(.lag_seconds > 60) | .route'")]
    Status,
    /// Give a route up: its jobs go directly again, and what it still holds goes back
    #[command(after_help = "\
For a Redis that is gone for good, or that nobody wants any more. What a worker of it is running
just then may run again. If Redis is still there, leave nothing to be run twice: write kinds = []
into the [[drain]], `rowlock apply`, let `rowlock drain run` go on until `rowlock drain status` says
SENT 0, and recall the route then.

Example:
  rowlock drain recall redis")]
    Recall {
        /// The route
        route: Name,
        /// Don't ask, also when a drain still runs
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Any number may run side by side; one that dies is missed by nobody. Nothing is lost if Redis is:
what it doesn't hold any more is found by asking, and sent again. The URL of a route may also come
from the environment, so that its password needn't be in the file: ROWLOCK_DRAIN_REDIS for the route
redis.

Examples:
  rowlock drain run
  rowlock drain run redis --listen 127.0.0.1:9091")]
pub struct DrainRun {
    /// These routes [default: every [[drain]] of rowlock.toml]
    #[arg(value_name = "ROUTE")]
    pub routes: Vec<Name>,
    /// How long to wait for a database that can't be reached yet, before exit code 4 [default:
    /// [worker] wait, else 60s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub wait: Option<Duration>,
    /// Serve /livez, /readyz and /metrics here, and nothing else, like 0.0.0.0:9091
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Write down here, for `verify`, which answers were accepted; workers may share the file
    #[arg(long, value_name = "FILE")]
    pub ran: Option<PathBuf>,
    #[command(flatten)]
    pub volume: Volume,
}
