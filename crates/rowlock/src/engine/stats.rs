//! What operators see of the whole.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::claim::WorkerId;
use crate::job::Name;

/// How many jobs stand where. `scheduled`, `retrying` and `held` are parts of `pending`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Waiting, in all.
    pub pending: u64,
    /// Waiting for their time.
    pub scheduled: u64,
    /// Waiting after a failed attempt.
    pub retrying: u64,
    /// Kept back by a switch.
    pub held: u64,
    /// In a worker's hands.
    pub processing: u64,
    /// Done and still kept.
    pub completed: u64,
    /// Given up and still kept.
    pub failed: u64,
    /// Called off and still kept.
    pub cancelled: u64,
    /// How long the job that is due longest has been waiting.
    pub oldest_pending_seconds: Option<f64>,
}

impl Counts {
    /// All of them together.
    #[must_use]
    pub fn sum<'a>(queues: impl Iterator<Item = &'a Self>) -> Self {
        queues.fold(Self::default(), |mut sum, queue| {
            sum.pending += queue.pending;
            sum.scheduled += queue.scheduled;
            sum.retrying += queue.retrying;
            sum.held += queue.held;
            sum.processing += queue.processing;
            sum.completed += queue.completed;
            sum.failed += queue.failed;
            sum.cancelled += queue.cancelled;
            sum.oldest_pending_seconds =
                match (sum.oldest_pending_seconds, queue.oldest_pending_seconds) {
                    (Some(one), Some(other)) => Some(one.max(other)),
                    (one, other) => one.or(other),
                };
            sum
        })
    }
}

/// Counts in all and by queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stats {
    /// In all.
    #[serde(flatten)]
    pub total: Counts,
    /// By queue.
    pub queues: BTreeMap<Name, Counts>,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueRow {
    /// Its name.
    pub queue: Name,
    /// Whether claims from it are stopped.
    pub paused: bool,
    /// Why, if somebody said.
    pub reason: Option<String>,
    /// What is in it.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A worker.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerRow {
    /// Who.
    pub id: WorkerId,
    /// Its lease.
    pub lease: Duration,
    /// When it joined.
    pub joined_at: Timestamp,
    /// When it was heard last, by its own clock.
    pub seen_at: Timestamp,
    /// How many jobs it holds.
    pub holds: u64,
    /// Whether it may hold more: a look that stays cheap doesn't see all of them.
    pub more: bool,
}
