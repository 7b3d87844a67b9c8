//! Our side: the library as an application uses it, the worker as `rowlock work` starts it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use rowlock::engine::sqlite::{Address, migrate_up};
use rowlock::run::task::Tasks;
use rowlock::run::{Builtin, Options, Runner};
use rowlock::{Clock, Kind, NewJob, Payload, Rowlock, Worker};

use super::connect::commits;
use super::{KIND, PAYLOAD};
use crate::stopwatch::{Stopwatch, as_f64};

/// How many jobs the worker runs at once: a no-op job costs a slot next to nothing.
pub(super) const CONCURRENCY: usize = 64;
/// Jobs in one call of a bulk enqueue.
pub(super) const BATCH: usize = 1_000;

/// How fast, and how many jobs shared a commit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) rate: f64,
    pub(super) per_commit: f64,
}

/// A new store.
pub(crate) fn create(path: &Path) -> Result<Rowlock> {
    migrate_up(&Address::parse(&url(path))?, &Clock::system())?;
    open(path)
}

pub(super) fn open(path: &Path) -> Result<Rowlock> {
    Ok(Rowlock::open(&url(path))?)
}

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

pub(super) fn job() -> Result<NewJob> {
    Ok(NewJob::new(KIND)?.payload(Payload::parse(PAYLOAD)?))
}

/// One job a call, each answered after its commit, by so many producers at once.
pub(super) async fn enqueue(path: &Path, producers: usize, jobs: usize) -> Result<Run> {
    let rowlock = open(path)?;
    let before = rowlock.operate().stats().await?.total.pending;
    let first = commits(path)?;
    let stored = Arc::new(AtomicUsize::new(0));
    let mut tasks = Tasks::default();
    let watch = Stopwatch::start();
    for each in 0..producers {
        let (rowlock, stored, job) = (rowlock.clone(), Arc::clone(&stored), job()?);
        let share = jobs / producers + usize::from(each < jobs % producers);
        tasks.start("producer", async move {
            for _ in 0..share {
                if rowlock.enqueue(&job).await.is_ok() {
                    stored.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    tasks.join().await;
    let rate = watch.rate(jobs);
    ensure!(stored.load(Ordering::Relaxed) == jobs, "an enqueue failed");
    finish(&rowlock, path, before, first, jobs, rate).await
}

/// Jobs in batches, each answered after its commit.
pub(super) async fn bulk(path: &Path, jobs: usize) -> Result<Run> {
    let rowlock = open(path)?;
    let before = rowlock.operate().stats().await?.total.pending;
    let first = commits(path)?;
    let job = job()?;
    let watch = Stopwatch::start();
    for start in (0..jobs).step_by(BATCH) {
        let batch = vec![job.clone(); BATCH.min(jobs - start)];
        rowlock.enqueue_many(batch).await?;
    }
    let rate = watch.rate(jobs);
    finish(&rowlock, path, before, first, jobs, rate).await
}

async fn finish(
    rowlock: &Rowlock,
    path: &Path,
    before: u64,
    first: u32,
    jobs: usize,
    rate: f64,
) -> Result<Run> {
    let made = commits(path)?.wrapping_sub(first).max(1);
    let there = rowlock.operate().stats().await?.total.pending - before;
    ensure!(
        there == u64::try_from(jobs)?,
        "{there} of {jobs} jobs are in the store"
    );
    let per_commit = as_f64(jobs) / f64::from(made);
    Ok(Run { rate, per_commit })
}

/// Runs everything that waits.
pub(super) async fn drain(path: &Path, jobs: usize, history: bool) -> Result<Run> {
    let rowlock = open(path)?;
    let mut kind = Kind::new(KIND)?;
    if !history {
        kind.retention.completed = std::time::Duration::ZERO;
    }
    let options = Options {
        concurrency: CONCURRENCY,
        ..Options::default()
    };
    let worker = Worker::new(rowlock.clone(), ())
        .handle_kind(kind, Runner::Builtin(Builtin::Noop))
        .options(options);
    let before = rowlock.operate().stats().await?.total;
    let first = commits(path)?;
    let watch = Stopwatch::start();
    let tally = worker.run_once().await?;
    let rate = watch.rate(jobs);
    let made = commits(path)?.wrapping_sub(first).max(1);
    let after = rowlock.operate().stats().await?.total;
    let jobs_done = u64::try_from(jobs)?;
    ensure!(
        tally.settled == jobs_done,
        "{} of {jobs} jobs were settled",
        tally.settled
    );
    ensure!(
        after.pending + after.processing == 0,
        "jobs were left behind"
    );
    let kept = if history { jobs_done } else { 0 };
    ensure!(
        after.completed == before.completed + kept,
        "the history is not what it should be"
    );
    let per_commit = as_f64(jobs) / f64::from(made);
    Ok(Run { rate, per_commit })
}
