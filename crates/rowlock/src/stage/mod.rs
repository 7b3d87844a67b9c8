//! Stage: a job comes into the store, in a transaction of ours or of the caller's.
//!
//! In: a checked [`NewJob`](crate::NewJob). Out: [`Enqueued`], once the statement has run. A crash
//! before the commit leaves nothing; a crash after it leaves a job that somebody will run.

#[cfg(feature = "diesel-sqlite")]
mod diesel;
mod enqueue;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod rusqlite;
#[cfg(feature = "sqlx-sqlite")]
mod sqlx;

pub use self::enqueue::{enqueue, enqueue_blocking, enqueue_many, enqueue_many_blocking};

use serde::Serialize;

use crate::error::Result;
use crate::job::{JobId, NewJob};
use crate::store::Rowlock;

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

/// What jobs can be staged on without blocking: a transaction or a connection of sqlx's (features
/// `sqlx-sqlite` and `sqlx-postgres`), tokio-postgres's (`postgres`), diesel-async's
/// (`diesel-async-postgres`) or SeaORM's (`sea-orm-postgres`), or a [`Rowlock`], which stages in a
/// transaction of its own.
///
/// A wrapper of your own can have it by handing the jobs on.
pub trait Stage: Send + Sized {
    /// Stages jobs in the transaction this is in, or in one of its own: all of them or none.
    fn stage(self, jobs: &[NewJob]) -> impl Future<Output = Result<Vec<Enqueued>>> + Send;
}

/// What jobs can be staged on by a call that blocks: a connection, transaction or savepoint of
/// rusqlite's, or a connection of diesel's (features `diesel-sqlite` and `diesel-postgres`).
///
/// A wrapper of your own can have it by handing the jobs on.
pub trait StageBlocking: Sized {
    /// Stages jobs in the transaction this is in, or in one of its own: all of them or none.
    ///
    /// # Errors
    /// As [`enqueue_blocking`].
    fn stage_blocking(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>>;
}

impl Stage for &Rowlock {
    async fn stage(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        self.enqueue_many(jobs.to_vec()).await
    }
}
