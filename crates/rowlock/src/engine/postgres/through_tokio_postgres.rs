//! The statements of a shared transaction, through tokio-postgres.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use super::ask::Value;
use super::connect::Schema;
use super::error::map;
use super::row::get;
use super::shared::{COMPLETE, ENTER, complete_values, entered, stage_statement};
use super::stage::answer;
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
    let read = |row: &Row| answer(get(row, 0)?, &get::<String>(row, 1)?);
    rows.iter().map(read).collect()
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
