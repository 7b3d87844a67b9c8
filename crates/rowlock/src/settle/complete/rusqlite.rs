//! Completing through rusqlite.

use rusqlite::{Connection, Savepoint, Transaction};

use super::{CompleteBlocking, Completion, held, inside};
use crate::engine::sqlite::settle::complete;
use crate::engine::sqlite::stage::check_main;
use crate::error::Result;

impl CompleteBlocking for &Connection {
    fn complete_blocking(self, completion: &Completion) -> Result<()> {
        inside(!self.is_autocommit())?;
        let done = complete(self, completion);
        // After the write: a transaction that has only read may not become a writer.
        held(check_main(self).and(done)?)
    }
}

/// Whatever leads to a connection.
macro_rules! through_its_connection {
    ($($on:ty),*) => {$(
        impl CompleteBlocking for $on {
            fn complete_blocking(self, completion: &Completion) -> Result<()> {
                let connection: &Connection = self;
                connection.complete_blocking(completion)
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
