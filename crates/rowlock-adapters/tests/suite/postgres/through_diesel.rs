//! The cases through diesel.

use diesel::PgConnection;
use diesel::connection::{Connection, SimpleConnection, TransactionManager};
use rowlock::{Context, Enqueued, Error, NewJob, async_trait};

use super::driver::{Driver, End, Steps};
use super::store::NOTE;

pub struct Diesel;

type Manager = <PgConnection as Connection>::TransactionManager;

fn begin(url: &str) -> PgConnection {
    let mut connection = PgConnection::establish(url).unwrap();
    Manager::begin_transaction(&mut connection).unwrap();
    connection
}

fn finish(connection: &mut PgConnection, end: End) {
    match end {
        End::Commit => Manager::commit_transaction(connection).unwrap(),
        End::Rollback => Manager::rollback_transaction(connection).unwrap(),
    }
}

#[async_trait]
impl Driver for Diesel {
    fn name(&self) -> &'static str {
        "diesel"
    }

    async fn stage(
        &self,
        url: &str,
        jobs: &[NewJob],
        steps: Steps<'_>,
    ) -> Result<Vec<Enqueued>, Error> {
        let mut connection = begin(url);
        let _ = connection.batch_execute(steps.prelude);
        (steps.before)();
        let staged = match jobs {
            [one] => rowlock::enqueue_blocking(&mut connection, one).map(|one| vec![one]),
            many => rowlock::enqueue_many_blocking(&mut connection, many),
        }?;
        connection.batch_execute(NOTE).unwrap();
        (steps.after)();
        finish(&mut connection, steps.end);
        Ok(staged)
    }

    async fn complete(&self, url: &str, cx: &Context, steps: Steps<'_>) -> Result<(), Error> {
        let mut connection = begin(url);
        connection.batch_execute(steps.prelude).unwrap();
        connection.batch_execute(NOTE).unwrap();
        (steps.before)();
        cx.complete_in_blocking(&mut connection)?;
        (steps.after)();
        finish(&mut connection, steps.end);
        Ok(())
    }
}
