//! Claim: a worker takes due jobs, best first, under a fresh fence.
//!
//! In: what a worker can run and how much. Out: [`Claimed`] jobs, each fenced by the claim's token.
//! A crash after the commit leaves rows under a worker that falls silent; `expire` gives them back.
//! An answer that is lost on the way leaves rows whose token nobody holds; the owner's next
//! heartbeat releases them.

mod ahead;
mod observer;

pub use ahead::Ahead;
pub use observer::Observer;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::error::Result;
use crate::job::{Backoff, JobId, KeySource, Name, Payload, Token};

/// One worker process, from its start to its end; never used again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(Arc<str>);

impl WorkerId {
    /// An identity for a process: readable, and unique by its random part.
    ///
    /// # Errors
    /// As [`Token::random`].
    pub fn random(host: &str) -> Result<Self> {
        let random = Token::random()?.get();
        let id = format!("{host}:{}:{random:016x}", std::process::id());
        // A host may be called drain: its workers must not be taken for a route, which never expires.
        let id = match id.starts_with(Self::ROUTE) {
            true => format!("host-{id}"),
            false => id,
        };
        Ok(Self(id.into()))
    }

    /// The holder of everything that was sent by a route, whichever drain sent it.
    #[must_use]
    pub fn route(route: &Name) -> Self {
        Self(format!("{}{route}", Self::ROUTE).into())
    }

    /// What the identity of a route begins with.
    pub const ROUTE: &'static str = "drain:";

    /// What the store holds.
    pub(crate) fn stored(text: String) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Which queue is served first when several have work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum QueueOrder {
    /// In turn, an equal share for each.
    #[default]
    Fair,
    /// As they are named: a queue gets something only when those before it have nothing due.
    Strict,
    /// In turn, a share by weight for each; a queue without one has weight 1.
    Weighted(BTreeMap<Name, u32>),
}

impl QueueOrder {
    /// How many of `limit` jobs a queue gets in the first round, beside the others in `queues`.
    #[must_use]
    pub fn share(&self, queue: &Name, queues: &[Name], limit: usize) -> usize {
        match self {
            Self::Strict => limit,
            Self::Fair => limit.div_ceil(queues.len().max(1)),
            Self::Weighted(weights) => {
                let weight = |name: &Name| {
                    let set = weights.get(name).copied().unwrap_or(1);
                    usize::try_from(set.max(1)).unwrap_or(1)
                };
                let all: usize = queues.iter().map(weight).sum();
                (limit * weight(queue)).div_ceil(all.max(1))
            }
        }
    }
}

/// What a worker asks for.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Who asks.
    pub worker: WorkerId,
    /// The fence of everything this claim returns. The worker counts it as held before it asks.
    pub token: Token,
    /// The kinds it can run; others are never touched.
    pub kinds: Vec<Name>,
    /// The queues it works; none: every queue.
    pub queues: Vec<Name>,
    /// Which of them goes first.
    pub order: QueueOrder,
    /// The most it takes.
    pub limit: usize,
    /// The most it takes from a queue; queues that aren't named have no limit of their own.
    pub caps: BTreeMap<Name, usize>,
    /// Instead of ordinary jobs: the suspect jobs that are most wanted. A worker asks for one.
    pub suspect: bool,
    /// Whoever asks goes when there is nothing: the answer has to be sure, whatever that costs.
    pub thorough: bool,
    /// A drain's claim: what goes by this route, of the kinds named or, with none, of every kind.
    /// Without a route: what goes by none.
    pub route: Option<Name>,
}

/// The answer to a claim.
#[derive(Debug, Default)]
pub struct Claimed {
    /// The jobs, best first.
    pub jobs: Vec<ClaimedJob>,
    /// When the next job that this claim would have taken becomes due.
    pub next_due: Option<Timestamp>,
    /// After an empty answer: how long to wait for a wake-up before asking again, if the engine has
    /// an opinion; otherwise as the worker is set to.
    pub rest: Option<Duration>,
}

/// A job in a worker's hands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClaimedJob {
    /// Its number.
    pub id: JobId,
    /// The fence.
    pub token: Token,
    /// What has to be done.
    pub kind: Name,
    /// Where it waited.
    pub queue: Name,
    /// Higher goes first.
    pub priority: i16,
    /// The data.
    pub payload: Payload,
    /// This attempt's number, from 1 on.
    pub attempt: u32,
    /// How many attempts it may use.
    pub max_attempts: u32,
    /// When it was due.
    pub scheduled_at: Timestamp,
    /// Its unique key.
    pub unique_key: Option<String>,
    /// Its labels.
    pub tags: Vec<Name>,
    /// The trace context it was staged in.
    pub trace_context: Option<String>,
    /// How long it waits before another attempt.
    pub backoff: Backoff,
    /// How long this attempt may run.
    pub timeout: Duration,
    /// Whether its last holder died: it runs alone and pays for itself.
    pub suspect: bool,
    /// Where the engine found it, for finding it again; nothing depends on it.
    pub(crate) segment: Option<i16>,
    /// What its idempotency key is made of.
    pub(crate) key: KeySource,
}

impl ClaimedJob {
    /// The key of this job and of no other: the same in every attempt, after a retry by hand, a failover and a way
    /// through Redis. Give it to the other end of an effect, which then makes the effect once.
    ///
    /// # Errors
    /// [`Error::Unavailable`](crate::Error::Unavailable) for a job that was sent by a drain of a version without keys,
    /// [`Error::Schema`](crate::Error::Schema) for a store that has lost its own number.
    pub fn idempotency_key(&self) -> Result<String> {
        self.key.key(self.id)
    }
}

#[cfg(test)]
impl ClaimedJob {
    /// Nothing special.
    pub(crate) fn sample(id: i64, token: i64) -> Self {
        let name = |text: &str| Name::new(text).unwrap();
        Self {
            id: JobId(id),
            token: Token::stored(token),
            kind: name("send_email"),
            queue: name("mail"),
            priority: 0,
            payload: Payload::parse("{}").unwrap(),
            attempt: 1,
            max_attempts: 20,
            scheduled_at: Timestamp::UNIX_EPOCH,
            unique_key: None,
            tags: Vec::new(),
            trace_context: None,
            backoff: Backoff::default(),
            timeout: Duration::from_secs(60),
            suspect: false,
            segment: None,
            key: KeySource::Row {
                store: Some(7),
                created_at: Timestamp::UNIX_EPOCH,
            },
        }
    }
}

/// The answer to a heartbeat.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// Held jobs that somebody wants cancelled.
    pub cancel_requested: Vec<JobId>,
    /// Held jobs of a queue or kind that is paused: those that haven't started go back.
    pub stopped: Vec<JobId>,
    /// How many rows were released because a claim's answer never arrived.
    pub released: usize,
}

/// What an expiry found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Expired {
    /// Workers that were silent for a whole lease.
    pub workers: Vec<WorkerId>,
    /// Jobs that went back to pending.
    pub returned: usize,
    /// The shortest lease among the living: whoever watches must look often enough for it.
    pub shortest_lease: Option<Duration>,
    /// Jobs that ended, because their attempts were used up or a cancel was asked for.
    pub ended: usize,
    /// Workers that a clock takes for silent and that weren't watched for a whole lease yet. A hint:
    /// the clock may have jumped.
    pub doubted: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_never_taken_for_a_route() {
        let route = WorkerId::route(&Name::new("drain").unwrap());
        assert!(route.as_str().starts_with(WorkerId::ROUTE));
        for host in ["drain", "drain:", "drains", "a"] {
            let worker = WorkerId::random(host).unwrap();
            assert!(!worker.as_str().starts_with(WorkerId::ROUTE), "{worker}");
            assert!(worker.as_str().contains(host), "{worker}");
        }
    }
}
