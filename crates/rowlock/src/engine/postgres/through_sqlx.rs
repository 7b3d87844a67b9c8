//! The statements of a shared transaction, through sqlx.

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use super::connect::Schema;
use super::error::map_sqlx;
use super::shared::{COMPLETE, ENTER, complete_values, entered, stage_statement};
use super::stage::answer;
use crate::error::Result;
use crate::guard::Entered;
use crate::job::{Name, NewJob};
use crate::settle::Completion;
use crate::stage::Enqueued;

/// Stages jobs, all or none, in the transaction that `connection` is in or in one of its own.
pub(crate) async fn stage(
    connection: &mut PgConnection,
    jobs: &[NewJob],
    schema: &Schema,
) -> Result<Vec<Enqueued>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let (statement, text) = stage_statement(jobs)?;
    let rows: Vec<Option<i64>> = sqlx::query_scalar(AssertSqlSafe(statement.text(schema)))
        .bind(text)
        .fetch_all(connection)
        .await
        .map_err(|why| map_sqlx(&why, statement.name))?;
    rows.into_iter().map(answer).collect()
}

/// Ends a claimed job as done. Whether the claim was still the current one.
pub(crate) async fn complete(
    connection: &mut PgConnection,
    completion: &Completion,
    schema: &Schema,
) -> Result<bool> {
    let (segment, id, token, began_ago) = complete_values(completion);
    sqlx::query_scalar(AssertSqlSafe(COMPLETE.text(schema)))
        .bind(segment)
        .bind(id)
        .bind(token)
        .bind(began_ago)
        .fetch_one(connection)
        .await
        .map_err(|why| map_sqlx(&why, COMPLETE.name))
}

/// Tries once to take a place of a workload class in the transaction that `connection` is in.
pub(crate) async fn enter(
    connection: &mut PgConnection,
    class: &Name,
    schema: &Schema,
) -> Result<Entered> {
    let row: Option<(Option<i32>, Option<i32>)> = sqlx::query_as(AssertSqlSafe(ENTER.text(schema)))
        .bind(class.as_str())
        .fetch_optional(connection)
        .await
        .map_err(|why| map_sqlx(&why, ENTER.name))?;
    Ok(row.map_or_else(Entered::default, |(slot, max)| entered(slot, max)))
}
