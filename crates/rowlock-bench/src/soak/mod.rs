//! A soak: mixed jobs at an even rate while an old snapshot keeps what is dead. Whether claims stay as fast, and
//! memory, tables and catalogue as small as they were at the beginning.

mod child;
mod jobs;
mod watch;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rowlock::{Clock, Rowlock, Status};

use self::child::Worker;
pub use self::child::work;
use self::watch::{Moment, Watch};
use crate::databases::Databases;
use crate::measurement::percentile;
use crate::pin::{Pin, Pinned};
use crate::server::Server;
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Bound, Measurement, Progress};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// How long jobs come.
    pub time: Duration,
    /// Jobs a second.
    pub rate: usize,
}

impl Size {
    /// For figures, as long as this.
    #[must_use]
    pub fn minutes(minutes: u64) -> Self {
        Self {
            time: Duration::from_secs(60 * minutes),
            rate: 2_000,
        }
    }

    /// For shape and counts: its times mean nothing.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            time: Duration::from_secs(3),
            rate: 300,
        }
    }
}

/// Parts of the whole time: the first and the last are compared.
const PARTS: usize = 6;
/// Looks in each part.
const LOOKS: usize = 5;
/// Jobs come in batches, so many a second.
const BATCHES: usize = 50;
/// For what comes last: a retry is due after two seconds.
const LAST: Duration = Duration::from_secs(120);

/// Soaks a database of its own, which is gone at the end, also when `stop` comes first: the answer is nothing then.
///
/// # Errors
/// When the server can't be used, or a job was not done.
pub async fn run(
    size: Size,
    url: &str,
    say: Progress<'_>,
    stop: impl Future<Output = ()>,
) -> Result<Option<Measurement>> {
    let databases = Databases::new(&Server::new(url)?)?;
    ensure!(
        databases.make().await?,
        "this role can't make databases, which it needs two of (ALTER ROLE ... CREATEDB)"
    );
    let [server, _] = databases.servers()?;
    let measured = tokio::select! {
        measured = measure(&size, &server, say) => measured.map(Some),
        () = stop => Ok(None),
    };
    // Whatever happened, nothing of it stays.
    databases.drop().await?;
    measured
}

async fn measure(size: &Size, server: &Server, say: Progress<'_>) -> Result<Measurement> {
    server.fresh().await?;
    let rowlock = server.open().await?;
    rowlock.operate().apply(&jobs::kinds()?).await?;
    let pin = Pinned::new(server, Pin::Reading).await?;
    let worker = Worker::start(server)?;
    let mut watch = Watch::new(server).await?;
    while !worker.is_up() {
        Clock::system().sleep(Duration::from_millis(10)).await;
    }
    let produced = produce(size, &rowlock, &worker, &mut watch, say).await?;
    pin.still_holds().await?;
    let clock = Clock::system();
    let ended = clock.timeout(LAST, all_ended(&rowlock)).await;
    ended.context("jobs were left behind")??;
    let ended = rowlock.operate().stats().await?.total;
    ensure!(
        ended.completed == produced && ended.failed == 0,
        "{produced} jobs were stored: {ended:?}"
    );
    worker.end()?;
    Ok(measurement(usize::try_from(produced)?, &watch.seen))
}

/// Stores jobs at an even rate and looks on. How many were stored.
async fn produce(
    size: &Size,
    rowlock: &Rowlock,
    worker: &Worker,
    watch: &mut Watch,
    say: Progress<'_>,
) -> Result<u64> {
    let stopwatch = Stopwatch::start();
    let clock = Clock::system();
    let every = size.time / u32::try_from(PARTS * LOOKS)?;
    let (mut made, mut stored) = (0, 0);
    while stopwatch.elapsed() < size.time {
        let due = stopwatch.elapsed().as_secs_f64() * as_f64(size.rate);
        let batch = size.rate / BATCHES;
        if as_f64(made + batch) > due {
            clock
                .sleep(Duration::from_secs(1) / u32::try_from(BATCHES)?)
                .await;
            continue;
        }
        let jobs = (made..made + batch).map(jobs::job).collect::<Result<_>>()?;
        let answers = rowlock.enqueue_many(jobs).await?;
        made += batch;
        let queued = answers.iter().filter(|each| each.status == Status::Queued);
        stored += u64::try_from(queued.count())?;
        if stopwatch.elapsed() >= every * u32::try_from(watch.seen.len() + 1)? {
            let moment = watch.look(rowlock, worker).await?;
            say(&format!("{:>5} s: {moment}", stopwatch.elapsed().as_secs()));
        }
    }
    Ok(stored)
}

async fn all_ended(rowlock: &Rowlock) -> Result<()> {
    loop {
        let counts = rowlock.operate().stats().await?.total;
        if counts.pending + counts.processing == 0 {
            return Ok(());
        }
        rowlock.clock().sleep(Duration::from_millis(100)).await;
    }
}

/// One of what is seen.
type Value = fn(&Moment) -> f64;

fn measurement(jobs: usize, seen: &[Moment]) -> Measurement {
    let part = seen.len().div_ceil(PARTS).max(1);
    // What a process takes up at its start, like plans and buffers, is no growth.
    let (first, settled) = (
        &seen[..part.min(seen.len())],
        &seen[part.min(seen.len() - 1)..],
    );
    let last = &seen[seen.len() - part.min(seen.len())..];
    let claims = |of: &[Moment], share: f64| {
        let all: Vec<f64> = of
            .iter()
            .flat_map(|each| each.claims.iter().copied())
            .collect();
        percentile(&all, share)
    };
    let mean = |of: &[Moment], value: Value| of.iter().map(value).sum::<f64>() / as_f64(of.len());
    let settled = &settled[..part.min(settled.len())];
    let memory = mean(last, |each| each.memory);
    let mut made = Measurement::new("soak", "ms", jobs)
        .ours(&[claims(last, 0.99)])
        .with("claim_p99_first", claims(first, 0.99))
        .with("of_first", claims(last, 0.99) / claims(first, 0.99))
        .goal("of_first", Bound::AtMost(1.5))
        .with("claim_p50_first", claims(first, 0.5))
        .with("claim_p50", claims(last, 0.5))
        .with("memory_mb", memory / 1e6)
        .with("memory_growth", memory / mean(settled, |each| each.memory))
        .goal("memory_growth", Bound::AtMost(1.1))
        .with(
            "catalogue_growth",
            mean(last, |each| each.catalogue) / mean(settled, |each| each.catalogue),
        )
        .with(
            "segment_bytes",
            seen.iter().map(|each| each.segments).fold(0.0, f64::max),
        )
        .goal("segment_bytes", Bound::AtMost(300e6));
    made.bench = "soak";
    let series: [(&'static str, Value); 6] = [
        ("claim_p99_ms", |each| percentile(&each.claims, 0.99)),
        ("memory", |each| each.memory),
        ("segments", |each| each.segments),
        ("keys_and_aside", |each| each.beside),
        ("history", |each| each.history),
        ("catalogue", |each| each.catalogue),
    ];
    for (name, value) in series {
        made.runs.insert(name, seen.iter().map(value).collect());
    }
    made
}
