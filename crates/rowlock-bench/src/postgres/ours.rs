//! Our side: the library as an application uses it, the worker as `rowlock work` starts it.

use anyhow::{Result, ensure};
use rowlock::run::{Builtin, Options, Runner};
use rowlock::{Kind, NewJob, Payload, Rowlock, Worker};

use super::connections::{at_once, ensure_rows, share};
use super::{BATCH, KIND, PAYLOAD};
use crate::server::Server;
use crate::stopwatch::Stopwatch;

/// How many jobs the worker runs at once: a no-op job costs a slot next to nothing.
pub(super) const CONCURRENCY: usize = 64;

pub(super) fn job() -> Result<NewJob> {
    Ok(NewJob::new(KIND)?.payload(Payload::parse(PAYLOAD)?))
}

/// One job a call on the application's own connections, each in a transaction of its own.
pub(super) async fn enqueue(server: &Server, connections: usize, jobs: usize) -> Result<f64> {
    let rowlock = server.open().await?;
    rowlock.operate().apply(&[Kind::new(KIND)?]).await?;
    let (stored, watch) = at_once(server, connections, "", |n, session| {
        let (schema, job) = (server.address.schema.clone(), job());
        let share = share(jobs, connections, n);
        async move {
            let job = job?;
            let prepared = schema.prepare(&session.client).await?;
            for _ in 0..share {
                rowlock::enqueue(prepared.on(&session.client), &job).await?;
            }
            Ok(share)
        }
    })
    .await?;
    let rate = watch.rate(stored);
    ensure_rows(server, "job", jobs).await?;
    Ok(rate)
}

/// Jobs in batches, each answered after its commit; with a key each, if they are to have one.
pub(super) async fn bulk(rowlock: &Rowlock, jobs: usize, keyed: bool) -> Result<f64> {
    let job = job()?;
    rowlock.operate().apply(&[Kind::new(KIND)?]).await?;
    let watch = Stopwatch::start();
    for start in (0..jobs).step_by(BATCH) {
        let numbers = start..(start + BATCH).min(jobs);
        let batch: Result<Vec<NewJob>, _> = match keyed {
            true => numbers
                .map(|n| job.clone().unique(format!("order:{n}")))
                .collect(),
            false => numbers.map(|_| Ok(job.clone())).collect(),
        };
        rowlock.enqueue_many(batch?).await?;
    }
    Ok(watch.rate(jobs))
}

/// Runs everything that waits, in a store without a history.
pub(super) async fn drain(rowlock: &Rowlock, jobs: usize, history: bool) -> Result<f64> {
    let rate = run(rowlock, jobs, history).await?;
    let completed = rowlock.operate().stats().await?.total.completed;
    let kept = if history { u64::try_from(jobs)? } else { 0 };
    ensure!(
        completed == kept,
        "the history is not what it should be: {completed}"
    );
    Ok(rate)
}

/// Runs everything that waits.
pub(super) async fn run(rowlock: &Rowlock, jobs: usize, history: bool) -> Result<f64> {
    let mut kind = Kind::new(KIND)?;
    if !history {
        kind.retention.completed = std::time::Duration::ZERO;
    }
    rowlock.operate().apply(&[kind.clone()]).await?;
    let worker = Worker::new(rowlock.clone(), ())
        .handle_kind(kind, Runner::Builtin(Builtin::Noop))
        .options(Options {
            concurrency: CONCURRENCY,
            ..Options::default()
        });
    // The connections of the bare loop are open before its time begins: so are ours.
    let asked = rowlock.operate();
    tokio::try_join!(asked.kinds(), asked.kinds(), asked.kinds(), asked.kinds())?;
    let watch = Stopwatch::start();
    let tally = worker.run_once().await?;
    let rate = watch.rate(jobs);
    let all = u64::try_from(jobs)?;
    ensure!(
        tally.settled == all,
        "{} of {jobs} jobs were settled",
        tally.settled
    );
    let left = rowlock.operate().stats().await?.total;
    ensure!(
        left.pending + left.processing == 0,
        "jobs were left behind: {left:?}"
    );
    Ok(rate)
}
