//! Which jobs go by which route, and what a drain asks of the store.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Map;

use super::Applied;
use crate::claim::WorkerId;
use crate::error::{Error, Result};
use crate::job::{Backoff, JobId, Name, Token};

/// What a drain needs beside the journey. A job goes by its kind's route; if that is direct, by its
/// queue's. The route is looked up at the claim, so that a change counts for everything unsent.
#[async_trait]
pub trait Routes: Send + Sync + 'static {
    /// A number of this store's own, the same for as long as it exists: two stores that send to the
    /// same place tell their jobs apart by it.
    async fn store_id(&self) -> Result<u64>;

    /// Sends exactly these kinds and queues by a route; others that went by it go directly. A kind or
    /// a queue without a row gets one. Without `change` only kinds and queues without a row are
    /// written, and the answer says what would change.
    async fn declare_route(
        &self,
        route: &Name,
        kinds: &[Name],
        queues: &[Name],
        change: bool,
    ) -> Result<Applied>;

    /// Every route that a kind or a queue goes by, or that still holds jobs, by name.
    async fn routes(&self) -> Result<Vec<RouteRow>>;

    /// A route is alive: its row is written if it has none, otherwise its lease begins anew. Answers
    /// with sent jobs that somebody wants cancelled or that a switch has stopped. Nothing is released,
    /// and [`expire`](super::Engine::expire) never gives a route up.
    async fn keep_route(&self, holder: &WorkerId, lease: Duration) -> Result<Vec<Recalled>>;

    /// What a route holds, by rising id after `after`.
    async fn sent(
        &self,
        holder: &WorkerId,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<SentJob>>;

    /// Removes the row of a route that holds nothing; what it holds stays with it otherwise.
    async fn forget_route(&self, holder: &WorkerId) -> Result<bool>;
}

/// A route and how it is doing.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RouteRow {
    /// Its name.
    pub route: Name,
    /// The kinds that go by it.
    pub kinds: Vec<Name>,
    /// The queues that go by it, except for kinds with a route of their own.
    pub queues: Vec<Name>,
    /// Jobs that are due and not sent, counted up to [`RouteRow::MOST`].
    pub unsent: u64,
    /// How long the oldest of them has been due, in milliseconds: the lag.
    pub lag_ms: u64,
    /// Jobs that were sent and are not settled, counted up to [`RouteRow::MOST`].
    pub sent: u64,
    /// When a drain was last heard; nothing when none has run yet.
    pub seen_at: Option<Timestamp>,
    /// Whether that was within its lease.
    pub drained: bool,
}

impl RouteRow {
    /// As far as jobs are counted, unsent and sent ones.
    pub const MOST: u64 = 10_000;

    /// Whether more may have been sent than was counted.
    #[must_use]
    pub fn has_sent_more(&self) -> bool {
        self.sent >= Self::MOST
    }

    /// For engines.
    #[must_use]
    pub fn new(route: Name) -> Self {
        Self {
            route,
            kinds: Vec::new(),
            queues: Vec::new(),
            unsent: 0,
            lag_ms: 0,
            sent: 0,
            seen_at: None,
            drained: false,
        }
    }
}

/// A sent job that should not run any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recalled {
    /// The job.
    pub id: JobId,
    /// The claim it was sent under.
    pub token: Token,
    /// Whether somebody wants it cancelled; otherwise a switch has stopped it, and it goes back if it
    /// hasn't begun.
    pub cancel: bool,
}

/// A job that a route holds.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SentJob {
    /// The job.
    pub id: JobId,
    /// The claim it was sent under.
    pub token: Token,
    /// How long ago it was claimed, by the engine's clock; nothing when that clock went backwards.
    pub age: Option<Duration>,
    /// This attempt's number.
    pub attempt: u32,
    /// How many attempts it may use.
    pub max_attempts: u32,
    /// How long it waits before another attempt.
    pub backoff: Backoff,
    /// Whether its last holder died.
    pub suspect: bool,
}

impl SentJob {
    /// For engines.
    #[must_use]
    pub fn new(id: JobId, token: Token) -> Self {
        Self {
            id,
            token,
            age: None,
            attempt: 1,
            max_attempts: 1,
            backoff: Backoff::default(),
            suspect: false,
        }
    }
}

/// What stands in a row that goes by no route.
pub(crate) const DIRECT: &str = "direct";

/// What a declared route means for the rows that there are. PostgreSQL writes them by a function of its
/// own, and wants only the answer.
#[derive(Debug)]
#[cfg_attr(not(feature = "sqlite"), allow(dead_code))]
pub(crate) struct Rerouted {
    /// Kinds without a row.
    pub(crate) new_kinds: Vec<Name>,
    /// Queues without a row.
    pub(crate) new_queues: Vec<Name>,
    /// Kinds whose row changes, with their next route.
    pub(crate) kinds: Vec<(Name, String)>,
    /// Queues whose row changes, with their next route.
    pub(crate) queues: Vec<(Name, String)>,
    /// The answer.
    pub(crate) applied: Applied,
}

impl Rerouted {
    /// Compares a declaration with the route of every kind and every queue that has a row and is
    /// declared or goes by it now.
    pub(crate) fn compare(
        route: &Name,
        declared: (&[Name], &[Name]),
        stored: (&BTreeMap<Name, String>, &BTreeMap<Name, String>),
    ) -> Result<Self> {
        is_a_route(route)?;
        let (new_kinds, kinds) = split(route, declared.0, stored.0);
        let (new_queues, queues) = split(route, declared.1, stored.1);
        let (mut before, mut after) = (Map::new(), Map::new());
        for (of, moved, stored) in [("kind", &kinds, stored.0), ("queue", &queues, stored.1)] {
            for (name, next) in moved {
                let field = format!("{of} {name}");
                before.insert(field.clone(), stored.get(name).cloned().into());
                after.insert(field, next.clone().into());
            }
        }
        let is_new = !new_kinds.is_empty() || !new_queues.is_empty();
        let applied = match Applied::over(Some(&before.into()), &after.into()) {
            Applied::Unchanged if is_new => Applied::Added,
            other => other,
        };
        Ok(Self {
            new_kinds,
            new_queues,
            kinds,
            queues,
            applied,
        })
    }
}

/// Refuses the name that stands for no route.
pub(crate) fn is_a_route(route: &Name) -> Result<()> {
    if route.as_str() == DIRECT {
        return Err(Error::invalid(
            "a route can't be named direct: that is what goes by none",
        ));
    }
    Ok(())
}

/// The names without a row, and those whose row changes.
fn split(
    route: &Name,
    declared: &[Name],
    stored: &BTreeMap<Name, String>,
) -> (Vec<Name>, Vec<(Name, String)>) {
    let mut fresh: Vec<Name> = declared.to_vec();
    fresh.retain(|name| !stored.contains_key(name));
    fresh.sort_unstable();
    fresh.dedup();
    let next = |name: &Name| match declared.contains(name) {
        true => route.as_str(),
        false => DIRECT,
    };
    let moved = stored
        .iter()
        .filter(|(name, now)| next(name) != now.as_str())
        .map(|(name, _)| (name.clone(), next(name).to_owned()))
        .collect();
    (fresh, moved)
}
