//! Workers without a database: jobs are in Redis, and their verdicts are there in the end.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rowlock::claim::{Claim, WorkerId};
use rowlock::drain::sinks::redis::{Redis, RedisSink};
use rowlock::drain::{Line, Options, Sink};
use rowlock::engine::Dispatch;
use rowlock::job::Token;
use rowlock::run::{self, Builtin, Runner};
use rowlock::settle::{Settled, Settlement, Verdict};
use rowlock::{Clock, Kind, Name, Worker};

use super::bare::{self, Shape};
use super::broker::Broker;
use super::counted::Counted;
use super::store::Store;
use super::{KIND, SLOTS, Size};
use crate::measurement::median;
use crate::stopwatch::Stopwatch;
use crate::{Bound, Measurement, Progress};

/// How fast, how many at once, and what lay in Redis.
struct Run {
    rate: f64,
    taken: f64,
    settled: f64,
    shape: Shape,
}

pub(super) async fn measure(
    size: &Size,
    store: &Store<'_>,
    broker: &Broker,
    say: Progress<'_>,
) -> Result<Measurement> {
    let step = "workers_from_redis";
    let jobs = size.pushed;
    let (mut ours, mut limit, mut popped) = (Vec::new(), Vec::new(), Vec::new());
    let (mut taken, mut settled, mut by_hand) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=size.rounds {
        say(&format!(
            "{step}, {jobs} jobs, round {round} of {}",
            size.rounds
        ));
        fill(store, broker, jobs).await?;
        let run = worked(broker, jobs).await?;
        let (at_once, verdicts) = (whole(run.taken), whole(run.settled));
        ours.push(run.rate);
        taken.push(run.taken);
        settled.push(run.settled);
        fill(store, broker, jobs).await?;
        by_hand.push(without_slots(broker, jobs, at_once, verdicts).await?);
        limit.push(bare::scripted(broker, &run.shape, jobs, at_once).await?);
        popped.push(bare::one_by_one(broker, &run.shape, size.popped).await?);
    }
    let mut made = Measurement::new(step, "jobs/s", jobs)
        .ours(&ours)
        .limit(&limit)
        .canonical(&popped)
        .with("taken_at_once", median(&taken))
        .with("settled_at_once", median(&settled))
        .with("without_slots", median(&by_hand))
        .goal("of_limit", Bound::AtLeast(0.5))
        .goal("of_canonical", Bound::AtLeast(4.0));
    made.runs.insert("without_slots", by_hand);
    Ok(made)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "jobs of one call"
)]
fn whole(mean: f64) -> usize {
    mean.round().max(1.0) as usize
}

/// So many jobs are sent, and nobody takes them yet.
async fn fill(store: &Store<'_>, broker: &Broker, jobs: usize) -> Result<()> {
    let route = broker.route("")?;
    let rowlock = store.staged(&route, jobs).await?;
    let line = Line::new(&rowlock, &route, &Options::default())?;
    line.open().await?;
    let mut sent = 0;
    while sent < jobs {
        let some = line.pump().await?.sent;
        ensure!(some > 0, "{sent} of {jobs} jobs were sent");
        sent += some;
    }
    Ok(())
}

/// A worker as `rowlock work --from` starts it, until every verdict is in Redis.
async fn worked(broker: &Broker, jobs: usize) -> Result<Run> {
    let clock = Clock::system();
    let mut connection = broker.connection().await?;
    let mut lane = redis::cmd("SRANDMEMBER");
    lane.arg(format!("{}:lanes", broker.keys("")));
    let lane: String = lane.query_async(&mut connection).await?;
    let mut first = redis::cmd("LINDEX");
    first
        .arg(format!("{}:ready:{lane}", broker.keys("")))
        .arg(0);
    let body: String = first.query_async(&mut connection).await?;
    let counted = Arc::new(Counted::new(Redis::open(&broker.url(""), clock.clone())?));
    let dispatcher = Arc::clone(&counted);
    let worker = Worker::from_dispatcher(dispatcher, clock.clone(), ())
        .handle_kind(Kind::new(KIND)?, Runner::Builtin(Builtin::Noop))
        .options(run::Options {
            concurrency: SLOTS,
            ..run::Options::default()
        });
    let watch = Stopwatch::start();
    let tally = worker.run_once().await?;
    let rate = watch.rate(jobs);
    let sink = RedisSink::new(&broker.url(""), clock)?;
    let told = sink.fill().await?.reports;
    let all = u64::try_from(jobs)?;
    ensure!(
        (tally.settled, told) == (all, all),
        "of {jobs} jobs {} were settled, and {told} verdicts are in Redis",
        tally.settled
    );
    let mut first = redis::cmd("XRANGE");
    first.arg(format!("{}:reports", broker.keys("")));
    first.arg("-").arg("+").arg("COUNT").arg(1);
    let groups: Vec<(String, Vec<(String, String)>)> = first.query_async(&mut connection).await?;
    let result = groups.first().and_then(|(_, parts)| one_of(parts));
    let shape = Shape {
        body,
        result: result.context("a verdict is not there")?,
    };
    broker.clear().await?;
    let (taken, settled) = counted.at_once(jobs);
    Ok(Run {
        rate,
        taken,
        settled,
        shape,
    })
}

/// What one job has of a group of verdicts: its id and its claim, and what was said.
fn one_of(parts: &[(String, String)]) -> Option<String> {
    let part = |name: &str| parts.iter().find(|(named, _)| named == name);
    let mut job = part("jobs")?.1.splitn(3, ' ');
    let told = part("told")?.1.lines().next()?;
    Some(format!("{} {} {told}", job.next()?, job.next()?))
}

/// The same calls, one after the other, and no handler in between: what is left is a worker's slots.
async fn without_slots(
    broker: &Broker,
    jobs: usize,
    at_once: usize,
    verdicts: usize,
) -> Result<f64> {
    let clock = Clock::system();
    let redis = Redis::open(&broker.url(""), clock.clone())?;
    let worker = WorkerId::random("bench")?;
    redis.join(&worker, run::Options::default().lease).await?;
    let watch = Stopwatch::start();
    let mut left = jobs;
    while left > 0 {
        let claim = Claim {
            worker: worker.clone(),
            token: Token::random()?,
            kinds: vec![Name::new(KIND)?],
            queues: Vec::new(),
            order: Default::default(),
            limit: at_once,
            caps: Default::default(),
            suspect: false,
            thorough: false,
            route: None,
        };
        let taken = redis.claim(claim).await?.jobs;
        ensure!(!taken.is_empty(), "{left} of {jobs} jobs are missing");
        left -= taken.len();
        for some in taken.chunks(verdicts) {
            let done = some.iter().map(|job| Settlement {
                id: job.id,
                token: job.token,
                verdict: Verdict::Done,
                started_at: Some(clock.now()),
            });
            let answers = redis.settle(done.collect()).await?;
            let accepted = answers.iter().all(|each| *each == Settled::Accepted);
            ensure!(accepted, "a verdict was refused");
        }
    }
    let rate = watch.rate(jobs);
    redis.leave(&worker).await?;
    broker.clear().await?;
    Ok(rate)
}
