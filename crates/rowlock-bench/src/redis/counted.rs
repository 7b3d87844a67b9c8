//! A dispatcher that counts what a worker asks of it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rowlock::async_trait;
use rowlock::claim::{Claim, Claimed, Heartbeat, WorkerId};
use rowlock::drain::sinks::redis::Redis;
use rowlock::engine::{Capabilities, Dispatch, Wakeups};
use rowlock::error::Result;
use rowlock::job::{JobId, Token};
use rowlock::settle::{Settled, Settlement};

use crate::stopwatch::as_f64;

pub(super) struct Counted {
    of: Redis,
    takes: AtomicUsize,
    settles: AtomicUsize,
}

impl Counted {
    pub(super) fn new(of: Redis) -> Self {
        Self {
            of,
            takes: AtomicUsize::new(0),
            settles: AtomicUsize::new(0),
        }
    }

    /// How many of so many jobs were taken at once, and how many verdicts were given at once.
    pub(super) fn at_once(&self, jobs: usize) -> (f64, f64) {
        let mean =
            |calls: &AtomicUsize| as_f64(jobs) / as_f64(calls.load(Ordering::Relaxed).max(1));
        (mean(&self.takes), mean(&self.settles))
    }
}

#[async_trait]
impl Dispatch for Counted {
    fn capabilities(&self) -> Capabilities {
        self.of.capabilities()
    }

    async fn join(&self, worker: &WorkerId, lease: Duration) -> Result<()> {
        self.of.join(worker, lease).await
    }

    async fn heartbeat(&self, worker: &WorkerId, held: Vec<Token>) -> Result<Heartbeat> {
        self.of.heartbeat(worker, held).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        let claimed = self.of.claim(claim).await?;
        if !claimed.jobs.is_empty() {
            self.takes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(claimed)
    }

    async fn start_suspect(&self, worker: &WorkerId, id: JobId, token: Token) -> Result<()> {
        self.of.start_suspect(worker, id, token).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Settled>> {
        self.settles.fetch_add(1, Ordering::Relaxed);
        self.of.settle(settlements).await
    }

    async fn leave(&self, worker: &WorkerId) -> Result<()> {
        self.of.leave(worker).await
    }

    fn wakeups(&self) -> Wakeups {
        self.of.wakeups()
    }
}
