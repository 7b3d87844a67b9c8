//! From rows to Redis: a drain as `rowlock drain run` starts it, beside a bare loop of its claims.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rowlock::claim::Claim;
use rowlock::drain::{Drain, Route};
use rowlock::job::Token;
use rowlock::run::Stopper;

use super::Size;
use super::broker::Broker;
use super::store::Store;
use crate::stopwatch::Stopwatch;
use crate::{Bound, Measurement, Progress};

/// How often Redis is asked how many have arrived, and how long that may take.
const LOOK: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) async fn measure(
    size: &Size,
    store: &Store<'_>,
    broker: &Broker,
    step: &'static str,
    say: Progress<'_>,
) -> Result<Measurement> {
    let jobs = size.backlog;
    let (mut ours, mut limit) = (Vec::new(), Vec::new());
    for round in 1..=size.rounds {
        say(&format!(
            "{step} of {jobs}, round {round} of {}",
            size.rounds
        ));
        ours.push(drained(store, broker, jobs).await?);
        limit.push(claimed(store, broker, jobs).await?);
    }
    Ok(Measurement::new(step, "jobs/s", jobs)
        .ours(&ours)
        .limit(&limit)
        .goal("of_limit", Bound::AtLeast(0.5)))
}

/// Until the last one is there.
async fn drained(store: &Store<'_>, broker: &Broker, jobs: usize) -> Result<f64> {
    let route = broker.route("")?;
    let rowlock = store.staged(&route, jobs).await?;
    let mut connection = broker.connection().await?;
    let stopper = Stopper::default();
    let watch = Stopwatch::start();
    let draining = Drain::new(rowlock.clone())
        .route(route)
        .run_until(stopper.stop());
    tokio::pin!(draining);
    let arriving = rowlock.clock().timeout(PATIENCE, async {
        while broker.pushed(&mut connection).await? < jobs {
            rowlock.clock().sleep(LOOK).await;
        }
        anyhow::Ok(watch.rate(jobs))
    });
    let rate = tokio::select! {
        ended = &mut draining => bail!("the drain has ended: {ended:?}"),
        rate = arriving => rate.context("the jobs don't all arrive")??,
    };
    stopper.ask();
    let sent = draining.await?.sent;
    ensure!(
        sent == u64::try_from(jobs)?,
        "{sent} of {jobs} jobs were sent"
    );
    broker.clear().await?;
    Ok(rate)
}

/// The same claims, one after the other, and nothing sent.
async fn claimed(store: &Store<'_>, broker: &Broker, jobs: usize) -> Result<f64> {
    let route = broker.route("")?;
    let rowlock = store.staged(&route, jobs).await?;
    let engine = rowlock.engine();
    let watch = Stopwatch::start();
    let mut left = jobs;
    while left > 0 {
        let claim = Claim {
            worker: route.holder(),
            token: Token::random()?,
            kinds: Vec::new(),
            queues: Vec::new(),
            order: Default::default(),
            limit: Route::BATCH,
            caps: Default::default(),
            suspect: false,
            thorough: false,
            route: Some(route.name.clone()),
        };
        let some = engine.claim(claim).await?.jobs.len();
        ensure!(some > 0, "nothing was claimed");
        left -= some;
    }
    Ok(watch.rate(jobs))
}
