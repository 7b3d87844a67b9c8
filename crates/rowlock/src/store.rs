//! The handle an application keeps: a store and its clock.

use std::sync::Arc;

use crate::clock::Clock;
use crate::engine::{Engine, Operate};
use crate::error::{Error, Result};
use crate::job::{Enqueueable, NewJob};
use crate::stage::Enqueued;

/// An open store. Cheap to clone.
#[derive(Clone)]
pub struct Rowlock {
    store: Arc<dyn Store>,
    clock: Clock,
}

/// What an engine offers, as one object.
trait Store: Engine + Operate {}
impl<T: Engine + Operate> Store for T {}

impl std::fmt::Debug for Rowlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rowlock")
            .field(&self.engine().capabilities().name)
            .finish()
    }
}

impl Rowlock {
    /// Opens the store at a URL; its schema must be up to date.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL of no engine, [`Error::Schema`] and [`Error::Unreachable`] as
    /// the engine finds it.
    pub fn open(url: &str) -> Result<Self> {
        #[cfg(feature = "sqlite")]
        if url.starts_with("sqlite:") {
            use crate::engine::sqlite::{Address, Sqlite};
            let clock = Clock::system();
            let engine = Sqlite::open(Address::parse(url)?, clock.clone())?;
            return Ok(Self::with(engine, clock));
        }
        Err(Error::invalid(format!(
            "{url:?} is not a store this version knows: write sqlite:PATH"
        )))
    }

    /// A store with an engine and a clock of the caller's choice.
    pub fn with(engine: impl Engine + Operate, clock: Clock) -> Self {
        Self {
            store: Arc::new(engine),
            clock,
        }
    }

    /// Stages a job in a transaction of its own.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the payload lacks a field of the kind's key, [`Error::Unavailable`]
    /// when the store is busy.
    pub async fn enqueue(&self, job: &impl Enqueueable) -> Result<Enqueued> {
        let answers = self.enqueue_many(vec![job.new_job()?]).await;
        answers
            .map_err(Error::alone)?
            .pop()
            .ok_or_else(|| Error::Bug("an enqueue had no answer".to_owned()))
    }

    /// Stages jobs in one transaction: all of them or none.
    ///
    /// # Errors
    /// As [`Rowlock::enqueue`]; [`Error::InvalidAt`] names the job.
    pub async fn enqueue_many(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        self.engine().stage(jobs).await
    }

    /// The journey.
    #[must_use]
    pub fn engine(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.store) as Arc<dyn Engine>
    }

    /// What operators read and change.
    #[must_use]
    pub fn operate(&self) -> &dyn Operate {
        &*self.store
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
}
