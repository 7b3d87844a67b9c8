//! The pages of the dashboard: whether each stays fast behind millions of rows, on a server and in a file, and
//! what one that is open costs the server.
//!
//! In schemas and a folder of the run's own. The dashboard is this binary again, in a process of its own.

mod file;
mod open;
mod server;

use std::time::Duration;

use anyhow::{Context, Result};
use rowlock::engine::postgres::drop_schema;
use rowlock::{Cron, Kind, Name, Pair, Rowlock};

use crate::dashboard::Turns;
use crate::server::Server;
use crate::{Measurement, Place, Progress};

const KIND: &str = "noop";
/// What goes by a route, and a tenth of what waits is of it.
const ROUTED: &str = "send_email";
/// What a pair makes of rows.
const PAIRED: &str = "provision";
const PAYLOAD: &str = r#"{"to":"ada@example.com","subject":"hello"}"#;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Finished and pending jobs of the large store on a server.
    pub server: (usize, usize),
    /// The same of the large file.
    pub file: (usize, usize),
    /// The same of the small ones.
    pub small: (usize, usize),
    /// How often many and few take turns, and how often each page is asked for in a turn.
    pub passes: usize,
    /// See there.
    pub asks: usize,
    /// How long each page is open while the server's queries are counted.
    pub open: Duration,
}

impl Size {
    /// For figures.
    #[must_use]
    pub fn full() -> Self {
        Self {
            server: (5_000_000, 1_000_000),
            file: (800_000, 200_000),
            small: (833, 167),
            passes: 5,
            asks: 60,
            open: Duration::from_secs(30),
        }
    }

    /// For shape and counts: its times mean nothing.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            server: (2_000, 500),
            file: (2_000, 500),
            small: (50, 10),
            passes: 1,
            asks: 2,
            open: Duration::from_millis(500),
        }
    }

    fn turns(&self, (finished, pending): (usize, usize)) -> Turns {
        Turns {
            passes: self.passes,
            asks: self.asks,
            rows: finished + pending,
        }
    }
}

/// Measures on a server and in a folder. Nothing stays of it, also when `stop` comes first: the answer is nothing
/// then.
///
/// # Errors
/// When the server can't be used, or a page was answered with an error.
pub async fn run(
    size: Size,
    place: &Place,
    url: &str,
    say: Progress<'_>,
    stop: impl Future<Output = ()>,
) -> Result<Option<Vec<Measurement>>> {
    let (large, small) = (Server::new(url)?, Server::new(url)?);
    let measuring = async {
        let mut all = server::measure(&size, &large, &small, say).await?;
        all.extend(file::measure(&size, place, say).await?);
        anyhow::Ok(all)
    };
    let measured = tokio::select! {
        measured = measuring => measured.map(Some),
        () = stop => Ok(None),
    };
    for server in [&large, &small] {
        let left_over = || format!("the schema {} is left over, drop it", server.schema);
        drop_schema(&server.address).await.with_context(left_over)?;
    }
    let named = |made| Measurement {
        bench: "pages",
        ..made
    };
    Ok(measured?.map(|all| all.into_iter().map(named).collect()))
}

/// One of everything that has a page.
async fn furnish(rowlock: &Rowlock, rows: &str) -> Result<()> {
    let key = vec![Name::new("id")?];
    let mut paired = Kind::new(PAIRED)?;
    paired.key.clone_from(&key);
    let kinds = [Kind::new(KIND)?, Kind::new(ROUTED)?, paired];
    rowlock.operate().apply(&kinds).await?;
    let schedule = rowlock.schedule();
    let query = format!("SELECT id FROM {rows}");
    let pair = Pair::new(Name::new(PAIRED)?, key, query);
    schedule.declare_pairs(&[pair], true).await?;
    let cron = Cron::new(Name::new("nightly")?, Name::new(KIND)?, "0 3 * * *");
    let next = rowlock.clock().now();
    schedule.declare_crons(&[(cron, next)], true).await?;
    let (route, kinds) = (Name::new("redis")?, [Name::new(ROUTED)?]);
    let routes = rowlock.routes();
    routes.declare_route(&route, &kinds, &[], true).await?;
    Ok(())
}

/// Every page, with what it is called on a server and over a file. The number of a job that has ended is 7.
const PAGES: [(&str, &str, &str); 21] = [
    ("overview", "overview_sqlite", "/"),
    ("jobs", "jobs_sqlite", "/jobs"),
    (
        "jobs_pending",
        "jobs_pending_sqlite",
        "/jobs?state=pending&queue=default&kind=noop",
    ),
    ("jobs_failed", "jobs_failed_sqlite", "/jobs?state=failed"),
    (
        "jobs_of_nobody",
        "jobs_of_nobody_sqlite",
        "/jobs?kind=nobody",
    ),
    ("jobs_by_key", "jobs_by_key_sqlite", "/jobs?key=nobody"),
    ("jobs_by_tag", "jobs_by_tag_sqlite", "/jobs?tag=nobody"),
    ("job", "job_sqlite", "/jobs/7"),
    ("job_missing", "job_missing_sqlite", "/jobs/999999999"),
    ("new_job", "new_job_sqlite", "/jobs/new"),
    (
        "confirm_retry",
        "confirm_retry_sqlite",
        "/jobs/bulk?which=filter&action=retry&state=failed",
    ),
    (
        "confirm_cancel",
        "confirm_cancel_sqlite",
        "/jobs/bulk?which=filter&action=cancel&state=pending",
    ),
    (
        "confirm_by_kind",
        "confirm_by_kind_sqlite",
        "/jobs/bulk?which=filter&action=delete&kind=noop",
    ),
    (
        "confirm_delete",
        "confirm_delete_sqlite",
        "/jobs/bulk?action=delete&id=7",
    ),
    ("queues", "queues_sqlite", "/queues"),
    ("workers", "workers_sqlite", "/workers"),
    ("pairs", "pairs_sqlite", "/pairs"),
    ("pair", "pair_sqlite", "/pairs/provision"),
    ("drains", "drains_sqlite", "/drains"),
    ("switches", "switches_sqlite", "/switches"),
    ("health", "health_sqlite", "/health"),
];
