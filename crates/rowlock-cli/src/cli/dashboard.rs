//! What `dashboard` takes.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use rowlock::job::parse_duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Without tokens it listens on this machine only, and whoever reaches it may do everything. Tokens come
from the file that token_file of [dashboard] names, a line each (reader TOKEN or operator TOKEN), or
from ROWLOCK_DASHBOARD_TOKEN (operator) and ROWLOCK_DASHBOARD_READER_TOKEN. With any of them every
request needs one, as Bearer or as the password of Basic (a browser asks for it, whatever the name),
but for /livez, /readyz and /metrics; token_file of [metrics] or ROWLOCK_METRICS_TOKEN asks for one
at /metrics too. Other machines call it by a name: hosts of [dashboard] says
which are right. The pages are in docs/dashboard.md, the API in docs/api.md.

Examples:
  rowlock dashboard
  rowlock dashboard --read-only --url postgres://localhost/app
  ROWLOCK_DASHBOARD_TOKEN=$(cat token) rowlock dashboard --bind 0.0.0.0:7878")]
pub struct Dashboard {
    /// Serve the pages and the API here, beside /livez, /readyz and /metrics [default: [dashboard]
    /// bind, else 127.0.0.1:7878]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub bind: Option<SocketAddr>,
    /// How long to wait for a database that can't be reached yet, before exit code 4 [default:
    /// [worker] wait, else 60s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub wait: Option<Duration>,
    /// Change nothing, whoever asks
    #[arg(long)]
    pub read_only: bool,
}
