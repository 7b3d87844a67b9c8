//! The other processes of a measurement: this binary again, as a producer or as a worker.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rowlock::run::task::Thread;
use rowlock::run::{Context, Stopper};
use rowlock::{Clock, Done, Kind, NewJob, Rowlock, Worker};
use serde::{Deserialize, Serialize};

use super::ours::open;
use crate::stopwatch::now;

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Enqueues jobs, and tells when each call returned.
    Producer(Pace),
    /// Works until its stdin is closed, and tells when each handler was entered.
    Worker,
}

/// How many jobs come, and how close to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// A hundred a second.
    Often(usize),
    /// Five a second: the worker has gone to rest before each.
    Rarely(usize),
}

/// The kind whose starts are timed.
pub(super) const TIMED: &str = "timed";
/// A job that is not counted: its start says that the worker is there.
pub(super) const FIRST: usize = usize::MAX;
/// What a worker says then.
pub(super) const READY: &str = "ready";

#[derive(Serialize, Deserialize)]
struct Number {
    n: usize,
}

/// When something happened, by the number of its job.
pub(super) type Times = Vec<(usize, Duration)>;

impl Part {
    /// Plays the part.
    ///
    /// # Errors
    /// When the store can't be used.
    pub async fn play(self, path: &Path) -> Result<()> {
        let rowlock = open(path)?;
        let times = match self {
            Self::Producer(pace) => produce(&rowlock, pace).await?,
            Self::Worker => work_until_closed(rowlock).await?,
        };
        let mut text = String::new();
        for (n, at) in times {
            text.push_str(&format!("{n} {}\n", at.as_nanos()));
        }
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }
}

/// What a process has told, back as times.
pub(super) fn read(text: &str) -> Result<Times> {
    let number = |line: &str| {
        let (n, at) = line.split_once(' ')?;
        Some((n.parse().ok()?, Duration::from_nanos(at.parse().ok()?)))
    };
    text.lines()
        .filter(|line| *line != READY)
        .map(|line| number(line).with_context(|| format!("not a time: {line:?}")))
        .collect()
}

/// A job whose start is timed.
pub(super) fn timed(n: usize) -> Result<NewJob> {
    Ok(NewJob::new(TIMED)?.payload_of(&Number { n })?)
}

/// Jobs at uneven distances; when each enqueue returned.
pub(super) async fn produce(rowlock: &Rowlock, pace: Pace) -> Result<Times> {
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
pub(super) async fn work(
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

async fn work_until_closed(rowlock: Rowlock) -> Result<Times> {
    let stopper = Arc::new(Stopper::default());
    let asks = Arc::clone(&stopper);
    let _watching = Thread::start("stdin", move || {
        // Whatever ends it, the process that started this one is done with it.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        asks.ask();
    })?;
    work(rowlock, &stopper, |n| {
        if n == FIRST {
            // A parent that is gone closes stdin as well.
            let _ = writeln!(std::io::stdout().lock(), "{READY}");
        }
    })
    .await
}
