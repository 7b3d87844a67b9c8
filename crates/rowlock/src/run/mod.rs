//! Run: a worker keeps its slots busy with claimed jobs until it is asked to stop.
//!
//! In: handlers by kind. Out: a verdict for every job it held, or none for those whose lease was
//! lost. It may crash anywhere: its lease runs out and others take over.

mod attempt;
mod builtin;
mod context;
mod fetch;
mod handler;
mod heartbeat;
mod held;
mod local;
mod pulse;
mod shift;
mod stop;
pub mod task;

pub use builtin::Builtin;
pub use context::Context;
pub use handler::Handler;
pub use pulse::Pulse;
pub use stop::{Stop, Stopper};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::job::{Kind, Name};
use crate::store::Rowlock;

use self::shift::Shift;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many jobs run at once.
    pub concurrency: usize,
    /// How many of them may be of a queue; queues that aren't named have no limit of their own.
    pub queue_concurrency: BTreeMap<Name, usize>,
    /// The queues it works; none: every queue.
    pub queues: Vec<Name>,
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
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 8,
            queue_concurrency: BTreeMap::new(),
            queues: Vec::new(),
            lease: Duration::from_secs(30),
            grace: Duration::from_secs(25),
            poll: Duration::from_secs(1),
            once: false,
            pulse: Pulse::default(),
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
/// # async fn example() -> rowlock::Result<()> {
/// use rowlock::run::Stopper;
/// use rowlock::{Kind, Outcome, Rowlock, Worker};
///
/// let rowlock = Rowlock::open("sqlite:app.db")?;
/// let stopper = Stopper::default();
/// Worker::new(rowlock)
///     .handle(Kind::new("greet")?, |job: rowlock::Context| async move {
///         println!("hello {}", job.payload);
///         Outcome::Done
///     })
///     .run(stopper.stop())
///     .await?;
/// # Ok(())
/// # }
/// ```
pub struct Worker {
    rowlock: Rowlock,
    kinds: Vec<Kind>,
    handlers: BTreeMap<Name, Arc<dyn Handler>>,
    options: Options,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("kinds", &self.kinds)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker that knows no kind yet.
    #[must_use]
    pub fn new(rowlock: Rowlock) -> Self {
        Self {
            rowlock,
            kinds: Vec::new(),
            handlers: BTreeMap::new(),
            options: Options::default(),
        }
    }

    /// Runs jobs of `kind` with `handler`. A second handler for a kind takes the place of the first.
    #[must_use]
    pub fn handle(mut self, kind: Kind, handler: impl Handler) -> Self {
        self.kinds.retain(|known| known.name != kind.name);
        self.handlers.insert(kind.name.clone(), Arc::new(handler));
        self.kinds.push(kind);
        self
    }

    /// How it works.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Works until it is asked to stop, or with `once` until nothing is due.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it has nothing to do, and whatever the store answers to joining.
    pub async fn run(self, stop: Stop) -> Result<Tally> {
        if self.handlers.is_empty() {
            return Err(Error::invalid("the worker has no handlers"));
        }
        if self.options.concurrency == 0 {
            return Err(Error::invalid(
                "the worker has no slots: set concurrency to 1 or more",
            ));
        }
        if self.options.lease < Duration::from_millis(100) {
            return Err(Error::invalid(
                "the worker's lease is too short: use 100ms or more",
            ));
        }
        if self.options.poll.is_zero() {
            return Err(Error::invalid(
                "the worker's poll is zero: use 10ms or more",
            ));
        }
        let engine = self.rowlock.engine();
        for drift in engine.add_kinds(&self.kinds).await? {
            let differences = drift.differences.join(", ");
            tracing::warn!(
                kind = %drift.kind,
                differences,
                "the kind table differs from this worker's declaration: the table rules, `rowlock apply` writes it"
            );
        }
        Shift::begin(
            engine,
            self.rowlock.clock().clone(),
            self.handlers,
            self.options,
        )
        .await?
        .work(stop)
        .await
    }
}
