//! Staging on a connection of the caller's: the job commits with the caller's own rows, or neither.

use rusqlite::Connection;

use super::Enqueued;
use crate::clock::Clock;
use crate::engine::sqlite::error::map;
use crate::engine::sqlite::stage::{check_main, stage};
use crate::error::{Error, Result};
use crate::job::{Enqueueable, NewJob};

/// Stages a job in the transaction that `connection` is in, or in one of its own.
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
/// [`Error::Invalid`] for a payload that lacks a key field, [`Error::Schema`] when the connection's
/// main database has no rowlock tables, [`Error::Unavailable`] when it is locked.
pub fn enqueue_blocking(connection: &Connection, job: &impl Enqueueable) -> Result<Enqueued> {
    let job = job.new_job()?;
    let answers = enqueue_many_blocking(connection, std::slice::from_ref(&job));
    answers
        .map_err(Error::alone)?
        .pop()
        .ok_or_else(|| Error::Bug("an enqueue had no answer".to_owned()))
}

/// Stages jobs as [`enqueue_blocking`] does one: all of them or none.
///
/// # Errors
/// As [`enqueue_blocking`].
pub fn enqueue_many_blocking(connection: &Connection, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
    check_main(connection)?;
    connection
        .execute_batch("SAVEPOINT rowlock_stage")
        .map_err(|why| map(why, "stage"))?;
    let staged = stage(connection, jobs, Clock::system().now());
    let end = match staged {
        Ok(_) => "RELEASE rowlock_stage",
        Err(_) => "ROLLBACK TO rowlock_stage; RELEASE rowlock_stage",
    };
    #[cfg(feature = "test-hooks")]
    let end = match crate::hooks::switched_off("stage.callers_transaction") {
        true => "RELEASE rowlock_stage; COMMIT; BEGIN",
        false => end,
    };
    let ended = connection
        .execute_batch(end)
        .map_err(|why| map(why, "stage"));
    staged.and_then(|answers| ended.map(|()| answers))
}
