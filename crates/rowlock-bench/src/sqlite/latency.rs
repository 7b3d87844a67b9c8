//! How soon a job starts: from the return of its enqueue, after the commit, to its handler's entry.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rowlock::run::Stopper;
use tokio::sync::mpsc;

use super::idle::Child;
use super::ours;
use super::part::{FIRST, Part, Times, produce, read, timed, work};
use crate::measurement::{median, percentile};
use crate::{Bound, Measurement, Place, Progress, Size};

/// Producer and worker in one process.
pub(super) async fn in_process(
    size: &Size,
    place: &Place,
    say: Progress<'_>,
) -> Result<Measurement> {
    let mut rounds = Vec::new();
    for round in 1..=size.rounds {
        say(&format!(
            "start latency in process, round {round} of {}",
            size.rounds
        ));
        let path = fresh(place)?;
        let rowlock = ours::open(&path)?;
        rowlock.enqueue(&timed(FIRST)?).await?;
        let (begun, mut beginnings) = mpsc::unbounded_channel();
        let stopper = Arc::new(Stopper::default());
        let working = work(rowlock.clone(), &stopper, move |n| {
            // The producer reads until every job has begun.
            let _ = begun.send(n);
        });
        let asking = async {
            beginnings.recv().await.context("the worker ended")?;
            let returned = produce(&rowlock, size.starts).await?;
            for _ in 0..size.starts {
                beginnings.recv().await.context("the worker ended")?;
            }
            stopper.ask();
            anyhow::Ok(returned)
        };
        let (entered, returned) = tokio::join!(working, asking);
        rounds.push(delays(&returned?, &entered?)?);
    }
    Ok(measurement("start_in_process", size, &rounds).goal("ours", Bound::AtMost(1.0)))
}

/// Producer and worker in processes of their own.
pub(super) async fn across_processes(
    size: &Size,
    place: &Place,
    say: Progress<'_>,
) -> Result<Measurement> {
    let mut rounds = Vec::new();
    for round in 1..=size.rounds {
        say(&format!(
            "start latency across processes, round {round} of {}",
            size.rounds
        ));
        let path = fresh(place)?;
        ours::open(&path)?.enqueue(&timed(FIRST)?).await?;
        let mut worker = Child::start(Part::Worker, &path)?;
        worker.ready()?;
        let producer = Child::start(Part::Producer(size.starts), &path)?;
        let returned = read(&producer.end()?)?;
        settled(&path, size.starts + 1).await?;
        rounds.push(delays(&returned, &read(&worker.end()?)?)?);
    }
    Ok(measurement("start_across_processes", size, &rounds).goal("ours", Bound::AtMost(25.0)))
}

fn fresh(place: &Place) -> Result<std::path::PathBuf> {
    let path = place.file("latency.db");
    place.remove(&path);
    drop(ours::create(&path)?);
    Ok(path)
}

/// Waits until every job has ended.
async fn settled(path: &Path, jobs: usize) -> Result<()> {
    let rowlock = ours::open(path)?;
    let jobs = u64::try_from(jobs)?;
    while rowlock.operate().stats().await?.total.completed < jobs {
        rowlock
            .clock()
            .sleep(std::time::Duration::from_millis(10))
            .await;
    }
    Ok(())
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

fn measurement(step: &'static str, size: &Size, rounds: &[Vec<f64>]) -> Measurement {
    let of = |part| -> Vec<f64> {
        rounds
            .iter()
            .map(|delays| percentile(delays, part))
            .collect()
    };
    Measurement::new(step, "ms", size.starts)
        .ours(&of(0.5))
        .with("p95", median(&of(0.95)))
        .with("p99", median(&of(0.99)))
}
