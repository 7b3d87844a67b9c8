//! Redis goes away: whoever enqueues must not notice, and nothing may be missing when it is back.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rowlock::drain::sinks::redis::Redis;
use rowlock::drain::{Drain, Options};
use rowlock::run::{self, Builtin, Runner, Stopper};
use rowlock::{Kind, Rowlock, Worker};

use super::broker::Broker;
use super::store::{Store, job};
use super::{KIND, SLOTS, Size};
use crate::measurement::{median, percentile};
use crate::stopwatch::Stopwatch;
use crate::{Bound, Measurement, Progress};

/// What Redis had is missed after a part of it.
const LEASE: Duration = Duration::from_secs(10);
/// How often the store is counted, and how long it may take until all are done.
const LOOK: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(300);

/// The median of an enqueue in ms before and while it is away, and the seconds until all were done.
struct Run {
    before: f64,
    away: f64,
    p99: f64,
    done_in: f64,
}

pub(super) async fn measure(
    size: &Size,
    store: &Store<'_>,
    broker: &Broker,
    step: &'static str,
    say: Progress<'_>,
) -> Result<Measurement> {
    let mut runs = Vec::new();
    for round in 1..=size.rounds {
        say(&format!(
            "{step}, {} jobs meanwhile, round {round} of {}",
            size.away, size.rounds
        ));
        runs.push(measured(size, store, broker).await?);
    }
    let of = |figure: fn(&Run) -> f64| -> Vec<f64> { runs.iter().map(figure).collect() };
    let (before, away) = (of(|run| run.before), of(|run| run.away));
    let ratio = median(&away) / median(&before);
    let mut made = Measurement::new(step, "ms", size.before + size.away)
        .ours(&away)
        .with("before", median(&before))
        .with("of_before", ratio)
        .with("p99", median(&of(|run| run.p99)))
        .with("done_in_s", median(&of(|run| run.done_in)))
        .goal("of_before", Bound::AtMost(1.5));
    made.runs.insert("before", before);
    Ok(made)
}

async fn measured(size: &Size, store: &Store<'_>, broker: &Broker) -> Result<Run> {
    let route = broker.route("")?;
    let rowlock = store.staged(&route, 0).await?;
    let stopper = Stopper::default();
    let options = Options {
        lease: LEASE,
        ..Options::default()
    };
    let draining = Drain::new(rowlock.clone())
        .route(route)
        .options(options)
        .run_until(stopper.stop());
    tokio::pin!(draining);
    let run = tokio::select! {
        ended = &mut draining => bail!("the drain has ended: {ended:?}"),
        run = away_and_back(size, &rowlock, broker) => run?,
    };
    stopper.ask();
    draining.await?;
    broker.clear().await?;
    Ok(run)
}

async fn away_and_back(size: &Size, rowlock: &Rowlock, broker: &Broker) -> Result<Run> {
    let mut connection = broker.connection().await?;
    let arriving = rowlock.clock().timeout(PATIENCE, async {
        rowlock.enqueue(&job()?).await?;
        while broker.pushed(&mut connection).await? == 0 {
            rowlock.clock().sleep(LOOK).await;
        }
        anyhow::Ok(())
    });
    arriving.await.context("nothing is drained")??;
    let before = enqueued(rowlock, size.before - 1).await?;
    broker.kill();
    let away = enqueued(rowlock, size.away).await?;
    broker.restart().await?;
    let watch = Stopwatch::start();
    let clock = rowlock.clock().clone();
    let dispatcher = Arc::new(Redis::open(&broker.url(""), clock.clone())?);
    let worker = Worker::from_dispatcher(dispatcher, clock.clone(), ())
        .handle_kind(Kind::new(KIND)?, Runner::Builtin(Builtin::Noop))
        .options(run::Options {
            concurrency: SLOTS,
            ..run::Options::default()
        });
    let stopper = Stopper::default();
    let working = worker.run_until(stopper.stop());
    tokio::pin!(working);
    let all = size.before + size.away;
    let finishing = clock.timeout(PATIENCE, all_done(rowlock, all));
    tokio::select! {
        ended = &mut working => bail!("the worker has ended: {ended:?}"),
        done = finishing => done.context("not all jobs are done")??,
    }
    let done_in = watch.elapsed().as_secs_f64();
    stopper.ask();
    working.await?;
    Ok(Run {
        before: percentile(&before, 0.5),
        away: percentile(&away, 0.5),
        p99: percentile(&away, 0.99),
        done_in,
    })
}

/// One job a transaction; the time of each in ms.
async fn enqueued(rowlock: &Rowlock, jobs: usize) -> Result<Vec<f64>> {
    let job = job()?;
    let mut times = Vec::with_capacity(jobs);
    for _ in 0..jobs {
        let watch = Stopwatch::start();
        rowlock.enqueue(&job).await?;
        times.push(watch.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(times)
}

async fn all_done(rowlock: &Rowlock, all: usize) -> Result<()> {
    let all = u64::try_from(all)?;
    loop {
        let counts = rowlock.operate().stats().await?.total;
        if counts.pending + counts.processing == 0 {
            ensure!(counts.completed == all, "not {all} are done: {counts:?}");
            return Ok(());
        }
        rowlock.clock().sleep(LOOK).await;
    }
}
