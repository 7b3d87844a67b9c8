//! The whole way of a drained job while a transaction keeps an old snapshot: rows that are done can't be
//! cleaned up meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rowlock::drain::sinks::redis::Redis;
use rowlock::drain::{Line, Options};
use rowlock::engine::postgres::migrate_up;
use rowlock::reconcile::upkeep;
use rowlock::run::task::Tasks;
use rowlock::run::{self, Builtin, Runner, Stopper};
use rowlock::{Clock, Kind, Rowlock, Worker};

use super::broker::Broker;
use super::store::{declare, stage};
use super::{KIND, SLOTS, Size};
use crate::databases::Databases;
use crate::pin::{Pin, Pinned};
use crate::server::Server;
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Measurement, Progress};

const GOAL: f64 = 0.8;
/// How long a collector waits, and a pump that has found nothing.
const COLLECT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);
/// Longer than any part takes.
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) async fn measure(
    size: &Size,
    databases: &Databases,
    broker: &Broker,
    say: Progress<'_>,
) -> Result<Measurement> {
    let [pinned, free] = databases.servers()?;
    let (pinned, free) = (
        State::new(&pinned, broker, "_pinned", true).await?,
        State::new(&free, broker, "_free", false).await?,
    );
    let parts = size.under.div_ceil(size.part);
    for part in 1..=parts {
        say(&format!(
            "{} rows under an old snapshot and without, part {part} of {parts}",
            size.under
        ));
        for state in [&pinned, &free] {
            state.through(size.part).await?;
        }
    }
    let (mut under, mut without, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=size.alternations {
        say(&format!(
            "{} rows more, round {round} of {}",
            size.part, size.alternations
        ));
        under.push(pinned.through(size.part).await?);
        without.push(free.through(size.part).await?);
        again.push(free.through(size.part).await?);
    }
    if let Some(pin) = &pinned.pin {
        pin.still_holds().await?;
    }
    Ok(Measurement::new("drain_under_the_pin", "jobs/s", size.part)
        .ours(&under)
        .with("under_the_pin", as_f64(parts * size.part))
        .without(&without, &again, GOAL))
}

/// A store, its drain and its workers.
struct State {
    rowlock: Rowlock,
    line: Line,
    pin: Option<Pinned>,
    _beside: Tasks,
}

impl State {
    async fn new(server: &Server, broker: &Broker, part: &str, is_pinned: bool) -> Result<Self> {
        migrate_up(&server.address).await?;
        let rowlock = server.open().await?;
        let route = broker.route(part)?;
        declare(&rowlock, &route).await?;
        let options = Options::default();
        let line = Line::new(&rowlock, &route, &options)?;
        line.open().await?;
        let mut beside = Tasks::default();
        let (engine, clock) = (rowlock.engine(), rowlock.clock().clone());
        beside.start("bench-upkeep", upkeep(engine, clock.clone(), options.lease));
        let dispatcher = Arc::new(Redis::open(&broker.url(part), clock.clone())?);
        let worker = Worker::from_dispatcher(dispatcher, clock, ())
            .handle_kind(Kind::new(KIND)?, Runner::Builtin(Builtin::Noop))
            .options(run::Options {
                concurrency: SLOTS,
                ..run::Options::default()
            });
        beside.start("bench-worker", async move {
            // A worker that ends is missed by whoever counts verdicts.
            let _ = worker.run_until(Stopper::default().stop()).await;
        });
        let pin = match is_pinned {
            true => Some(Pinned::new(server, Pin::Reading).await?),
            false => None,
        };
        Ok(Self {
            rowlock,
            line,
            pin,
            _beside: beside,
        })
    }

    /// Rows are staged, sent, run and done; how fast, from the first claim to the last verdict.
    async fn through(&self, rows: usize) -> Result<f64> {
        stage(&self.rowlock, rows).await?;
        self.line.beat().await?;
        let sent = AtomicUsize::new(0);
        let watch = Stopwatch::start();
        let (one, other) = (self.pump(rows, &sent), self.pump(rows, &sent));
        let all = async { tokio::try_join!(one, other, self.collect(rows)) };
        let ended = Clock::system().timeout(PATIENCE, all).await;
        ended.context("the jobs don't all come to their end")??;
        let rate = watch.rate(rows);
        let left = self.rowlock.operate().stats().await?.total;
        ensure!(
            left.pending + left.processing == 0,
            "jobs were left behind: {left:?}"
        );
        Ok(rate)
    }

    /// A drain has two of these.
    async fn pump(&self, rows: usize, sent: &AtomicUsize) -> Result<()> {
        while sent.load(Ordering::Relaxed) < rows {
            match self.line.pump().await?.sent {
                0 => self.rowlock.clock().sleep(PAUSE).await,
                some => {
                    sent.fetch_add(some, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    async fn collect(&self, rows: usize) -> Result<()> {
        let mut settled = 0;
        while settled < rows {
            let (accepted, refused) = self.line.collect(COLLECT).await?;
            ensure!(refused == 0, "{refused} verdicts were refused");
            settled += accepted;
        }
        Ok(())
    }
}
