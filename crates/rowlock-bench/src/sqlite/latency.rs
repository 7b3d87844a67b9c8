//! How soon a job starts: from the return of its enqueue, after the commit, to its handler's entry.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rowlock::Clock;

use super::idle::Child;
use super::ours;
use super::part::{Part, read};
use crate::starts::{FIRST, Pace, delays, in_process, measurement, timed};
use crate::{Bound, Measurement, Place, Progress, Size};

/// Where producer and worker are, and what the measurement is called.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start {
    /// In one process.
    InProcess(&'static str),
    /// In processes of their own, at a hundred jobs a second.
    Across(&'static str),
    /// The same, with a worker that has become idle before each job.
    Rare(&'static str),
}

/// Longer than any round takes.
const PATIENCE: Duration = Duration::from_secs(300);

impl Start {
    /// Measures starts in copies of a store.
    pub(super) async fn measure(
        self,
        size: &Size,
        place: &Place,
        store: &Path,
        say: Progress<'_>,
    ) -> Result<Measurement> {
        let (step, jobs, most) = match self {
            Self::InProcess(step) => (step, size.starts, 1.0),
            Self::Across(step) => (step, size.starts, 25.0),
            Self::Rare(step) => (step, size.rare_starts, 25.0),
        };
        let mut rounds = Vec::new();
        for round in 1..=size.rounds {
            say(&format!("{step}, round {round} of {}", size.rounds));
            let path = place.copy(store, "latency.db")?;
            let measuring = async {
                match self {
                    Self::InProcess(_) => {
                        let rowlock = ours::open(&path)?;
                        in_process(&rowlock, rowlock.clone(), jobs).await
                    }
                    Self::Across(_) => across_processes(&path, Pace::Often(jobs)).await,
                    Self::Rare(_) => across_processes(&path, Pace::Rarely(jobs)).await,
                }
            };
            let measured = Clock::system().timeout(PATIENCE, measuring).await;
            rounds.push(measured.context("the jobs don't all start")??);
        }
        Ok(measurement(step, jobs, &rounds).goal("ours", Bound::AtMost(most)))
    }
}

async fn across_processes(path: &Path, pace: Pace) -> Result<Vec<f64>> {
    ours::open(path)?.enqueue(&timed(FIRST)?).await?;
    let mut worker = Child::start(Part::Worker, path)?;
    worker.ready()?;
    let producer = Child::start(Part::Producer(pace), path)?;
    let returned = read(&producer.end()?)?;
    settled(path).await?;
    delays(&returned, &read(&worker.end()?)?)
}

/// Waits until every job has ended.
async fn settled(path: &Path) -> Result<()> {
    let rowlock = ours::open(path)?;
    loop {
        let counts = rowlock.operate().stats().await?.total;
        if counts.pending + counts.processing == 0 {
            return Ok(());
        }
        rowlock.clock().sleep(Duration::from_millis(10)).await;
    }
}
