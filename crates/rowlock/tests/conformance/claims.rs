//! Several claims of a worker at once. Whoever stands between it and the store decides when each is answered.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rowlock::claim::{Claim, Claimed, Heartbeat, WorkerId};
use rowlock::clock::Clock;
use rowlock::engine::{Capabilities, Dispatch, Wakeups};
use rowlock::error::Result;
use rowlock::job::{JobId, Token};
use rowlock::run::{Options, Stopper};
use rowlock::settle::{Settled, Settlement};
use rowlock::{Context, Error, Kind, Outcome, Worker};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::world::{Site, World};

/// So long for a claim that should come at once.
const PATIENCE: Duration = Duration::from_secs(30);

struct Between {
    store: Arc<dyn Dispatch>,
    asked: mpsc::UnboundedSender<Asked>,
    joined: mpsc::UnboundedSender<WorkerId>,
}

/// A claim that waits to be told what becomes of it.
struct Asked {
    claim: Claim,
    then: oneshot::Sender<Then>,
}

enum Then {
    Pass,
    /// As if the worker had been given up.
    Lose,
    /// It goes to the store at once. Its answer waits.
    Later {
        claimed: oneshot::Sender<()>,
        answer: oneshot::Receiver<()>,
    },
}

impl Asked {
    fn then(self, then: Then) {
        // A worker that has gone asks no more.
        let _ = self.then.send(then);
    }
}

#[async_trait]
impl Dispatch for Between {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    async fn join(&self, worker: &WorkerId, lease: Duration) -> Result<()> {
        let joined = self.store.join(worker, lease).await;
        // Nor here.
        let _ = self.joined.send(worker.clone());
        joined
    }

    async fn heartbeat(&self, worker: &WorkerId, held: Vec<Token>) -> Result<Heartbeat> {
        self.store.heartbeat(worker, held).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        let (then, told) = oneshot::channel();
        let asked = Asked {
            claim: claim.clone(),
            then,
        };
        // Nobody listens at the end of a case.
        let _ = self.asked.send(asked);
        match told.await.unwrap_or(Then::Pass) {
            Then::Pass => self.store.claim(claim).await,
            Then::Lose => Err(Error::LeaseLost),
            Then::Later { claimed, answer } => {
                let brought = self.store.claim(claim).await;
                let _ = claimed.send(());
                let _ = answer.await;
                brought
            }
        }
    }

    async fn start_suspect(&self, worker: &WorkerId, id: JobId, token: Token) -> Result<()> {
        self.store.start_suspect(worker, id, token).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Settled>> {
        self.store.settle(settlements).await
    }

    async fn leave(&self, worker: &WorkerId) -> Result<()> {
        self.store.leave(worker).await
    }

    fn wakeups(&self) -> Wakeups {
        self.store.wakeups()
    }
}

/// A worker whose claims are answered by the case.
struct Controlled {
    claims: mpsc::UnboundedReceiver<Asked>,
    joins: mpsc::UnboundedReceiver<WorkerId>,
    begun: mpsc::UnboundedReceiver<(JobId, Token)>,
    /// Handlers wait for one each.
    permits: Arc<Semaphore>,
    stopper: Stopper,
    work: tokio::task::JoinHandle<Result<rowlock::run::Tally>>,
}

fn controlled(site: &Site, clock: Clock, concurrency: usize) -> Controlled {
    let (asked, claims) = mpsc::unbounded_channel();
    let (joined, joins) = mpsc::unbounded_channel();
    let between = Between {
        store: site.dispatch(),
        asked,
        joined,
    };
    let (begins, begun) = mpsc::unbounded_channel();
    let (stopper, permits) = (Stopper::default(), Arc::new(Semaphore::new(0)));
    let permitted = Arc::clone(&permits);
    let worker = Worker::from_dispatcher(Arc::new(between), clock, ())
        .handle_kind(Kind::new("mail").unwrap(), move |job: Context| {
            let _ = begins.send((job.id, job.token));
            let permitted = Arc::clone(&permitted);
            async move {
                permitted.acquire().await.unwrap().forget();
                Outcome::Done
            }
        })
        .options(Options {
            concurrency,
            ..Options::default()
        });
    #[expect(clippy::disallowed_methods, reason = "joined by the case")]
    let work = tokio::spawn(worker.run_until(stopper.stop()));
    Controlled {
        work,
        claims,
        joins,
        begun,
        permits,
        stopper,
    }
}

impl Controlled {
    /// The next claim that is no question for suspects; those find what there is.
    async fn ordinary(&mut self) -> Asked {
        loop {
            let asked = Clock::system().timeout(PATIENCE, self.claims.recv()).await;
            match asked.expect("it asks").unwrap() {
                asked if asked.claim.suspect => asked.then(Then::Pass),
                asked => return asked,
            }
        }
    }

    /// The next job that begins, while every claim finds what there is.
    async fn next(&mut self) -> (JobId, Token) {
        loop {
            tokio::select! {
                Some(asked) = self.claims.recv() => asked.then(Then::Pass),
                Some(job) = self.begun.recv() => return job,
            }
        }
    }

    async fn stop(mut self) {
        self.claims.close();
        self.stopper.ask();
        self.stopper.ask();
        self.work.await.unwrap().unwrap();
    }
}

pub async fn what_a_claim_brings_after_the_lease_was_lost_is_not_run(world: World) {
    const JOBS: usize = 5_000;
    let clock = Clock::system();
    let site = world.open_with(clock.clone());
    site.stage_many("mail", JOBS).await;
    let mut worker = controlled(&site, clock, JOBS);
    worker.permits.add_permits(JOBS * 10);
    worker.ordinary().await.then(Then::Pass);
    let (second, third) = (worker.ordinary().await, worker.ordinary().await);
    let late = third.claim.token;
    let (claimed, is_claimed) = oneshot::channel();
    let (answer, is_answered) = oneshot::channel();
    third.then(Then::Later {
        claimed,
        answer: is_answered,
    });
    is_claimed.await.unwrap();
    // Somebody gives it up: what it held goes back.
    site.dispatch().leave(&second.claim.worker).await.unwrap();
    second.then(Then::Lose);
    for _ in 0..2 {
        worker.joins.recv().await.unwrap();
    }
    // It has begun anew. Whoever still waits for the answer has it now.
    let _ = answer.send(());
    let mut ran = BTreeSet::new();
    while ran.len() < JOBS {
        let (id, token) = worker.next().await;
        assert_ne!(token, late, "a claim outlived its worker");
        ran.insert(id);
    }
    worker.stop().await;
}

pub async fn suspects_are_asked_for_one_at_a_time(world: World) {
    let site = world.open();
    site.stage_many("mail", 5_000).await;
    let mut worker = controlled(&site, world.clock.clone(), 3_000);
    let first = worker.ordinary().await;
    // They are asked for again after a pause.
    world.advance(Duration::from_secs(1));
    first.then(Then::Pass);
    let second = worker.ordinary().await;
    let suspect = worker.claims.recv().await.unwrap();
    assert!(suspect.claim.suspect, "it is asked for beside the second");
    world.advance(Duration::from_secs(1));
    worker.permits.add_permits(1_500);
    let third = worker.claims.recv().await.unwrap();
    assert!(!third.claim.suspect);
    let token = third.claim.token;
    third.then(Then::Pass);
    loop {
        tokio::select! {
            Some(another) = worker.claims.recv() => {
                assert!(!another.claim.suspect, "the first was not answered yet");
                another.then(Then::Pass);
            }
            Some((_, of)) = worker.begun.recv() => if of == token { break },
        }
    }
    drop((second, suspect));
    worker.stop().await;
}
