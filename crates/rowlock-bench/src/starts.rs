//! How soon jobs start: one side enqueues at uneven distances, the other notes when handlers are entered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rowlock::run::{Context, Stopper};
use rowlock::{Clock, Done, Kind, NewJob, Rowlock, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::Measurement;
use crate::measurement::{median, percentile};
use crate::stopwatch::now;

/// How many jobs come, and how close to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// A hundred a second.
    Often(usize),
    /// Five a second: the worker has gone to rest before each.
    Rarely(usize),
}

/// The kind whose starts are timed.
pub(crate) const TIMED: &str = "timed";
/// A job that is not counted: its start says that the worker is there.
pub(crate) const FIRST: usize = usize::MAX;
#[derive(Serialize, Deserialize)]
struct Number {
    n: usize,
}

/// When something happened, by the number of its job.
pub(crate) type Times = Vec<(usize, Duration)>;

/// A job whose start is timed.
pub(crate) fn timed(n: usize) -> Result<NewJob> {
    Ok(NewJob::new(TIMED)?.payload_of(&Number { n })?)
}

/// Jobs at uneven distances; when each enqueue returned.
pub(crate) async fn produce(rowlock: &Rowlock, pace: Pace) -> Result<Times> {
    let clock = Clock::system();
    // Uniform, so that no rhythm of the worker's can meet it or miss it.
    let (jobs, least, spread) = match pace {
        Pace::Often(jobs) => (jobs, Duration::ZERO, Duration::from_millis(20)),
        Pace::Rarely(jobs) => (jobs, Duration::from_millis(100), Duration::from_millis(200)),
    };
    let mut times = Vec::with_capacity(jobs);
    let mut due = now();
    for n in 0..jobs {
        due += least + rowlock::job::jitter(spread);
        clock.sleep(due.saturating_sub(now())).await;
        rowlock.enqueue(&timed(n)?).await?;
        times.push((n, now()));
    }
    Ok(times)
}

/// Works until stopped; when each handler was entered. `begun` hears of the first job.
pub(crate) async fn work(
    rowlock: Rowlock,
    stopper: &Stopper,
    begun: impl Fn(usize) + Send + Sync + 'static,
) -> Result<Times> {
    let times = Arc::new(Mutex::new(Times::new()));
    let (entered, begun) = (Arc::clone(&times), Arc::new(begun));
    let handler = move |cx: Context| {
        let at = now();
        let (entered, begun) = (Arc::clone(&entered), Arc::clone(&begun));
        async move {
            let n = cx.payload.to::<Number>().map_or(FIRST, |number| number.n);
            if n != FIRST {
                let mut entered = entered.lock().unwrap_or_else(PoisonError::into_inner);
                entered.push((n, at));
            }
            begun(n);
            Done
        }
    };
    let worker = Worker::new(rowlock, ()).handle_kind(Kind::new(TIMED)?, handler);
    worker.run_until(stopper.stop()).await?;
    let times = times.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(times.clone())
}

/// Both in this process; the delay of each job.
pub(crate) async fn in_process(
    producer: &Rowlock,
    consumer: Rowlock,
    jobs: usize,
) -> Result<Vec<f64>> {
    producer.enqueue(&timed(FIRST)?).await?;
    let (begun, mut beginnings) = mpsc::unbounded_channel();
    let stopper = Arc::new(Stopper::default());
    let working = work(consumer, &stopper, move |n| {
        // The producer reads until every job has begun.
        let _ = begun.send(n);
    });
    let asking = async {
        beginnings.recv().await.context("the worker ended")?;
        let returned = produce(producer, Pace::Often(jobs)).await?;
        for _ in 0..jobs {
            beginnings.recv().await.context("the worker ended")?;
        }
        stopper.ask();
        anyhow::Ok(returned)
    };
    let (entered, returned) = tokio::join!(working, asking);
    delays(&returned?, &entered?)
}

/// In milliseconds; a handler that was entered before the enqueue returned counts as zero.
pub(crate) fn delays(returned: &Times, entered: &Times) -> Result<Vec<f64>> {
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

pub(crate) fn measurement(step: &'static str, jobs: usize, rounds: &[Vec<f64>]) -> Measurement {
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
