//! The statements of a shared transaction, through sqlx.

use jiff::Timestamp;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Arguments, AssertSqlSafe, Connection, Decode, Row};

use super::error::map_sqlx;
use super::settle::{FINISH, FORGET, complete_values, forget_values};
use super::stage::{self, ATTACHED, REJECTED_KIND, REJECTED_QUEUE, STAGE, STAGE_REFUSED};
use super::statements::Sql;
use super::value::Value;
use crate::error::{Error, Result};
use crate::job::NewJob;
use crate::settle::Completion;
use crate::stage::{Enqueued, Status};

type Query = sqlx::query::Query<'static, Sqlite, SqliteArguments>;

/// Stages jobs, all or none, in the transaction that `connection` is in or in one of its own.
pub(crate) async fn stage(
    connection: &mut SqliteConnection,
    jobs: &[NewJob],
    now: Timestamp,
) -> Result<Vec<Enqueued>> {
    // A transaction of sqlx's own, because it is undone also when this future is dropped.
    let mut inner = connection
        .begin()
        .await
        .map_err(|why| map_sqlx(why, STAGE.name))?;
    let staged = stage_each(&mut inner, jobs, now).await;
    // After the write: a transaction that has only read may not become a writer.
    match check_main(&mut inner).await.and(staged) {
        Ok(answers) => {
            let ended = inner.commit().await;
            ended.map_err(|why| map_sqlx(why, STAGE.name))?;
            Ok(answers)
        }
        Err(why) => {
            // If even this fails, SQLite has rolled back all of it already.
            let _ = inner.rollback().await;
            Err(why)
        }
    }
}

async fn stage_each(
    connection: &mut SqliteConnection,
    jobs: &[NewJob],
    now: Timestamp,
) -> Result<Vec<Enqueued>> {
    let mut answers = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter().enumerate() {
        let stored: Option<(i64, bool)> = row(connection, STAGE, &stage::values(job, now)?).await?;
        answers.push(match stored {
            Some((id, held)) => stage::taken(id, held),
            None => {
                let values = stage::refused_values(job)?;
                let (missing, holder) = row(connection, STAGE_REFUSED, &values)
                    .await?
                    .unwrap_or((None::<String>, None::<i64>));
                let answer = stage::refused(job, index, missing, holder)?;
                if answer.status == Status::Rejected {
                    let values = stage::rejected_values(job, now);
                    if !execute(connection, REJECTED_KIND, &values[..2]).await? {
                        execute(connection, REJECTED_QUEUE, &values).await?;
                    }
                }
                answer
            }
        });
    }
    Ok(answers)
}

/// Ends a claimed job as done. Whether the claim was still the current one.
pub(crate) async fn complete(
    connection: &mut SqliteConnection,
    completion: &Completion,
) -> Result<bool> {
    let done = finish(connection, completion).await;
    check_main(connection).await.and(done)
}

async fn finish(connection: &mut SqliteConnection, completion: &Completion) -> Result<bool> {
    Ok(
        execute(connection, FINISH, &complete_values(completion)).await?
            || execute(connection, FORGET, &forget_values(completion)).await?,
    )
}

async fn check_main(connection: &mut SqliteConnection) -> Result<()> {
    let (ours, synchronous) = row(connection, ATTACHED, &[])
        .await?
        .unwrap_or((false, 0_i64));
    stage::judge_main(ours, synchronous)
}

fn query(statement: Sql, values: &[Value<'_>]) -> Result<Query> {
    let mut bound = SqliteArguments::default();
    for value in values {
        let added = match value {
            Value::Null => bound.add(None::<i64>),
            Value::Int(number) => bound.add(*number),
            Value::Text(text) => bound.add(text.to_string()),
        };
        added.map_err(|why| Error::Bug(why.to_string()))?;
    }
    Ok(sqlx::query_with(AssertSqlSafe(statement.text()), bound))
}

/// The first row's two columns.
async fn row<A, B>(
    connection: &mut SqliteConnection,
    statement: Sql,
    values: &[Value<'_>],
) -> Result<Option<(A, B)>>
where
    A: for<'r> Decode<'r, Sqlite>,
    B: for<'r> Decode<'r, Sqlite>,
{
    let read = |row: SqliteRow| Ok((row.try_get_unchecked(0)?, row.try_get_unchecked(1)?));
    // All rows: a statement that isn't run to its end may not have written.
    let rows = query(statement, values)?.fetch_all(connection).await;
    rows.and_then(|rows| rows.into_iter().next().map(read).transpose())
        .map_err(|why| map_sqlx(why, statement.name))
}

async fn execute(
    connection: &mut SqliteConnection,
    statement: Sql,
    values: &[Value<'_>],
) -> Result<bool> {
    let done = query(statement, values)?.execute(connection).await;
    done.map(|done| done.rows_affected() > 0)
        .map_err(|why| map_sqlx(why, statement.name))
}
