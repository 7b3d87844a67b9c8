//! Stage: a job comes into the store, in a transaction of ours or of the caller's.
//!
//! In: a checked [`NewJob`](crate::NewJob). Out: [`Enqueued`], once the statement has run. A crash
//! before the commit leaves nothing; a crash after it leaves a job that somebody will run.

#[cfg(feature = "sqlite")]
mod rusqlite;

#[cfg(feature = "sqlite")]
pub use self::rusqlite::{enqueue_blocking, enqueue_many_blocking};

use serde::Serialize;

use crate::job::JobId;

/// What became of an enqueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It waits to be claimed.
    Queued,
    /// A live job of this kind has the same key; the id is that job's.
    Duplicate,
    /// It is stored, and a switch keeps it from being claimed for now.
    Held,
    /// A switch refused it; nothing is stored.
    Rejected,
}

impl Status {
    /// The word that is shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Duplicate => "duplicate",
            Self::Held => "held",
            Self::Rejected => "rejected",
        }
    }
}

/// The answer to an enqueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Enqueued {
    /// The job, or the holder of the key; none when a switch refused it.
    pub id: Option<JobId>,
    /// What became of it.
    pub status: Status,
}
