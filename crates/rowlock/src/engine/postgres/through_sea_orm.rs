//! The statements of a shared transaction, through SeaORM.

use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement, Value};

use super::connect::Schema;
use super::error::map_sea_orm;
use super::shared::{COMPLETE, complete_values, stage_statement};
use super::stage::answer;
use super::statements::Sql;
use crate::error::{Error, Result};
use crate::job::NewJob;
use crate::settle::Completion;
use crate::stage::Enqueued;

/// Stages jobs, all or none, in the transaction that `on` is or in one of its own.
pub(crate) async fn stage(
    on: &impl ConnectionTrait,
    jobs: &[NewJob],
    schema: &Schema,
) -> Result<Vec<Enqueued>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let (statement, text) = stage_statement(jobs)?;
    let rows = rows(on, statement, schema, [Value::from(text)]).await?;
    let read = |row: &QueryResult| {
        let number = row.try_get_by_index(0);
        answer(number.map_err(|why| map_sea_orm(&why, statement.name))?)
    };
    rows.iter().map(read).collect()
}

/// Ends a claimed job as done. Whether the claim was still the current one.
pub(crate) async fn complete(
    on: &impl ConnectionTrait,
    completion: &Completion,
    schema: &Schema,
) -> Result<bool> {
    let (segment, id, token, began_ago) = complete_values(completion);
    let values = [segment.into(), id.into(), token.into(), began_ago.into()];
    let rows = rows(on, COMPLETE, schema, values).await?;
    match rows.first().map(|row| row.try_get_by_index(0)) {
        Some(done) => done.map_err(|why| map_sea_orm(&why, COMPLETE.name)),
        None => Err(Error::Bug("a completion had no answer".to_owned())),
    }
}

async fn rows<const N: usize>(
    on: &impl ConnectionTrait,
    statement: Sql,
    schema: &Schema,
    values: [Value; N],
) -> Result<Vec<QueryResult>> {
    let backend = on.get_database_backend();
    if backend != DbBackend::Postgres {
        return Err(Error::invalid(format!(
            "SeaORM is connected to {backend:?}: jobs are staged and completed through it in \
             PostgreSQL only"
        )));
    }
    let statement_of = Statement::from_sql_and_values(backend, statement.text(schema), values);
    on.query_all_raw(statement_of)
        .await
        .map_err(|why| map_sea_orm(&why, statement.name))
}
