//! The cases through sqlx.

use std::path::Path;

use rowlock::{Context, Enqueued, Error, NewJob, async_trait};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, Sqlite, Transaction};

use crate::driver::{Driver, End, NOTE};

pub struct Sqlx;

async fn open(path: &Path, prelude: &str) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(prelude.to_owned()))
        .execute(&mut connection)
        .await
        .unwrap();
    connection
}

async fn note(tx: &mut Transaction<'_, Sqlite>) {
    sqlx::query(NOTE).execute(&mut **tx).await.unwrap();
}

async fn finish(tx: Transaction<'_, Sqlite>, end: End) {
    match end {
        End::Commit => tx.commit().await.unwrap(),
        End::Rollback => tx.rollback().await.unwrap(),
        End::HangBefore => {
            end.say();
            std::future::pending::<()>().await;
            drop(tx);
        }
        End::HangAfter => {
            tx.commit().await.unwrap();
            end.say();
            std::future::pending().await
        }
    }
}

#[async_trait]
impl Driver for Sqlx {
    fn name(&self) -> &'static str {
        "sqlx"
    }

    async fn stage(
        &self,
        path: &Path,
        prelude: &str,
        jobs: &[NewJob],
        end: End,
    ) -> Result<Vec<Enqueued>, Error> {
        let mut connection = open(path, prelude).await;
        let mut tx = connection.begin().await.unwrap();
        let staged = match jobs {
            [one] => rowlock::enqueue(&mut tx, one).await.map(|one| vec![one]),
            many => rowlock::enqueue_many(&mut *tx, many).await,
        };
        if !matches!(staged, Err(Error::Unavailable(_))) {
            note(&mut tx).await;
        }
        finish(tx, end).await;
        staged
    }

    async fn complete(
        &self,
        path: &Path,
        prelude: &str,
        cx: &Context,
        end: End,
    ) -> Result<(), Error> {
        let mut connection = open(path, prelude).await;
        let mut tx = connection.begin().await.unwrap();
        note(&mut tx).await;
        cx.complete_in(&mut tx).await?;
        finish(tx, end).await;
        Ok(())
    }
}
