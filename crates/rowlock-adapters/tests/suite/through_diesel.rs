//! The cases through diesel.

use std::path::Path;

use diesel::connection::{Connection, SimpleConnection, TransactionManager};
use diesel::sqlite::SqliteConnection;
use rowlock::{Context, Enqueued, Error, NewJob, async_trait};

use crate::driver::{Driver, End, NOTE, hang};

pub struct Diesel;

type Manager = <SqliteConnection as Connection>::TransactionManager;

fn open(path: &Path, prelude: &str) -> SqliteConnection {
    let mut connection = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
    connection
        .batch_execute("PRAGMA busy_timeout = 30000")
        .unwrap();
    connection.batch_execute(prelude).unwrap();
    Manager::begin_transaction(&mut connection).unwrap();
    connection
}

fn finish(connection: &mut SqliteConnection, end: End) {
    match end {
        End::Commit => Manager::commit_transaction(connection).unwrap(),
        End::Rollback => Manager::rollback_transaction(connection).unwrap(),
        End::HangBefore => {
            end.say();
            hang()
        }
        End::HangAfter => {
            Manager::commit_transaction(connection).unwrap();
            end.say();
            hang()
        }
    }
}

#[async_trait]
impl Driver for Diesel {
    fn name(&self) -> &'static str {
        "diesel"
    }

    async fn stage(
        &self,
        path: &Path,
        prelude: &str,
        jobs: &[NewJob],
        end: End,
    ) -> Result<Vec<Enqueued>, Error> {
        let mut connection = open(path, prelude);
        let staged = match jobs {
            [one] => rowlock::enqueue_blocking(&mut connection, one).map(|one| vec![one]),
            many => rowlock::enqueue_many_blocking(&mut connection, many),
        };
        if !matches!(staged, Err(Error::Unavailable(_))) {
            connection.batch_execute(NOTE).unwrap();
        }
        finish(&mut connection, end);
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
        connection.batch_execute(NOTE).unwrap();
        let completed = cx.complete_in_blocking(&mut connection);
        let end = match completed {
            Ok(()) => end,
            Err(_) => End::Rollback,
        };
        finish(&mut connection, end);
        completed
    }
}
