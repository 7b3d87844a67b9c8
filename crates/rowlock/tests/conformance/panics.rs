//! Panics and answers that are lost, of what isn't a handler: a worker holds only what it answers for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rowlock::claim::{Claim, Claimed, Heartbeat, WorkerId};
use rowlock::clock::Clock;
use rowlock::engine::{Capabilities, Dispatch, Wakeups};
use rowlock::error::{Error, Result};
use rowlock::job::{Backoff, Token};
use rowlock::run::{Options, Stopper, Tally};
use rowlock::settle::{Settled, Settlement};
use rowlock::{Context, JobId, JobState, Kind, Outcome, Worker};
use tracing::span;

use super::world::{Site, World, failed, job};

/// It only ever fails a case.
const DEADLINE: Duration = Duration::from_secs(60);
const JOBS: usize = 20;

fn kind() -> Kind {
    let mut kind = Kind::new("mail").unwrap();
    kind.backoff = Backoff::Fixed {
        base: Duration::ZERO,
        jitter: 0.0,
    };
    kind
}

fn options() -> Options {
    Options {
        lease: Duration::from_secs(3),
        once: true,
        ..Options::default()
    }
}

/// A subscriber that can't be used.
struct Panics {
    /// Whether spans are as bad as events.
    spans: bool,
    times: Arc<AtomicUsize>,
}

impl Panics {
    fn now(&self) {
        self.times.fetch_add(1, Ordering::Relaxed);
        // Without a word: thousands of them would bury what a run of all cases says.
        std::panic::resume_unwind(Box::new("the log can't be written"));
    }

    fn if_spans(&self) {
        if self.spans {
            self.now();
        }
    }
}

impl tracing::Subscriber for Panics {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {
        self.if_spans();
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {
        self.if_spans();
    }

    fn event(&self, _: &tracing::Event<'_>) {
        self.now();
    }

    fn enter(&self, _: &span::Id) {
        self.if_spans();
    }

    fn exit(&self, _: &span::Id) {
        self.if_spans();
    }

    fn try_close(&self, _: span::Id) -> bool {
        self.if_spans();
        true
    }
}

/// Runs a worker whose threads have this subscriber.
fn run_under(subscriber: Panics, worker: Worker) -> Option<Tally> {
    let runtime = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().build().unwrap()
    };
    let work = worker
        .options(options())
        .run_until(Stopper::default().stop());
    let work = async { Clock::system().timeout(DEADLINE, work).await };
    let run = || tracing::subscriber::with_default(subscriber, || runtime().block_on(work));
    let tally = std::thread::scope(|scope| scope.spawn(run).join());
    tally
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        .map(Result::unwrap)
}

pub async fn a_subscriber_that_panics_costs_no_job_and_no_attempt(world: World) {
    for spans in [false, true] {
        let site = world.open_with(Clock::system());
        site.engine().add_kinds(&[kind()]).await.unwrap();
        let ids = site.stage_many("mail", JOBS).await;
        let worker = site
            .worker(())
            .handle_kind(kind(), |job: Context| async move {
                match job.attempt {
                    1 => failed(),
                    _ => Outcome::Done,
                }
            });
        let times = Arc::new(AtomicUsize::new(0));
        let subscriber = Panics {
            spans,
            times: Arc::clone(&times),
        };
        let tally = run_under(subscriber, worker).expect("an end");
        assert_eq!(tally.settled, 2 * JOBS as u64);
        assert!(times.load(Ordering::Relaxed) > JOBS);
        for id in ids {
            let found = site.job(id).await;
            assert_eq!((found.state, found.attempt), (JobState::Completed, 2));
            assert_eq!(found.errors.len(), 1, "{:?}", found.errors);
        }
    }
}

/// A store of which one call panics, or isn't answered, once.
struct Breaks {
    inner: Arc<dyn Dispatch>,
    settle: AtomicBool,
    heartbeat: AtomicBool,
    /// Of this one the answer is lost.
    claim: AtomicBool,
}

impl Breaks {
    fn new(site: &Site) -> Self {
        Self {
            inner: site.dispatch(),
            settle: AtomicBool::new(false),
            heartbeat: AtomicBool::new(false),
            claim: AtomicBool::new(false),
        }
    }

    fn worker(self) -> Worker {
        Worker::from_dispatcher(Arc::new(self), Clock::system(), ())
    }
}

fn once(armed: &AtomicBool) {
    assert!(!armed.swap(false, Ordering::Relaxed), "a bug of ours");
}

#[async_trait]
impl Dispatch for Breaks {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn join(&self, worker: &WorkerId, lease: Duration) -> Result<()> {
        self.inner.join(worker, lease).await
    }

    async fn heartbeat(&self, worker: &WorkerId, held: Vec<Token>) -> Result<Heartbeat> {
        once(&self.heartbeat);
        self.inner.heartbeat(worker, held).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        let claimed = self.inner.claim(claim).await?;
        match !claimed.jobs.is_empty() && self.claim.swap(false, Ordering::Relaxed) {
            true => Err(Error::Unavailable("the answer was lost".to_owned())),
            false => Ok(claimed),
        }
    }

    async fn start_suspect(&self, worker: &WorkerId, id: JobId, token: Token) -> Result<()> {
        self.inner.start_suspect(worker, id, token).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Settled>> {
        once(&self.settle);
        self.inner.settle(settlements).await
    }

    async fn leave(&self, worker: &WorkerId) -> Result<()> {
        self.inner.leave(worker).await
    }

    fn wakeups(&self) -> Wakeups {
        self.inner.wakeups()
    }
}

pub async fn jobs_whose_verdicts_panic_are_given_back(world: World) {
    let site = world.open_with(Clock::system());
    site.engine().add_kinds(&[kind()]).await.unwrap();
    let ids = site.stage_many("mail", JOBS).await;
    let breaks = Breaks::new(&site);
    breaks.settle.store(true, Ordering::Relaxed);
    let worker = breaks
        .worker()
        .handle_kind(kind(), |_: Context| async { Outcome::Done });
    let work = worker
        .options(options())
        .run_until(Stopper::default().stop());
    let tally = Clock::system().timeout(DEADLINE, work).await;
    let tally = tally.expect("an end").unwrap();
    assert_eq!(tally.settled, JOBS as u64);
    assert!(tally.lost > 0, "a group was lost");
    for id in ids {
        let found = site.job(id).await;
        assert_eq!((found.state, found.attempt), (JobState::Completed, 1));
    }
}

pub async fn a_worker_whose_heartbeat_panics_starts_again(world: World) {
    let site = world.open_with(Clock::system());
    site.engine().add_kinds(&[kind()]).await.unwrap();
    site.stage(job("mail")).await;
    let breaks = Breaks::new(&site);
    breaks.heartbeat.store(true, Ordering::Relaxed);
    let (begun, mut beginnings) = tokio::sync::mpsc::unbounded_channel();
    let worker = breaks.worker().handle_kind(kind(), move |_: Context| {
        begun.send(()).unwrap();
        std::future::pending()
    });
    let stopper = Stopper::default();
    let options = Options {
        once: false,
        ..options()
    };
    #[expect(clippy::disallowed_methods, reason = "joined by the case")]
    let work = tokio::spawn(worker.options(options).run_until(stopper.stop()));
    beginnings.recv().await.unwrap();
    let first = site.workers().await;
    let again = async {
        while site.workers().await.iter().all(|id| first.contains(id)) {
            tokio::task::yield_now().await;
        }
    };
    let again = Clock::system().timeout(DEADLINE, again).await;
    assert!(again.is_some(), "it holds on without a heartbeat");
    // What it held goes back when its lease is over, as if it had died.
    site.dispatch().leave(&first[0]).await.unwrap();
    beginnings.recv().await.unwrap();
    stopper.ask();
    stopper.ask();
    work.await.unwrap().unwrap();
}

pub async fn a_claim_whose_answer_was_lost_is_let_go_at_the_next_heartbeat(world: World) {
    let site = world.open_with(Clock::system());
    site.engine().add_kinds(&[kind()]).await.unwrap();
    let ids = site.stage_many("mail", JOBS).await;
    let breaks = Breaks::new(&site);
    breaks.claim.store(true, Ordering::Relaxed);
    let (ran, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let worker = breaks.worker().handle_kind(kind(), move |_: Context| {
        ran.send(()).unwrap();
        async { Outcome::Done }
    });
    let stopper = Stopper::default();
    let options = Options {
        once: false,
        ..options()
    };
    #[expect(clippy::disallowed_methods, reason = "joined by the case")]
    let work = tokio::spawn(worker.options(options).run_until(stopper.stop()));
    let all = async {
        for _ in &ids {
            runs.recv().await.unwrap();
        }
    };
    let all = Clock::system().timeout(DEADLINE, all).await;
    assert!(all.is_some(), "jobs are held that nothing runs");
    stopper.ask();
    work.await.unwrap().unwrap();
    for id in ids {
        let found = site.job(id).await;
        assert_eq!((found.state, found.attempt), (JobState::Completed, 1));
    }
}
