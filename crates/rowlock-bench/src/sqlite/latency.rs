//! How soon a job starts: from the return of its enqueue, after the commit, to its handler's entry.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rowlock::Clock;
use rowlock::run::Stopper;
use tokio::sync::mpsc;

use super::idle::Child;
use super::ours;
use super::part::{FIRST, Pace, Part, Times, produce, read, timed, work};
use crate::measurement::{median, percentile};
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
                    Self::InProcess(_) => in_process(&path, jobs).await,
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

async fn in_process(path: &Path, jobs: usize) -> Result<Vec<f64>> {
    let rowlock = ours::open(path)?;
    rowlock.enqueue(&timed(FIRST)?).await?;
    let (begun, mut beginnings) = mpsc::unbounded_channel();
    let stopper = Arc::new(Stopper::default());
    let working = work(rowlock.clone(), &stopper, move |n| {
        // The producer reads until every job has begun.
        let _ = begun.send(n);
    });
    let asking = async {
        beginnings.recv().await.context("the worker ended")?;
        let returned = produce(&rowlock, Pace::Often(jobs)).await?;
        for _ in 0..jobs {
            beginnings.recv().await.context("the worker ended")?;
        }
        stopper.ask();
        anyhow::Ok(returned)
    };
    let (entered, returned) = tokio::join!(working, asking);
    delays(&returned?, &entered?)
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

/// In milliseconds; a handler that was entered before the enqueue returned counts as zero.
fn delays(returned: &Times, entered: &Times) -> Result<Vec<f64>> {
    let entered: BTreeMap<_, _> = entered.iter().copied().collect();
    ensure!(
        entered.len() == returned.len(),
        "{} of {} jobs were started",
        entered.len(),
        returned.len()
    );
    returned
        .iter()
        .map(|(n, at)| {
            let entry = entered
                .get(n)
                .with_context(|| format!("job {n} was not started"))?;
            Ok(entry.saturating_sub(*at).as_secs_f64() * 1_000.0)
        })
        .collect()
}

fn measurement(step: &'static str, jobs: usize, rounds: &[Vec<f64>]) -> Measurement {
    let of = |part| -> Vec<f64> {
        rounds
            .iter()
            .map(|delays| percentile(delays, part))
            .collect()
    };
    Measurement::new(step, "ms", jobs)
        .ours(&of(0.5))
        .with("p95", median(&of(0.95)))
        .with("p99", median(&of(0.99)))
}
