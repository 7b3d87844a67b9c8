//! The PostgreSQL engine: every load against the bare statements and against the queue that textbooks teach.
//!
//! All tables are in a schema of the run's own, in the database that is named, with its durability on every
//! side.

mod aside;
mod claims;
mod connections;
mod drain;
mod enqueue;
mod history;
mod idle;
mod ours;
pub mod pinned;
mod place;
mod raw;
mod start;
mod textbook;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rowlock::engine::postgres::drop_schema;

use crate::databases::Databases;
use crate::server::Server;
use crate::{Measurement, Progress};

const KIND: &str = "noop";
/// What every job of a throughput load carries.
const PAYLOAD: &str = r#"{"to":"ada@example.com","subject":"hello"}"#;
/// Jobs in one call of a bulk enqueue, and in a claim of the bare loop.
const BATCH: usize = 1_000;

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Part {
    Enqueue,
    Drain,
    Start,
    Idle,
    History,
}

/// All of them, in the order of a job's journey.
pub const PARTS: [Part; 5] = [
    Part::Enqueue,
    Part::Drain,
    Part::Start,
    Part::Idle,
    Part::History,
];

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// How often ours, limit and canonical take turns.
    pub rounds: usize,
    /// Jobs enqueued by one connection.
    pub by_one: usize,
    /// Jobs enqueued by 16 connections.
    pub by_some: usize,
    /// Jobs enqueued in batches.
    pub bulk: usize,
    /// Jobs waiting before a drain.
    pub backlog: usize,
    /// How long the canonical queue may drain.
    pub patience: Duration,
    /// Jobs whose start is timed, at a hundred a second.
    pub starts: usize,
    /// How long an idle worker is watched.
    pub idle: Duration,
    /// Finished jobs behind.
    pub finished: usize,
    /// How often two states of ours take turns, and how many claims and looks each makes.
    pub alternations: usize,
    /// See there.
    pub looks: usize,
}

impl Size {
    /// For figures.
    #[must_use]
    pub fn full() -> Self {
        Self {
            rounds: 5,
            by_one: 3_000,
            by_some: 30_000,
            bulk: 200_000,
            backlog: 200_000,
            patience: Duration::from_secs(3),
            starts: 500,
            idle: Duration::from_secs(60),
            finished: 10_000_000,
            alternations: 5,
            looks: 200,
        }
    }

    /// For shape and counts: its times mean nothing.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            rounds: 1,
            by_one: 16,
            by_some: 64,
            bulk: 2_000,
            backlog: 2_500,
            patience: Duration::from_millis(50),
            starts: 10,
            idle: Duration::from_millis(100),
            finished: 1_000,
            alternations: 1,
            looks: 3,
        }
    }
}

/// Measures these parts on a server. Nothing stays of it, also when `stop` comes first:
/// the answer is nothing then.
///
/// # Errors
/// When the server can't be used, or a load didn't handle exactly the jobs it should.
pub async fn run(
    size: Size,
    parts: &[Part],
    url: &str,
    say: Progress<'_>,
    stop: impl Future<Output = ()>,
) -> Result<Option<Vec<Measurement>>> {
    let (server, behind) = (Server::new(url)?, Server::new(url)?);
    let measured = tokio::select! {
        measured = measure(&size, parts, &server, &behind, say) => measured.map(Some),
        () = stop => Ok(None),
    };
    // Whatever happened, nothing of it stays.
    for server in [server, behind] {
        let left_over = || format!("the schema {} is left over, drop it", server.schema);
        drop_schema(&server.address).await.with_context(left_over)?;
    }
    measured
}

/// Measures under transactions that stay open, in databases of the run's own, which are gone at the end.
///
/// # Errors
/// As [`run`], or when this role can't make databases.
pub async fn run_pinned(
    size: pinned::Size,
    steps: &[pinned::Step],
    url: &str,
    say: Progress<'_>,
    stop: impl Future<Output = ()>,
) -> Result<Option<Vec<Measurement>>> {
    let databases = Databases::new(&Server::new(url)?)?;
    let measured = tokio::select! {
        measured = measure_pinned(&size, steps, &databases, say) => measured.map(Some),
        () = stop => Ok(None),
    };
    // Whatever happened, nothing of it stays.
    databases.drop().await?;
    measured
}

async fn measure_pinned(
    size: &pinned::Size,
    steps: &[pinned::Step],
    databases: &Databases,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    let mut all = Vec::new();
    for (step, load) in pinned::LOADS {
        if steps.contains(&step) {
            make(databases).await?;
            all.push(pinned::measure(load, size, databases, say).await?);
        }
    }
    if size.aside > 0 && steps.contains(&pinned::Step::Aside) {
        make(databases).await?;
        all.push(aside::measure(size, databases, say).await?);
    }
    let named = |made| Measurement {
        bench: "postgres_pinned",
        ..made
    };
    Ok(all.into_iter().map(named).collect())
}

/// Both databases, without anything in them.
async fn make(databases: &Databases) -> Result<()> {
    databases.drop().await?;
    ensure!(
        databases.make().await?,
        "this role can't make databases, which it needs two of (ALTER ROLE ... CREATEDB)"
    );
    Ok(())
}

async fn measure(
    size: &Size,
    parts: &[Part],
    server: &Server,
    behind: &Server,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    let mut all = Vec::new();
    for part in parts {
        match part {
            Part::Enqueue => all.extend(enqueue::measure(size, server, say).await?),
            Part::Drain => all.extend(drain::measure(size, server, say).await?),
            Part::Start => all.push(start::measure(size, server, say).await?),
            Part::Idle => all.push(idle::measure(size, server, say).await?),
            Part::History => all.extend(history::measure(size, behind, server, say).await?),
        }
    }
    let named = |made| Measurement {
        bench: "postgres",
        ..made
    };
    Ok(all.into_iter().map(named).collect())
}
