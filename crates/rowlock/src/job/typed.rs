//! A job as a Rust type: its fields are the payload, its constants the kind's declaration.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Backoff, Kind, Name, NewJob, Retention, UniqueUntil};
use crate::error::{Error, Result};

/// A kind of job, declared as a type.
///
/// ```
/// use rowlock::Job;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct CreateDatabase {
///     id: i64,
/// }
///
/// impl Job for CreateDatabase {
///     const KIND: &'static str = "create_database";
///     const KEY: &'static [&'static str] = &["id"]; // one live job per id
/// }
/// ```
pub trait Job: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The kind's name.
    const KIND: &'static str;
    /// The fields that make a job unique; none: not unique.
    const KEY: &'static [&'static str] = &[];
    /// How long the key stays taken.
    const UNIQUE_UNTIL: UniqueUntil = UniqueUntil::Finished;
    /// Where its jobs wait.
    const QUEUE: &'static str = Kind::DEFAULT_QUEUE;
    /// Higher goes first.
    const PRIORITY: i16 = 0;
    /// How many attempts a job may use.
    const MAX_ATTEMPTS: u32 = Kind::DEFAULT_MAX_ATTEMPTS;
    /// How long one attempt may run.
    const TIMEOUT: Duration = Kind::DEFAULT_TIMEOUT;

    /// How long it waits between attempts.
    #[must_use]
    fn backoff() -> Backoff {
        Backoff::default()
    }

    /// How long finished jobs are kept.
    #[must_use]
    fn retention() -> Retention {
        Retention::default()
    }

    /// The declaration.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a name breaks the rule of [`Name`].
    fn kind() -> Result<Kind, Error> {
        let mut kind = Kind::new(Self::KIND)?;
        kind.queue = Name::new(Self::QUEUE)?;
        kind.priority = Self::PRIORITY;
        kind.max_attempts = Self::MAX_ATTEMPTS;
        kind.timeout = Self::TIMEOUT;
        kind.key = Self::KEY
            .iter()
            .copied()
            .map(Name::new)
            .collect::<Result<_>>()?;
        kind.unique_until = Self::UNIQUE_UNTIL;
        kind.backoff = Self::backoff();
        kind.retention = Self::retention();
        Ok(kind)
    }
}

/// What can be enqueued: a [`Job`], or a [`NewJob`] with settings of its own.
pub trait Enqueueable {
    /// The job to stage.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the payload or the declaration breaks a rule.
    fn new_job(&self) -> Result<NewJob, Error>;
}

impl<J: Job> Enqueueable for J {
    fn new_job(&self) -> Result<NewJob, Error> {
        NewJob::of(self)
    }
}

impl Enqueueable for NewJob {
    fn new_job(&self) -> Result<NewJob, Error> {
        Ok(self.clone())
    }
}
