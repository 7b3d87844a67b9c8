//! The cases through rusqlite.

use std::path::Path;

use rowlock::{Context, Enqueued, Error, NewJob, async_trait};
use rusqlite::{Connection, Transaction};

use crate::driver::{Driver, End, NOTE, hang};

pub struct Rusqlite;

fn open(path: &Path, prelude: &str) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(prelude).unwrap();
    connection
}

fn finish(tx: Transaction<'_>, end: End) {
    match end {
        End::Commit => tx.commit().unwrap(),
        End::Rollback => tx.rollback().unwrap(),
        End::HangBefore => {
            end.say();
            hang()
        }
        End::HangAfter => {
            tx.commit().unwrap();
            end.say();
            hang()
        }
    }
}

#[async_trait]
impl Driver for Rusqlite {
    fn name(&self) -> &'static str {
        "rusqlite"
    }

    async fn stage(
        &self,
        path: &Path,
        prelude: &str,
        jobs: &[NewJob],
        end: End,
    ) -> Result<Vec<Enqueued>, Error> {
        let mut connection = open(path, prelude);
        let mut tx = connection.transaction().unwrap();
        let staged = match jobs {
            [one] => rowlock::enqueue_blocking(&tx, one).map(|answer| vec![answer]),
            many => rowlock::enqueue_many_blocking(&mut tx, many),
        };
        if !matches!(staged, Err(Error::Unavailable(_))) {
            tx.execute(NOTE, []).unwrap();
        }
        finish(tx, end);
        staged
    }

    async fn complete(
        &self,
        path: &Path,
        prelude: &str,
        cx: &Context,
        end: End,
    ) -> Result<(), Error> {
        let mut connection = open(path, prelude);
        let tx = connection.transaction().unwrap();
        tx.execute(NOTE, []).unwrap();
        cx.complete_in_blocking(&tx)?;
        finish(tx, end);
        Ok(())
    }
}
