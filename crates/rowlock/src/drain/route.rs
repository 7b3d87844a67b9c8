//! A route: which jobs go where.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Sink;
use crate::claim::WorkerId;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::job::Name;

/// Which kinds and queues are drained, and where to.
#[derive(Clone)]
#[non_exhaustive]
pub struct Route {
    /// Its name, which stands in the kind table.
    pub name: Name,
    /// The sink's URL: `redis://...` or `sidekiq+redis://...`. It may have a password in it.
    pub to: String,
    /// The kinds that go by it.
    pub kinds: Vec<Name>,
    /// The queues that go by it, except for kinds with a route of their own.
    pub queues: Vec<Name>,
    /// Whether jobs may be lost that nothing derives again, for a sink that doesn't report back.
    pub lossy: bool,
    /// The most jobs that wait in the sink: beyond that the rest stays in the store.
    pub ahead: usize,
    /// The most jobs in one claim and one push.
    pub batch: usize,
    /// For Sidekiq: the class and the arguments of each kind.
    pub sidekiq: BTreeMap<Name, SidekiqJob>,
}

/// How a kind looks in Sidekiq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidekiqJob {
    /// The worker's class.
    pub class: String,
    /// The payload's fields in the order of `perform`'s arguments; none: the payload is the one
    /// argument.
    pub args: Vec<Name>,
}

impl Route {
    /// How many jobs wait in a sink unless a route says otherwise.
    pub const AHEAD: usize = 20_000;
    /// How many jobs are claimed and sent at once unless a route says otherwise.
    pub const BATCH: usize = 1_000;

    /// A route that nothing goes by yet; named after the sink's scheme.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL of no sink.
    pub fn to(url: impl Into<String>) -> Result<Self> {
        let to = url.into();
        let name = match scheme(&to) {
            "redis" => "redis",
            "sidekiq+redis" => "sidekiq",
            // The URL may have a password in it: no more than its scheme is repeated.
            other => {
                return Err(Error::invalid(format!(
                    "{other:?} is not a sink: write redis://... or sidekiq+redis://..."
                )));
            }
        };
        Ok(Self {
            name: Name::new(name)?,
            to,
            kinds: Vec::new(),
            queues: Vec::new(),
            lossy: false,
            ahead: Self::AHEAD,
            batch: Self::BATCH,
            sidekiq: BTreeMap::new(),
        })
    }

    /// Sends a kind by it.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the name breaks the rule of [`Name`].
    pub fn kind(mut self, kind: impl Into<String>) -> Result<Self> {
        self.kinds.push(Name::new(kind)?);
        Ok(self)
    }

    /// Sends a queue by it.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the name breaks the rule of [`Name`].
    pub fn queue(mut self, queue: impl Into<String>) -> Result<Self> {
        self.queues.push(Name::new(queue)?);
        Ok(self)
    }

    /// Whether its sink says what became of a job.
    #[must_use]
    pub fn reports_back(&self) -> bool {
        scheme(&self.to) == "redis"
    }

    /// Who holds what was sent by it.
    #[must_use]
    pub fn holder(&self) -> WorkerId {
        WorkerId::route(&self.name)
    }

    /// The sink; nothing is connected yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL that can't be read, or a sink that this build lacks.
    pub fn sink(&self, clock: &Clock) -> Result<Arc<dyn Sink>> {
        super::sinks::open(self, clock)
    }
}

fn scheme(url: &str) -> &str {
    url.split_once(':').map_or("", |(scheme, _)| scheme)
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("name", &self.name)
            .field("kinds", &self.kinds)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}
