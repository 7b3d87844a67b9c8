//! Staging through rusqlite.

use rusqlite::{Connection, Savepoint, Transaction};

use super::{Enqueued, StageBlocking};
use crate::clock::Clock;
use crate::engine::sqlite::error::map;
use crate::engine::sqlite::stage::{self, check_main};
use crate::error::Result;
use crate::job::NewJob;

impl StageBlocking for &Connection {
    fn stage_blocking(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        let batch = |text| self.execute_batch(text).map_err(|why| map(why, "stage"));
        batch(stage::SAVEPOINT)?;
        let staged = stage::stage(self, jobs, Clock::system().now());
        // After the write: a transaction that has only read may not become a writer.
        let staged = check_main(self).and(staged);
        let end = stage::end(staged.is_ok());
        #[cfg(feature = "test-hooks")]
        let end = match crate::hooks::switched_off("stage.callers_transaction") {
            true => "RELEASE rowlock_stage; COMMIT; BEGIN",
            false => end,
        };
        let ended = batch(end);
        staged.and_then(|answers| ended.map(|()| answers))
    }
}

/// Whatever leads to a connection.
macro_rules! through_its_connection {
    ($($on:ty),*) => {$(
        impl StageBlocking for $on {
            fn stage_blocking(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
                let connection: &Connection = self;
                connection.stage_blocking(jobs)
            }
        }
    )*};
}

through_its_connection!(
    &mut Connection,
    &Transaction<'_>,
    &mut Transaction<'_>,
    &Savepoint<'_>,
    &mut Savepoint<'_>
);
