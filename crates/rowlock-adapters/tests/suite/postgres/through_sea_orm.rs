//! The cases through SeaORM.

use rowlock::{Context, Enqueued, Error, NewJob, async_trait};
use sea_orm::{
    ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, TransactionTrait,
};

use super::driver::{Driver, End, Steps};
use super::store::NOTE;

pub struct SeaOrm;

pub async fn connect(url: &str) -> DatabaseConnection {
    Database::connect(url).await.unwrap()
}

async fn finish(tx: DatabaseTransaction, end: End) {
    match end {
        End::Commit => tx.commit().await.unwrap(),
        End::Rollback => tx.rollback().await.unwrap(),
    }
}

#[async_trait]
impl Driver for SeaOrm {
    fn name(&self) -> &'static str {
        "sea_orm"
    }

    async fn stage(
        &self,
        url: &str,
        jobs: &[NewJob],
        steps: Steps<'_>,
    ) -> Result<Vec<Enqueued>, Error> {
        let mut tx = connect(url).await.begin().await.unwrap();
        let _ = tx.execute_unprepared(steps.prelude).await;
        (steps.before)();
        let staged = match jobs {
            [one] => rowlock::enqueue(&mut tx, one).await.map(|one| vec![one]),
            many => rowlock::enqueue_many(&tx, many).await,
        }?;
        tx.execute_unprepared(NOTE).await.unwrap();
        (steps.after)();
        finish(tx, steps.end).await;
        Ok(staged)
    }

    async fn complete(&self, url: &str, cx: &Context, steps: Steps<'_>) -> Result<(), Error> {
        let mut tx = connect(url).await.begin().await.unwrap();
        tx.execute_unprepared(steps.prelude).await.unwrap();
        tx.execute_unprepared(NOTE).await.unwrap();
        (steps.before)();
        cx.complete_in(&mut tx).await?;
        (steps.after)();
        finish(tx, steps.end).await;
        Ok(())
    }
}
