//! Settle: what a handler said becomes the job's next state, if the claim still holds.
//!
//! In: an [`Outcome`]. Out: a [`Verdict`] under the claim's token, applied by the engine or refused
//! as lost. A crash before the commit means that the job runs again.

mod complete;
mod group;
mod refused;

pub use complete::{Complete, CompleteBlocking, Completion};
pub(crate) use group::until_written;
pub use group::{Answer, Group};
pub use refused::UNWRITTEN;
pub(crate) use refused::pause;

use std::time::Duration;

use jiff::Timestamp;

use crate::claim::ClaimedJob;
use crate::clock;
use crate::job::{ErrorKind, JobError, JobId, Token};

/// What a handler says about its job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The work is done.
    Done,
    /// There was nothing left to do.
    NotNeeded,
    /// It didn't work this time; `after` replaces the kind's back-off.
    Retry {
        /// What went wrong.
        error: String,
        /// When to try again, if not as the policy says.
        after: Option<Duration>,
    },
    /// Not now; no attempt is charged.
    Snooze(Duration),
    /// It will never work.
    Fail(String),
    /// Called off.
    Cancel,
}

/// The move a settle asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// `settle_done`
    Done,
    /// `settle_not_needed`
    NotNeeded,
    /// `settle_retry`: due again at `at`.
    Retry {
        /// When.
        at: Timestamp,
        /// Why.
        error: JobError,
    },
    /// `settle_snooze`: due again at the time given, the attempt given back.
    Snooze(Timestamp),
    /// `settle_fail`
    Fail(JobError),
    /// `settle_cancelled`
    Cancelled,
    /// `release`: as if it had never been claimed.
    Release,
    /// `send`: a foreign system has it now.
    Sent,
    /// No move: nothing else can be written, so the reason is, and the job stays claimed.
    Note(JobError),
    /// `expire`: whoever had it died. Without a charge the attempt is given back; either way it is a
    /// suspect from now on.
    Expired {
        /// It had begun alone: when it is due again, and the error it pays with.
        charged: Option<(Timestamp, JobError)>,
    },
}

impl Verdict {
    /// Whether the job leaves the queue by it. (A cancel that was asked for makes an end of the
    /// others too.)
    #[must_use]
    pub fn is_end(&self) -> bool {
        matches!(
            self,
            Self::Done | Self::NotNeeded | Self::Fail(_) | Self::Cancelled | Self::Sent
        )
    }
}

/// A verdict on one claimed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The job.
    pub id: JobId,
    /// The claim's token.
    pub token: Token,
    /// The move.
    pub verdict: Verdict,
    /// When the handler really began; a claimed job may lie ready for a while.
    pub started_at: Option<Timestamp>,
}

impl Settlement {
    /// On a job that no handler has begun.
    pub(crate) fn unbegun(id: JobId, token: Token, verdict: Verdict) -> Self {
        Self {
            id,
            token,
            verdict,
            started_at: None,
        }
    }
}

/// Whether a settlement took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The job moved.
    Accepted,
    /// The claim was no longer the current one; nothing was changed.
    LeaseLost,
}

/// Decides the move: this is where attempts are counted and waits are chosen.
#[must_use]
pub fn verdict(job: &ClaimedJob, outcome: Outcome, now: impl FnOnce() -> Timestamp) -> Verdict {
    match outcome {
        Outcome::Done => Verdict::Done,
        Outcome::NotNeeded => Verdict::NotNeeded,
        Outcome::Snooze(time) => Verdict::Snooze(clock::add(now(), time)),
        Outcome::Cancel => Verdict::Cancelled,
        Outcome::Fail(why) => {
            Verdict::Fail(JobError::new(job.attempt, now(), ErrorKind::Error, &why))
        }
        Outcome::Retry { error, after } => {
            let now = now();
            let error = JobError::new(job.attempt, now, ErrorKind::Error, &error);
            after_error(job, error, after, now)
        }
    }
}

/// An attempt has failed: another one after a wait, or the end.
#[must_use]
pub fn after_error(
    job: &ClaimedJob,
    error: JobError,
    after: Option<Duration>,
    now: Timestamp,
) -> Verdict {
    if job.attempt >= job.max_attempts {
        return Verdict::Fail(error);
    }
    let wait = after.unwrap_or_else(|| job.backoff.wait_with_jitter(job.attempt));
    Verdict::Retry {
        at: clock::add(now, wait),
        error,
    }
}
