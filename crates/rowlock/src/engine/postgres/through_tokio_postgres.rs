//! The statements of a shared transaction, through tokio-postgres.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

use super::ask::Value;
use super::connect::Schema;
use super::error::map;
use super::row::get;
use super::shared::{COMPLETE, ENTER, STAGE_PREPARED, complete_values, entered, stage_statement};
use super::stage::{Plain, answer, is_plain};
use super::statements::Sql;
use crate::error::{Error, Result};
use crate::guard::Entered;
use crate::job::{Name, NewJob};
use crate::settle::Completion;
use crate::stage::Enqueued;

/// Stages jobs, all or none, in the transaction that `client` is in or in one of its own.
pub(crate) async fn stage(
    client: &Client,
    jobs: &[NewJob],
    schema: &Schema,
) -> Result<Vec<Enqueued>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let (statement, text) = stage_statement(jobs)?;
    let rows = rows(client, statement, schema, &[(&text, Type::TEXT)]).await?;
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("stage.callers_transaction") {
        let _ = client.batch_execute("COMMIT; BEGIN").await;
    }
    rows.iter().map(|row| answer(get(row, 0)?)).collect()
}

/// The statement for a job that comes alone, prepared on one connection.
pub(crate) async fn prepare(client: &Client, schema: &Schema) -> Result<Statement> {
    // The casts in the statement tell the types.
    client
        .prepare(&STAGE_PREPARED.text(schema))
        .await
        .map_err(|why| map(&why, STAGE_PREPARED.name))
}

/// As [`stage`], with what was prepared where it fits.
pub(crate) async fn stage_prepared(
    client: &Client,
    jobs: &[NewJob],
    schema: &Schema,
    plain: &Statement,
) -> Result<Vec<Enqueued>> {
    let [one] = jobs else {
        return stage(client, jobs, schema).await;
    };
    if !is_plain(one) {
        return stage(client, jobs, schema).await;
    }
    let job = Plain::new(one)?;
    let values: [&(dyn ToSql + Sync); 7] = [
        &job.kind,
        &job.payload,
        &job.queue,
        &job.priority,
        &job.max_attempts,
        &job.trace_context,
        &job.declared,
    ];
    let row = client
        .query_one(plain, &values)
        .await
        .map_err(|why| map(&why, STAGE_PREPARED.name))?;
    Ok(vec![answer(get(&row, 0)?)?])
}

/// Ends a claimed job as done. Whether the claim was still the current one.
pub(crate) async fn complete(
    client: &Client,
    completion: &Completion,
    schema: &Schema,
) -> Result<bool> {
    let (segment, id, token, began_ago) = complete_values(completion);
    let values: [Value<'_>; 4] = [
        (&segment, Type::INT2),
        (&id, Type::INT8),
        (&token, Type::INT8),
        (&began_ago, Type::INT8),
    ];
    let rows = rows(client, COMPLETE, schema, &values).await?;
    match rows.first() {
        Some(row) => get(row, 0),
        None => Err(Error::Bug("a completion had no answer".to_owned())),
    }
}

/// Tries once to take a place of a workload class in the transaction that `client` is in.
pub(crate) async fn enter(client: &Client, class: &Name, schema: &Schema) -> Result<Entered> {
    let values: [Value<'_>; 1] = [(&class.as_str(), Type::TEXT)];
    let rows = rows(client, ENTER, schema, &values).await?;
    match rows.first() {
        Some(row) => Ok(entered(get(row, 0)?, get(row, 1)?)),
        None => Ok(Entered::default()),
    }
}

async fn rows(
    client: &Client,
    statement: Sql,
    schema: &Schema,
    values: &[Value<'_>],
) -> Result<Vec<Row>> {
    client
        .query_typed(&statement.text(schema), values)
        .await
        .map_err(|why| map(&why, statement.name))
}
