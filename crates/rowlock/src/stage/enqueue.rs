//! The calls: one job or many, blocking or not.

use super::{Enqueued, Stage, StageBlocking};
use crate::error::{Error, Result};
use crate::job::{Enqueueable, NewJob};

/// Stages a job in the transaction that `on` is in, or in one of its own.
///
/// With sqlx that is `rowlock::enqueue(&mut tx, &job).await`, and the job exists if and only if `tx`
/// commits. `rowlock::enqueue(&rowlock, &job).await` uses a transaction of its own.
///
/// # Errors
/// [`Error::Invalid`] for a payload that lacks a key field, [`Error::Schema`] when the connection's
/// database has no rowlock tables, [`Error::Unavailable`] when it is locked. In PostgreSQL any of them
/// ends the transaction, unless there is a savepoint.
pub async fn enqueue(on: impl Stage, job: &impl Enqueueable) -> Result<Enqueued> {
    let job = job.new_job()?;
    alone(on.stage(std::slice::from_ref(&job)).await)
}

/// Stages jobs as [`enqueue`] does one: all of them or none.
///
/// # Errors
/// As [`enqueue`]; [`Error::InvalidAt`] names the job.
pub async fn enqueue_many(on: impl Stage, jobs: &[impl Enqueueable]) -> Result<Vec<Enqueued>> {
    on.stage(&new_jobs(jobs)?).await
}

/// Stages a job in the transaction that `on` is in, or in one of its own.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("app.db");
/// # let address = rowlock::engine::sqlite::Address::parse(&format!("sqlite:{}", path.display()))?;
/// # rowlock::engine::sqlite::migrate_up(&address, &rowlock::Clock::system())?;
/// use rowlock::NewJob;
///
/// let mut connection = rusqlite::Connection::open(path)?;
/// connection.execute_batch("CREATE TABLE users (name TEXT)")?;
/// let tx = connection.transaction()?;
/// tx.execute("INSERT INTO users VALUES ('ada')", [])?;
/// rowlock::enqueue_blocking(&tx, &NewJob::new("welcome")?)?;
/// tx.commit()?; // both, or neither
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`enqueue`].
pub fn enqueue_blocking(on: impl StageBlocking, job: &impl Enqueueable) -> Result<Enqueued> {
    let job = job.new_job()?;
    alone(on.stage_blocking(std::slice::from_ref(&job)))
}

/// Stages jobs as [`enqueue_blocking`] does one: all of them or none.
///
/// # Errors
/// As [`enqueue`]; [`Error::InvalidAt`] names the job.
pub fn enqueue_many_blocking(
    on: impl StageBlocking,
    jobs: &[impl Enqueueable],
) -> Result<Vec<Enqueued>> {
    on.stage_blocking(&new_jobs(jobs)?)
}

fn new_jobs(jobs: &[impl Enqueueable]) -> Result<Vec<NewJob>> {
    let mut made = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter().enumerate() {
        made.push(job.new_job().map_err(|why| why.at(index))?);
    }
    Ok(made)
}

fn alone(answers: Result<Vec<Enqueued>>) -> Result<Enqueued> {
    answers
        .map_err(Error::alone)?
        .pop()
        .ok_or_else(|| Error::Bug("an enqueue had no answer".to_owned()))
}
