//! The cases through tokio-postgres.

use rowlock::{Context, Enqueued, Error, NewJob, async_trait};
use tokio_postgres::{Client, NoTls, Transaction};

use super::driver::{Driver, End, Steps};
use super::store::NOTE;

pub struct TokioPostgres;

#[allow(clippy::disallowed_methods)] // An application's own task.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn finish(tx: Transaction<'_>, end: End) {
    match end {
        End::Commit => tx.commit().await.unwrap(),
        End::Rollback => tx.rollback().await.unwrap(),
    }
}

#[async_trait]
impl Driver for TokioPostgres {
    fn name(&self) -> &'static str {
        "tokio_postgres"
    }

    async fn stage(
        &self,
        url: &str,
        jobs: &[NewJob],
        steps: Steps<'_>,
    ) -> Result<Vec<Enqueued>, Error> {
        let mut client = connect(url).await;
        let mut tx = client.transaction().await.unwrap();
        let _ = tx.batch_execute(steps.prelude).await;
        (steps.before)();
        let staged = match jobs {
            [one] => rowlock::enqueue(&mut tx, one).await.map(|one| vec![one]),
            many => rowlock::enqueue_many(&tx, many).await,
        }?;
        tx.batch_execute(NOTE).await.unwrap();
        (steps.after)();
        finish(tx, steps.end).await;
        Ok(staged)
    }

    async fn complete(&self, url: &str, cx: &Context, steps: Steps<'_>) -> Result<(), Error> {
        let mut client = connect(url).await;
        let tx = client.transaction().await.unwrap();
        tx.batch_execute(steps.prelude).await.unwrap();
        tx.batch_execute(NOTE).await.unwrap();
        (steps.before)();
        cx.complete_in(&tx).await?;
        (steps.after)();
        finish(tx, steps.end).await;
        Ok(())
    }
}
