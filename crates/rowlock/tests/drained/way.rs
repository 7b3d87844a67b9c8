//! A drain that takes its steps whenever a worker asks for something, so that a case sees at once what
//! a running one would have done by and by.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rowlock::claim::{Claim, Claimed, Heartbeat, WorkerId};
use rowlock::clock::{Clock, Elapsed};
use rowlock::drain::sinks::redis::Redis;
use rowlock::drain::{Line, Options, Route};
use rowlock::engine::{Capabilities, Dispatch, Routes, Wakeups};
use rowlock::error::Result;
use rowlock::job::Token;
use rowlock::settle::{Settled, Settlement};
use rowlock::{JobId, Name, Rowlock, async_trait};

use crate::conformance::world::{Detour, LEASE};

pub struct Way {
    line: Line,
    redis: Redis,
    clock: Clock,
    /// One step after the other.
    moves: tokio::sync::Mutex<()>,
    route: Route,
    routes: Arc<dyn Routes>,
    shared: Arc<Shared>,
}

/// What all ways of a case know.
#[derive(Default)]
pub struct Shared {
    /// The kinds that somebody has asked for: they go by the route.
    kinds: Mutex<BTreeSet<Name>>,
    joined: Mutex<Vec<Joined>>,
}

/// A worker, and when its lease began by the clock of the case.
#[derive(Clone)]
struct Joined {
    worker: WorkerId,
    lease: Duration,
    heard: Elapsed,
}

impl Way {
    pub fn new(rowlock: &Rowlock, url: &str, shared: Arc<Shared>) -> Self {
        let mut route = Route::to(url).unwrap();
        // In small parts, so that there are several.
        route.batch = 50;
        let options = Options {
            lease: LEASE,
            ..Options::default()
        };
        Self {
            line: Line::new(rowlock, &route, &options).unwrap(),
            redis: Redis::open(url, rowlock.clock().clone()).unwrap(),
            clock: rowlock.clock().clone(),
            moves: Default::default(),
            routes: rowlock.routes(),
            route,
            shared,
        }
    }

    async fn declare(&self, kinds: &[Name]) -> Result<()> {
        let all: Vec<Name> = {
            let mut known = self.shared.kinds.lock().unwrap();
            known.extend(kinds.iter().cloned());
            known.iter().cloned().collect()
        };
        let name = &self.route.name;
        self.routes.declare_route(name, &all, &[], true).await?;
        self.line.beat().await
    }

    fn key(&self, name: &str) -> String {
        format!("{}:{name}", self.redis.address().keys())
    }

    /// A lease in Redis ends by its own clock. This one's is the case's.
    fn end_leases(&self) -> Vec<WorkerId> {
        let now = self.clock.elapsed();
        let joined = self.shared.joined.lock().unwrap().clone();
        let over = joined.iter().filter(|joined| {
            let key = self.key(&format!("worker:{}", joined.worker));
            now.saturating_sub(joined.heard) >= joined.lease
                && super::home::server().command(&["DEL", &key]).trim() == "1"
        });
        over.map(|joined| joined.worker.clone()).collect()
    }

    async fn collect(&self) -> Result<()> {
        while self.line.collect(Duration::ZERO).await? != (0, 0) {}
        Ok(())
    }
}

#[async_trait]
impl Dispatch for Way {
    fn capabilities(&self) -> Capabilities {
        self.redis.capabilities()
    }

    async fn join(&self, worker: &WorkerId, lease: Duration) -> Result<()> {
        let joined = Joined {
            worker: worker.clone(),
            lease,
            heard: self.clock.elapsed(),
        };
        self.shared.joined.lock().unwrap().push(joined);
        self.redis.join(worker, lease).await
    }

    async fn heartbeat(&self, worker: &WorkerId, held: Vec<Token>) -> Result<Heartbeat> {
        self.line.open().await?;
        self.line.beat().await?;
        let heard = self.redis.heartbeat(worker, held).await?;
        let now = self.clock.elapsed();
        for joined in self.shared.joined.lock().unwrap().iter_mut() {
            if joined.worker == *worker {
                joined.heard = now;
            }
        }
        self.collect().await?;
        Ok(heard)
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        let _moves = self.moves.lock().await;
        self.line.open().await?;
        self.declare(&claim.kinds).await?;
        self.collect().await?;
        let mut pumped = self.line.pump().await?;
        while pumped.more || pumped.sent > 0 {
            pumped = self.line.pump().await?;
        }
        let mut claimed = self.redis.claim(claim).await?;
        self.collect().await?;
        claimed.next_due = claimed.next_due.or(pumped.next_due);
        Ok(claimed)
    }

    async fn start_suspect(&self, worker: &WorkerId, id: JobId, token: Token) -> Result<()> {
        self.redis.start_suspect(worker, id, token).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Settled>> {
        let settled = self.redis.settle(settlements).await?;
        self.collect().await?;
        Ok(settled)
    }

    async fn leave(&self, worker: &WorkerId) -> Result<()> {
        self.redis.leave(worker).await?;
        self.collect().await
    }

    fn wakeups(&self) -> Wakeups {
        self.redis.wakeups()
    }
}

#[async_trait]
impl Detour for Way {
    async fn bury(&self) -> Result<(Vec<WorkerId>, usize)> {
        self.line.open().await?;
        let dead = self.end_leases();
        let mut returned = 0;
        loop {
            match self.line.bury().await? {
                0 => return Ok((dead, returned)),
                some => returned += some,
            }
        }
    }

    fn holder(&self) -> WorkerId {
        self.route.holder()
    }

    fn workers(&self) -> Vec<WorkerId> {
        let known = super::home::server().command(&["SMEMBERS", &self.key("workers")]);
        let joined = self.shared.joined.lock().unwrap();
        let lives = |worker: &&Joined| known.lines().any(|id| id == worker.worker.as_str());
        let living = joined.iter().filter(lives);
        living.map(|joined| joined.worker.clone()).collect()
    }
}
