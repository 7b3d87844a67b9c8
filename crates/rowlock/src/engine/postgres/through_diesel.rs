//! The statements of a shared transaction, as diesel builds them: for its own connection, and for
//! diesel-async's.

use diesel::pg::Pg;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::sql_query;
use diesel::sql_types::{BigInt, Bool, Nullable, SmallInt, Text};

use super::connect::Schema;
use super::error::map_diesel;
use super::shared::{COMPLETE, complete_values, stage_statement};
use super::stage::answer;
use crate::error::{Error, Result};
use crate::job::NewJob;
use crate::settle::Completion;
use crate::stage::Enqueued;

type Query = BoxedSqlQuery<'static, Pg, SqlQuery>;
type Loaded<T> = diesel::QueryResult<Vec<T>>;

/// One job's answer.
#[derive(diesel::QueryableByName)]
pub(super) struct Staged {
    #[diesel(sql_type = Nullable<BigInt>)]
    answer: Option<i64>,
}

/// A completion's answer.
#[derive(diesel::QueryableByName)]
pub(super) struct Completed {
    #[diesel(sql_type = Bool)]
    done: bool,
}

fn stage_query(jobs: &[NewJob], schema: &Schema) -> Result<Query> {
    let (statement, text) = stage_statement(jobs)?;
    let bare = sql_query(statement.text(schema)).into_boxed();
    Ok(bare.bind::<Text, _>(text))
}

fn staged(rows: Loaded<Staged>) -> Result<Vec<Enqueued>> {
    let rows = rows.map_err(|why| map_diesel(&why, "stage"))?;
    rows.iter().map(|row| answer(row.answer)).collect()
}

fn complete_query(completion: &Completion, schema: &Schema) -> Query {
    let (segment, id, token, began_ago) = complete_values(completion);
    sql_query(COMPLETE.text(schema))
        .into_boxed()
        .bind::<Nullable<SmallInt>, _>(segment)
        .bind::<BigInt, _>(id)
        .bind::<BigInt, _>(token)
        .bind::<Nullable<BigInt>, _>(began_ago)
}

fn completed(rows: Loaded<Completed>) -> Result<bool> {
    let rows = rows.map_err(|why| map_diesel(&why, COMPLETE.name))?;
    let done = rows.first().map(|row| row.done);
    done.ok_or_else(|| Error::Bug("a completion had no answer".to_owned()))
}

/// Through diesel's own connection, which blocks.
#[cfg(feature = "diesel-postgres")]
pub(crate) mod blocking {
    use diesel::connection::{Connection, TransactionManager};
    use diesel::{PgConnection, RunQueryDsl};

    use super::*;

    /// Stages jobs, all or none, in the transaction that `connection` is in or in one of its own.
    pub(crate) fn stage(
        connection: &mut PgConnection,
        jobs: &[NewJob],
        schema: &Schema,
    ) -> Result<Vec<Enqueued>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        staged(stage_query(jobs, schema)?.load(connection))
    }

    /// Ends a claimed job as done. Whether the claim was still the current one.
    pub(crate) fn complete(
        connection: &mut PgConnection,
        completion: &Completion,
        schema: &Schema,
    ) -> Result<bool> {
        completed(complete_query(completion, schema).load(connection))
    }

    /// Whether diesel has a transaction open.
    pub(crate) fn in_transaction(connection: &mut PgConnection) -> bool {
        type Manager = <PgConnection as Connection>::TransactionManager;
        let status = Manager::transaction_manager_status_mut(connection);
        matches!(status.transaction_depth(), Ok(Some(_)))
    }
}

/// Through diesel-async.
#[cfg(feature = "diesel-async-postgres")]
pub(crate) mod asynchronous {
    use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, TransactionManager};

    use super::*;

    /// Stages jobs, all or none, in the transaction that `connection` is in or in one of its own.
    pub(crate) async fn stage(
        connection: &mut AsyncPgConnection,
        jobs: &[NewJob],
        schema: &Schema,
    ) -> Result<Vec<Enqueued>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        staged(stage_query(jobs, schema)?.load(connection).await)
    }

    /// Ends a claimed job as done. Whether the claim was still the current one.
    pub(crate) async fn complete(
        connection: &mut AsyncPgConnection,
        completion: &Completion,
        schema: &Schema,
    ) -> Result<bool> {
        completed(complete_query(completion, schema).load(connection).await)
    }

    /// Whether diesel-async has a transaction open.
    pub(crate) fn in_transaction(connection: &mut AsyncPgConnection) -> bool {
        type Manager = <AsyncPgConnection as AsyncConnection>::TransactionManager;
        let status = Manager::transaction_manager_status_mut(connection);
        matches!(status.transaction_depth(), Ok(Some(_)))
    }
}
