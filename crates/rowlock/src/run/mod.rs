//! Run: a worker keeps its slots busy with claimed jobs until it is asked to stop.
//!
//! In: handlers by kind. Out: a verdict for every job it held, or none for those whose lease was
//! lost. It may crash anywhere: its lease runs out and others take over.

mod attempt;
mod builtin;
mod context;
#[cfg(feature = "exec")]
mod exec;
pub(crate) mod fetch;
mod handler;
mod heartbeat;
#[cfg(feature = "http")]
mod http;
mod layer;
#[cfg(feature = "exec")]
mod output;
#[cfg(feature = "exec")]
mod process;
mod pulse;
mod registry;
mod runner;
pub(crate) mod shift;
mod slot;
mod stop;
#[cfg(feature = "http")]
mod target;
pub mod task;
mod typed;

pub use builtin::Builtin;
pub use context::Context;
#[cfg(feature = "exec")]
pub use exec::{Environment, Exec};
pub use handler::Handler;
#[cfg(feature = "http")]
pub use http::Http;
pub use layer::{Layer, Next};
pub use pulse::Pulse;
pub use runner::Runner;
pub use stop::{Signals, Stop, Stopper};
pub use typed::{Cx, Failure};

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use crate::claim::QueueOrder;
use crate::clock::Clock;
use crate::engine::{Applied, Dispatch};
use crate::error::{Error, Result};
use crate::job::{Cron, Job, Kind, Name};
use crate::log;
use crate::reconcile::{self, Pair};
use crate::settle::Outcome;
use crate::store::Rowlock;
use crate::verify::Ran;

use self::layer::Layered;
use self::shift::Shift;
use self::typed::Typed;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many jobs run at once.
    pub concurrency: usize,
    /// How many of them may be of a queue; queues that aren't named have no limit of their own.
    pub queue_concurrency: BTreeMap<Name, usize>,
    /// The queues it works; none: every queue.
    pub queues: Vec<Name>,
    /// Which queue is served first.
    pub queue_order: QueueOrder,
    /// How long others wait before they take over from a silent worker.
    pub lease: Duration,
    /// How long running jobs may take to finish once the worker was asked to stop.
    pub grace: Duration,
    /// How often to look for due jobs when nothing rings.
    pub poll: Duration,
    /// Whether to end when nothing is due.
    pub once: bool,
    /// Where it notes whether its heartbeat is answered: keep a clone to ask.
    pub pulse: Pulse,
    /// Where it writes down what it runs, for [`verify`](crate::verify); none: nowhere.
    pub ran: Option<Ran>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 8,
            queue_concurrency: BTreeMap::new(),
            queues: Vec::new(),
            queue_order: QueueOrder::Fair,
            lease: Duration::from_secs(30),
            grace: Duration::from_secs(25),
            poll: Duration::from_secs(1),
            once: false,
            pulse: Pulse::default(),
            ran: None,
        }
    }
}

/// What a worker did, told when it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Verdicts that were accepted.
    pub settled: u64,
    /// Verdicts that came too late.
    pub lost: u64,
}

/// Claims jobs of the kinds it knows and runs them.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// use rowlock::{Cx, Done, Job, Rowlock, Worker};
///
/// #[derive(Serialize, Deserialize)]
/// struct Greet {
///     name: String,
/// }
///
/// impl Job for Greet {
///     const KIND: &'static str = "greet";
/// }
///
/// struct App {
///     greeting: String,
/// }
///
/// async fn greet(job: Greet, cx: Cx<App>) -> rowlock::Result {
///     println!("{} {}", cx.greeting, job.name);
///     Ok(Done)
/// }
///
/// # async fn example() -> rowlock::Result<()> {
/// let rowlock = Rowlock::open("sqlite:app.db")?;
/// let app = App { greeting: "hello".to_owned() };
/// Worker::new(rowlock, app).handle(greet).run().await?; // until SIGTERM or Ctrl-C
/// # Ok(())
/// # }
/// ```
pub struct Worker<S = ()> {
    from: From,
    state: Arc<S>,
    kinds: Vec<Result<Kind>>,
    crons: Vec<Cron>,
    handlers: BTreeMap<String, Arc<dyn Handler>>,
    layers: Vec<Arc<dyn Layer>>,
    pairs: Vec<Pair>,
    options: Options,
}

impl<S> std::fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("kinds", &self.kinds)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<S: Send + Sync + 'static> Worker<S> {
    /// A worker that knows no kind yet; its handlers share `state`.
    #[must_use]
    pub fn new(rowlock: Rowlock, state: S) -> Self {
        Self::of(From::Store(rowlock), state)
    }

    /// A worker that needs no store: it takes jobs from a dispatcher, which a
    /// [`Drain`](crate::drain::Drain) fills from one.
    #[must_use]
    pub fn from_dispatcher(dispatcher: Arc<dyn Dispatch>, clock: Clock, state: S) -> Self {
        Self::of(From::Dispatcher(dispatcher, clock), state)
    }

    fn of(from: From, state: S) -> Self {
        Self {
            from,
            state: Arc::new(state),
            kinds: Vec::new(),
            crons: Vec::new(),
            handlers: BTreeMap::new(),
            layers: Vec::new(),
            pairs: Vec::new(),
            options: Options::default(),
        }
    }

    /// Runs jobs of the type that `handler` takes.
    #[must_use]
    pub fn handle<J, F, Fut>(self, handler: F) -> Self
    where
        J: Job,
        F: Fn(J, Cx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome, Failure>> + Send + 'static,
    {
        let typed = Typed {
            run: handler,
            state: Arc::clone(&self.state),
            job: PhantomData,
        };
        self.add(J::kind(), J::KIND.to_owned(), Arc::new(typed))
    }

    /// Runs jobs of `kind` with a handler that looks at the payload itself. A second handler for a
    /// kind takes the place of the first.
    #[must_use]
    pub fn handle_kind(self, kind: Kind, handler: impl Handler) -> Self {
        let name = kind.name.to_string();
        self.add(Ok(kind), name, Arc::new(handler))
    }

    fn add(mut self, kind: Result<Kind>, name: String, handler: Arc<dyn Handler>) -> Self {
        self.kinds.retain(|known| {
            known
                .as_ref()
                .map_or(true, |kind| kind.name.as_str() != name)
        });
        self.kinds.push(kind);
        self.handlers.insert(name, handler);
        self
    }

    /// Wraps every attempt; the first layer added is the outermost.
    #[must_use]
    pub fn layer(mut self, layer: impl Layer) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Derives jobs from rows: whichever process leads runs the pair's query on its cadence, and every
    /// row without a live job gets one.
    #[must_use]
    pub fn pair(mut self, pair: Pair) -> Self {
        self.pairs.retain(|known| known.name != pair.name);
        self.pairs.push(pair);
        self
    }

    /// Declares a job that recurs: it is written if the table of crons has none of that name, and from
    /// then on the table rules. One that is declared no more still fires, until it is removed.
    #[must_use]
    pub fn cron(mut self, cron: Cron) -> Self {
        self.crons.push(cron);
        self
    }

    /// How it works.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Works until SIGTERM or Ctrl-C, then lets running jobs finish; a second signal gives them back.
    ///
    /// # Errors
    /// As [`Worker::run_until`].
    pub async fn run(self) -> Result<Tally> {
        let stopper = Stopper::default();
        let signals = Signals::listen()?;
        tokio::select! {
            tally = self.run_until(stopper.stop()) => tally,
            never = signals.ask(&stopper) => match never {},
        }
    }

    /// Works until nothing is due.
    ///
    /// # Errors
    /// As [`Worker::run_until`].
    pub async fn run_once(mut self) -> Result<Tally> {
        self.options.once = true;
        self.run_until(Stopper::default().stop()).await
    }

    /// Works until it is asked to stop, or with `once` until nothing is due.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it has nothing to do or a declaration breaks a rule, and whatever the
    /// store answers to joining.
    pub async fn run_until(self, stop: Stop) -> Result<Tally> {
        let kinds = self.kinds.into_iter().collect::<Result<Vec<Kind>>>()?;
        self.options.check()?;
        if kinds.is_empty() {
            return Err(Error::invalid("the worker has no handlers"));
        }
        match &self.from {
            From::Store(rowlock) => declare(rowlock, kinds, &self.pairs, &self.crons).await?,
            From::Dispatcher(..) if self.pairs.is_empty() && self.crons.is_empty() => {}
            From::Dispatcher(..) => {
                return Err(Error::invalid(
                    "a worker without a store can't lead pairs or crons: declare them where the drain runs",
                ));
            }
        }
        let layers: Arc<[_]> = self.layers.into();
        let mut handlers = BTreeMap::new();
        for (name, handler) in self.handlers {
            let layered = match layers.is_empty() {
                true => handler,
                false => Arc::new(Layered {
                    layers: Arc::clone(&layers),
                    handler,
                }),
            };
            handlers.insert(Name::new(name)?, layered);
        }
        Shift::begin(self.from, handlers, &self.pairs, self.options)
            .await?
            .work(stop)
            .await
    }
}

/// Where a worker's jobs come from.
#[derive(Clone)]
enum From {
    Store(Rowlock),
    Dispatcher(Arc<dyn Dispatch>, Clock),
}

impl From {
    fn dispatch(&self) -> Arc<dyn Dispatch> {
        match self {
            Self::Store(rowlock) => rowlock.engine(),
            Self::Dispatcher(dispatcher, _) => Arc::clone(dispatcher),
        }
    }

    fn clock(&self) -> &Clock {
        match self {
            Self::Store(rowlock) => rowlock.clock(),
            Self::Dispatcher(_, clock) => clock,
        }
    }

    fn store(&self) -> Option<Rowlock> {
        match self {
            Self::Store(rowlock) => Some(rowlock.clone()),
            Self::Dispatcher(..) => None,
        }
    }
}

/// Writes down what this worker brings along and the store lacks, and names what differs.
async fn declare(
    rowlock: &Rowlock,
    kinds: Vec<Kind>,
    pairs: &[Pair],
    crons: &[Cron],
) -> Result<()> {
    let kinds = with_kinds_of(pairs, kinds)?;
    for drift in rowlock.engine().add_kinds(&kinds).await? {
        let differences = drift.differences.join(", ");
        log::warn!(
            kind = %drift.kind,
            differences,
            "the kind table differs from this worker's declaration: the table rules, `rowlock apply` writes it"
        );
    }
    declare_pairs(rowlock, pairs).await?;
    declare_crons(rowlock, crons).await
}

/// A pair's kind may be run elsewhere: it has a row all the same.
fn with_kinds_of(pairs: &[Pair], mut kinds: Vec<Kind>) -> Result<Vec<Kind>> {
    for pair in pairs {
        pair.check()?;
        if !kinds.iter().any(|kind| kind.name == pair.kind) {
            let mut kind = Kind::new(pair.kind.as_str())?;
            kind.key.clone_from(&pair.key);
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

/// Adds the pairs that the table lacks, and names those whose row differs.
async fn declare_pairs(rowlock: &Rowlock, pairs: &[Pair]) -> Result<()> {
    if pairs.is_empty() {
        return Ok(());
    }
    let became = rowlock.schedule().declare_pairs(pairs, false).await?;
    for (pair, applied) in pairs.iter().zip(became) {
        if let Applied::Changed(differences) = applied {
            log::warn!(
                pair = %pair.name,
                differences = differences.join(", "),
                "the table of pairs differs from this worker's declaration: the table rules, `rowlock apply` writes it"
            );
        }
        for warning in pair.warnings() {
            log::warn!(pair = %pair.name, "{warning}");
        }
    }
    Ok(())
}

/// Adds the crons that have no row yet, and warns of those whose row differs.
async fn declare_crons(rowlock: &Rowlock, crons: &[Cron]) -> Result<()> {
    let applied = reconcile::declare_crons(&*rowlock.schedule(), crons, false).await?;
    for (cron, applied) in crons.iter().zip(applied) {
        if let Applied::Changed(differences) = applied {
            let differences = differences.join(", ");
            log::warn!(
                cron = %cron.name,
                differences,
                "the cron table differs from this worker's declaration: the table rules, `rowlock apply` writes it"
            );
        }
    }
    Ok(())
}

impl Options {
    /// The shortest lease: a busy machine may keep a process from its heartbeat for longer than a shorter one.
    pub const SHORTEST_LEASE: Duration = Duration::from_millis(500);
    /// The shortest time between two looks.
    pub const SHORTEST_POLL: Duration = Duration::from_millis(10);

    fn check(&self) -> Result<()> {
        if self.concurrency == 0 {
            return Err(Error::invalid(
                "the worker has no slots: set concurrency to 1 or more",
            ));
        }
        let times = Self::check_times(self.lease, self.poll);
        times.map_err(|err| Error::invalid(format!("the worker's {err}")))
    }

    /// What holds for a worker in Rust and for one that rowlock.toml describes.
    pub(crate) fn check_times(lease: Duration, poll: Duration) -> Result<()> {
        let wrong = match () {
            () if lease < Self::SHORTEST_LEASE => "lease is too short: use 500ms or more",
            () if poll < Self::SHORTEST_POLL => "poll is too short: use 10ms or more",
            () => return Ok(()),
        };
        Err(Error::invalid(wrong))
    }
}
