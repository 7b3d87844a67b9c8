//! The cases through sqlx.

use rowlock::{Context, Enqueued, Error, NewJob, async_trait};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Postgres, Transaction};

use super::driver::{Driver, End, Steps};
use super::store::NOTE;

pub struct Sqlx;

async fn batch(tx: &mut Transaction<'_, Postgres>, sql: &str) -> sqlx::Result<()> {
    let batch = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    batch.execute(&mut **tx).await.map(drop)
}

async fn finish(tx: Transaction<'_, Postgres>, end: End) {
    match end {
        End::Commit => tx.commit().await.unwrap(),
        End::Rollback => tx.rollback().await.unwrap(),
    }
}

#[async_trait]
impl Driver for Sqlx {
    fn name(&self) -> &'static str {
        "sqlx"
    }

    async fn stage(
        &self,
        url: &str,
        jobs: &[NewJob],
        steps: Steps<'_>,
    ) -> Result<Vec<Enqueued>, Error> {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let mut tx = connection.begin().await.unwrap();
        let _ = batch(&mut tx, steps.prelude).await;
        (steps.before)();
        let staged = match jobs {
            [one] => rowlock::enqueue(&mut tx, one).await.map(|one| vec![one]),
            many => rowlock::enqueue_many(&mut *tx, many).await,
        }?;
        batch(&mut tx, NOTE).await.unwrap();
        (steps.after)();
        finish(tx, steps.end).await;
        Ok(staged)
    }

    async fn complete(&self, url: &str, cx: &Context, steps: Steps<'_>) -> Result<(), Error> {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let mut tx = connection.begin().await.unwrap();
        batch(&mut tx, steps.prelude).await.unwrap();
        batch(&mut tx, NOTE).await.unwrap();
        (steps.before)();
        cx.complete_in(&mut tx).await?;
        (steps.after)();
        finish(tx, steps.end).await;
        Ok(())
    }
}
