//! The handle an application keeps: a store and its clock.

use std::sync::Arc;

use crate::clock::Clock;
use crate::engine::{Browse, Engine, Lead, Operate, Routes, Schedule, Watch};
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
trait Store: Engine + Operate + Browse + Schedule + Lead + Routes + Watch {}
impl<T: Engine + Operate + Browse + Schedule + Lead + Routes + Watch> Store for T {}

impl std::fmt::Debug for Rowlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rowlock")
            .field(&self.engine().capabilities().name)
            .finish()
    }
}

impl Rowlock {
    /// Opens the store at a URL, of either engine; its schema must be up to date.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL of no engine, [`Error::Schema`] and [`Error::Unreachable`] as
    /// the engine finds it.
    pub async fn connect(url: &str) -> Result<Self> {
        #[cfg(feature = "postgres")]
        if is_postgres(url) {
            use crate::engine::postgres::{Address, Postgres};
            let clock = Clock::system();
            let engine = Postgres::open(Address::parse(url)?, clock.clone()).await?;
            return Ok(Self::with(engine, clock));
        }
        Self::open(url)
    }

    /// Opens the SQLite store at a URL; its schema must be up to date. A server has to be waited for:
    /// see [`Rowlock::connect`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL of another engine or of none, [`Error::Schema`] and
    /// [`Error::Unreachable`] as the engine finds it.
    pub fn open(url: &str) -> Result<Self> {
        #[cfg(feature = "sqlite")]
        if url.starts_with("sqlite:") {
            use crate::engine::sqlite::{Address, Sqlite};
            let clock = Clock::system();
            let engine = Sqlite::open(Address::parse(url)?, clock.clone())?;
            return Ok(Self::with(engine, clock));
        }
        // The URL of another store may have a password in it: no more than its scheme is repeated.
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        Err(Error::invalid(match is_postgres(url) {
            true if cfg!(feature = "postgres") => {
                "a PostgreSQL server has to be waited for: use Rowlock::connect(url).await"
                    .to_owned()
            }
            true => "PostgreSQL needs the feature `postgres` of the crate rowlock".to_owned(),
            false => format!(
                "{scheme:?} is not a store this version knows: write sqlite:PATH or postgres://..."
            ),
        }))
    }

    /// A store with an engine and a clock of the caller's choice.
    pub fn with(
        engine: impl Engine + Operate + Browse + Schedule + Lead + Routes + Watch,
        clock: Clock,
    ) -> Self {
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

    /// Looks that stay cheap however much the store holds.
    #[must_use]
    pub fn browse(&self) -> &dyn Browse {
        &*self.store
    }

    /// What people declare, look at and stop.
    #[must_use]
    pub fn schedule(&self) -> Arc<dyn Schedule> {
        Arc::clone(&self.store) as Arc<dyn Schedule>
    }

    /// What a leader does.
    #[must_use]
    pub fn lead(&self) -> Arc<dyn Lead> {
        Arc::clone(&self.store) as Arc<dyn Lead>
    }

    /// Which jobs go by which route.
    #[must_use]
    pub fn routes(&self) -> Arc<dyn Routes> {
        Arc::clone(&self.store) as Arc<dyn Routes>
    }

    /// What pins the server's horizon, and the budgets of workload classes.
    #[must_use]
    pub fn watch(&self) -> Arc<dyn Watch> {
        Arc::clone(&self.store) as Arc<dyn Watch>
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres:") || url.starts_with("postgresql:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_is_refused_is_not_repeated() {
        for (url, word) in [
            ("postgres://ada:hunter2@db/app", "ostgre"),
            ("mysql://ada:hunter2@db/app", "\"mysql\""),
            ("hunter2", "sqlite:PATH"),
        ] {
            let why = Rowlock::open(url).unwrap_err().to_string();
            assert!(why.contains(word) && !why.contains("hunter2"), "{why}");
        }
    }
}
