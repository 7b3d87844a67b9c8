//! The cases through diesel-async.

use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection, TransactionManager};
use rowlock::{Context, Enqueued, Error, NewJob, async_trait};

use super::driver::{Driver, End, Steps};
use super::store::NOTE;

pub struct DieselAsync;

type Manager = <AsyncPgConnection as AsyncConnection>::TransactionManager;

async fn begin(url: &str) -> AsyncPgConnection {
    let mut connection = AsyncPgConnection::establish(url).await.unwrap();
    Manager::begin_transaction(&mut connection).await.unwrap();
    connection
}

async fn finish(connection: &mut AsyncPgConnection, end: End) {
    let ended = match end {
        End::Commit => Manager::commit_transaction(connection).await,
        End::Rollback => Manager::rollback_transaction(connection).await,
    };
    ended.unwrap();
}

#[async_trait]
impl Driver for DieselAsync {
    fn name(&self) -> &'static str {
        "diesel_async"
    }

    async fn stage(
        &self,
        url: &str,
        jobs: &[NewJob],
        steps: Steps<'_>,
    ) -> Result<Vec<Enqueued>, Error> {
        let mut connection = begin(url).await;
        let _ = connection.batch_execute(steps.prelude).await;
        (steps.before)();
        let staged = match jobs {
            [one] => rowlock::enqueue(&mut connection, one)
                .await
                .map(|one| vec![one]),
            many => rowlock::enqueue_many(&mut connection, many).await,
        }?;
        connection.batch_execute(NOTE).await.unwrap();
        (steps.after)();
        finish(&mut connection, steps.end).await;
        Ok(staged)
    }

    async fn complete(&self, url: &str, cx: &Context, steps: Steps<'_>) -> Result<(), Error> {
        let mut connection = begin(url).await;
        connection.batch_execute(steps.prelude).await.unwrap();
        connection.batch_execute(NOTE).await.unwrap();
        (steps.before)();
        cx.complete_in(&mut connection).await?;
        (steps.after)();
        finish(&mut connection, steps.end).await;
        Ok(())
    }
}
