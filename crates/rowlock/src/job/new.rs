//! A job that isn't in the store yet.

use std::time::Duration;

use jiff::Timestamp;

use super::{Backoff, Job, Kind, Name, Payload, UniqueUntil};
use crate::error::{Error, Result};

/// A job to stage. What isn't said here is looked up in the kind table at the moment of staging.
///
/// ```
/// # fn main() -> rowlock::Result<()> {
/// use rowlock::NewJob;
/// let job = NewJob::new("send_email")?
///     .payload_of(&serde_json::json!({"to": "ada@example.com"}))?
///     .unique("welcome:ada")?
///     .priority(10);
/// # let _ = job; Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    pub(crate) kind: Name,
    pub(crate) payload: Payload,
    pub(crate) queue: Option<Name>,
    pub(crate) priority: Option<i16>,
    pub(crate) due: Due,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) unique_key: Option<String>,
    pub(crate) unique_until: Option<UniqueUntil>,
    pub(crate) tags: Vec<Name>,
    pub(crate) trace_context: Option<String>,
    pub(crate) declared: Option<Box<Kind>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Due {
    Now,
    In(Duration),
    At(Timestamp),
}

impl NewJob {
    /// The longest explicit unique key, in bytes.
    pub const MAX_KEY_BYTES: usize = 64 * 1024;
    /// The most attempts a job may be given.
    pub const MAX_ATTEMPTS: u32 = 1_000_000;

    /// A job with an empty object as its payload, due at once.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the kind breaks the rule of [`Name`].
    pub fn new(kind: impl Into<String>) -> Result<Self> {
        Ok(Self::bare(Name::new(kind)?))
    }

    /// A job of a kind declared in this program. The declaration counts only while the kind table
    /// has no row for it.
    #[must_use]
    pub fn of_kind(kind: Kind) -> Self {
        Self {
            declared: Some(Box::new(kind.clone())),
            ..Self::bare(kind.name)
        }
    }

    /// A job of a type, to be given settings of its own.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the payload or the declaration breaks a rule.
    pub fn of<J: Job>(job: &J) -> Result<Self> {
        Ok(Self::of_kind(J::kind()?).payload(Payload::of(job)?))
    }

    fn bare(kind: Name) -> Self {
        Self {
            kind,
            payload: Payload::default(),
            queue: None,
            priority: None,
            due: Due::Now,
            max_attempts: None,
            backoff: None,
            unique_key: None,
            unique_until: None,
            tags: Vec::new(),
            trace_context: None,
            declared: None,
        }
    }

    /// The data, as checked JSON.
    #[must_use]
    pub fn payload(mut self, payload: Payload) -> Self {
        self.payload = payload;
        self
    }

    /// The data, from any value that serde can write.
    ///
    /// # Errors
    /// [`Error::Invalid`] as in [`Payload::of`].
    pub fn payload_of<T: serde::Serialize>(self, value: &T) -> Result<Self> {
        Ok(self.payload(Payload::of(value)?))
    }

    /// Another queue than the kind's.
    #[must_use]
    pub fn queue(mut self, queue: Name) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Another priority than the kind's; higher goes first.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Not before `delay` has passed.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.due = Due::In(delay);
        self
    }

    /// Not before `at`.
    #[must_use]
    pub fn at(mut self, at: Timestamp) -> Self {
        self.due = Due::At(at);
        self
    }

    /// Another number of attempts than the kind's.
    ///
    /// # Errors
    /// [`Error::Invalid`] for zero and for more than [`NewJob::MAX_ATTEMPTS`].
    pub fn max_attempts(mut self, attempts: u32) -> Result<Self> {
        if attempts == 0 || attempts > Self::MAX_ATTEMPTS {
            return Err(Error::invalid(format!(
                "max_attempts is {attempts}: use 1 to {}",
                Self::MAX_ATTEMPTS
            )));
        }
        self.max_attempts = Some(attempts);
        Ok(self)
    }

    /// Another retry policy than the kind's.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// At most one live job of this kind with this key.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty or huge key, or one with a NUL character.
    pub fn unique(mut self, key: impl Into<String>) -> Result<Self> {
        let key = key.into();
        if key.is_empty() || key.contains('\0') || key.len() > Self::MAX_KEY_BYTES {
            return Err(Error::invalid(format!(
                "a unique key has 1 to {} bytes and no NUL character",
                Self::MAX_KEY_BYTES
            )));
        }
        self.unique_key = Some(key);
        Ok(self)
    }

    /// How long the key stays taken, if not as the kind says.
    #[must_use]
    pub fn unique_until(mut self, until: UniqueUntil) -> Self {
        self.unique_until = Some(until);
        self
    }

    /// A label for finding the job.
    #[must_use]
    pub fn tag(mut self, tag: Name) -> Self {
        if !self.tags.contains(&tag) {
            self.tags.push(tag);
        }
        self
    }

    /// The W3C trace context (`traceparent`) to carry along to whoever runs the job.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a text that isn't one.
    pub fn trace_context(mut self, context: impl Into<String>) -> Result<Self> {
        let context = context.into();
        let lengths: Vec<usize> = context.split('-').map(str::len).collect();
        let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c) || c == '-';
        if lengths != [2, 32, 16, 2] || !context.chars().all(hex) {
            return Err(Error::invalid(format!(
                "{context:?} is not a W3C traceparent: 00-<32 hex digits>-<16>-<2>"
            )));
        }
        self.trace_context = Some(context);
        Ok(self)
    }

    /// What kind of job this is.
    #[must_use]
    pub fn kind(&self) -> &Name {
        &self.kind
    }

    /// When the job is due, seen from `now`.
    #[cfg(feature = "sqlite")]
    pub(crate) fn due_at(&self, now: Timestamp) -> Timestamp {
        match self.due {
            Due::Now => now,
            Due::In(delay) => crate::clock::add(now, delay),
            Due::At(at) => at,
        }
    }
}
