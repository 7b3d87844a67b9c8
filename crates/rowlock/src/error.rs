//! Every error of the library, sorted by what the caller can do about it.
//!
//! Database codes become one of these in `engine/<db>/error.rs` and nowhere else.

use crate::job::{JobId, JobState};

/// The result of every fallible call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, named after the remedy.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input breaks a rule: correct it; trying again changes nothing.
    #[error("{0}")]
    Invalid(String),

    /// One job of a batch breaks a rule; nothing of the batch was staged.
    #[error("job {} of the batch: {why}", index + 1)]
    InvalidAt {
        /// Which one, from 0 on.
        index: usize,
        /// The rule.
        why: String,
    },

    /// The database is busy or a transaction lost a race: wait and try again.
    #[error("not available right now: {0}")]
    Unavailable(String),

    /// The database can't be opened or reached, or is read-only: mend the address or the rights.
    #[error("{0}")]
    Unreachable(String),

    /// The file is no database, belongs to someone else, or has another schema than this version.
    #[error("{0}")]
    Schema(String),

    /// There is no room left for the write; nothing was changed.
    #[error("no space left for the database: {0}")]
    NoSpace(String),

    /// There is no such job, queue or kind.
    #[error("{0} not found")]
    NotFound(String),

    /// The claim is no longer ours: drop the result, someone else has the job.
    #[error("the lease is lost: another worker may have the job now")]
    LeaseLost,

    /// The job is in a state that has no such move.
    #[error("job {id} is {state}: {why}")]
    Conflict {
        /// The job.
        id: JobId,
        /// The state it is in.
        state: JobState,
        /// Why the move is refused, and what to do instead.
        why: String,
    },

    /// A log for [`verify`](crate::verify) can't be written. What it was to tell has happened all the
    /// same: don't do it again, and go on with a new log.
    #[error("{0}")]
    Log(String),

    /// Something that can't happen happened: please report it.
    #[error("internal error, please report it: {0}")]
    Bug(String),
}

impl Error {
    /// Shorthand for the caller's mistakes.
    pub(crate) fn invalid(why: impl Into<String>) -> Self {
        Self::Invalid(why.into())
    }

    /// The same error for a job that was staged alone.
    pub(crate) fn alone(self) -> Self {
        match self {
            Self::InvalidAt { why, .. } => Self::Invalid(why),
            other => other,
        }
    }

    /// The same error for a job of a batch.
    pub(crate) fn at(self, index: usize) -> Self {
        match self {
            Self::Invalid(why) => Self::InvalidAt { index, why },
            other => other,
        }
    }

    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}
