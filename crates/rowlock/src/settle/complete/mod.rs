//! Completing inside the caller's own transaction: the effect and the job's end are one commit.
//!
//! In: a claim, and a transaction of the caller's. Out: the job is done if and only if that
//! transaction commits. A crash before the commit leaves neither, and the job runs again.

#[cfg(feature = "diesel-sqlite")]
mod diesel;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod rusqlite;
#[cfg(feature = "sqlx-sqlite")]
mod sqlx;

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::job::{JobId, Token};

/// The end of one attempt, to be written in a transaction of the caller's.
#[derive(Debug, Clone)]
pub struct Completion {
    pub(crate) id: JobId,
    pub(crate) token: Token,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) now: Timestamp,
    // Only PostgreSQL keeps jobs in segments.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    pub(crate) segment: Option<i16>,
}

/// A transaction in which a job can be completed: sqlx's (features `sqlx-sqlite` and
/// `sqlx-postgres`), tokio-postgres's (`postgres`), diesel-async's (`diesel-async-postgres`) or
/// SeaORM's (`sea-orm-postgres`).
///
/// A wrapper of your own can have it by handing the completion on.
pub trait Complete: Send + Sized {
    /// Writes it.
    fn complete(self, completion: &Completion) -> impl Future<Output = Result<()>> + Send;
}

/// A transaction of rusqlite's or diesel's (features `diesel-sqlite` and `diesel-postgres`) in which a
/// job can be completed.
///
/// A wrapper of your own can have it by handing the completion on.
pub trait CompleteBlocking: Sized {
    /// Writes it.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] when the claim is no longer ours, [`Error::Invalid`] without an open
    /// transaction, and whatever the store answers.
    fn complete_blocking(self, completion: &Completion) -> Result<()>;
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn held(moved: bool) -> Result<()> {
    match moved {
        true => Ok(()),
        false => Err(Error::LeaseLost),
    }
}

/// Without a transaction the completion would be committed by itself, before the effect.
#[cfg(any(
    feature = "sqlite",
    feature = "diesel-postgres",
    feature = "diesel-async-postgres"
))]
fn inside(transaction: bool) -> Result<()> {
    match transaction {
        true => Ok(()),
        false => Err(Error::invalid(
            "completing needs an open transaction: begin one and write the job's effect in it",
        )),
    }
}
