//! The statements of a shared transaction, through diesel.

use diesel::connection::{Connection, SimpleConnection, TransactionManager};
use diesel::deserialize::{FromSql, QueryableByName};
use diesel::query_builder::BoxedSqlQuery;
use diesel::row::{Field, NamedRow, Row};
use diesel::sql_types::{BigInt, Nullable, Text};
use diesel::sqlite::{Sqlite, SqliteConnection, SqliteType};
use diesel::{RunQueryDsl, sql_query};
use jiff::Timestamp;

use super::error::map_diesel;
use super::settle::{FINISH, FORGET, complete_values, forget_values};
use super::stage::{self, ATTACHED, REJECTED_KIND, REJECTED_QUEUE, STAGE, STAGE_REFUSED};
use super::statements::Sql;
use super::value::Value;
use crate::error::Result;
use crate::job::NewJob;
use crate::settle::Completion;
use crate::stage::{Enqueued, Status};

/// Stages jobs, all or none, in the transaction that `connection` is in or in one of its own.
pub(crate) fn stage(
    connection: &mut SqliteConnection,
    jobs: &[NewJob],
    now: Timestamp,
) -> Result<Vec<Enqueued>> {
    batch(connection, stage::SAVEPOINT)?;
    let staged = stage_each(connection, jobs, now);
    // After the write: a transaction that has only read may not become a writer.
    let staged = check_main(connection).and(staged);
    let ended = batch(connection, stage::end(staged.is_ok()));
    staged.and_then(|answers| ended.map(|()| answers))
}

fn stage_each(
    connection: &mut SqliteConnection,
    jobs: &[NewJob],
    now: Timestamp,
) -> Result<Vec<Enqueued>> {
    let mut answers = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter().enumerate() {
        let stored = row(connection, STAGE, &stage::values(job, now)?)?;
        answers.push(match stored {
            Some(Pair(id, held)) => stage::taken(int(&id), int(&held) != 0),
            None => {
                let found = row(connection, STAGE_REFUSED, &stage::refused_values(job)?)?;
                let Pair(missing, holder) = found.unwrap_or(Pair(Value::Null, Value::Null));
                let missing = match missing {
                    Value::Text(field) => Some(field.into_owned()),
                    _ => None,
                };
                let holder = match holder {
                    Value::Int(id) => Some(id),
                    _ => None,
                };
                let answer = stage::refused(job, index, missing, holder)?;
                if answer.status == Status::Rejected {
                    let values = stage::rejected_values(job, now);
                    if !execute(connection, REJECTED_KIND, &values[..2])? {
                        execute(connection, REJECTED_QUEUE, &values)?;
                    }
                }
                answer
            }
        });
    }
    Ok(answers)
}

/// Ends a claimed job as done. Whether the claim was still the current one.
pub(crate) fn complete(connection: &mut SqliteConnection, completion: &Completion) -> Result<bool> {
    let done = finish(connection, completion);
    check_main(connection).and(done)
}

fn finish(connection: &mut SqliteConnection, completion: &Completion) -> Result<bool> {
    Ok(execute(connection, FINISH, &complete_values(completion))?
        || execute(connection, FORGET, &forget_values(completion))?)
}

/// Whether diesel has a transaction open.
pub(crate) fn in_transaction(connection: &mut SqliteConnection) -> bool {
    type Manager = <SqliteConnection as Connection>::TransactionManager;
    let status = Manager::transaction_manager_status_mut(connection);
    matches!(status.transaction_depth(), Ok(Some(_)))
}

fn check_main(connection: &mut SqliteConnection) -> Result<()> {
    match row(connection, ATTACHED, &[])? {
        Some(Pair(ours, synchronous)) => stage::judge_main(int(&ours) != 0, int(&synchronous)),
        None => stage::judge_main(false, 0),
    }
}

/// The two columns of a row.
struct Pair(Value<'static>, Value<'static>);

impl QueryableByName<Sqlite> for Pair {
    fn build<'a>(row: &impl NamedRow<'a, Sqlite>) -> diesel::deserialize::Result<Self> {
        Ok(Self(read(row, 0)?, read(row, 1)?))
    }
}

fn read<'a>(
    row: &impl Row<'a, Sqlite>,
    column: usize,
) -> diesel::deserialize::Result<Value<'static>> {
    let field = Row::get(row, column).ok_or("a column is missing")?;
    let Some(value) = field.value() else {
        return Ok(Value::Null);
    };
    Ok(match value.value_type() {
        Some(SqliteType::Text) => {
            <String as FromSql<Text, Sqlite>>::from_sql(value).map(Value::from)?
        }
        _ => <i64 as FromSql<BigInt, Sqlite>>::from_sql(value).map(Value::from)?,
    })
}

fn int(value: &Value<'_>) -> i64 {
    match value {
        Value::Int(number) => *number,
        _ => 0,
    }
}

fn query<'a>(
    statement: Sql,
    values: &'a [Value<'a>],
) -> BoxedSqlQuery<'a, Sqlite, diesel::query_builder::SqlQuery> {
    let bare = sql_query(statement.text()).into_boxed();
    values.iter().fold(bare, |query, value| match value {
        Value::Null => query.bind::<Nullable<BigInt>, _>(None::<i64>),
        Value::Int(number) => query.bind::<BigInt, _>(*number),
        Value::Text(text) => query.bind::<Text, _>(text.as_ref()),
    })
}

/// The first row.
fn row(
    connection: &mut SqliteConnection,
    statement: Sql,
    values: &[Value<'_>],
) -> Result<Option<Pair>> {
    let rows: Vec<Pair> = query(statement, values)
        .load(connection)
        .map_err(|why| map_diesel(&why, statement.name))?;
    Ok(rows.into_iter().next())
}

fn execute(
    connection: &mut SqliteConnection,
    statement: Sql,
    values: &[Value<'_>],
) -> Result<bool> {
    query(statement, values)
        .execute(connection)
        .map(|changed| changed > 0)
        .map_err(|why| map_diesel(&why, statement.name))
}

fn batch(connection: &mut SqliteConnection, text: &str) -> Result<()> {
    connection
        .batch_execute(text)
        .map_err(|why| map_diesel(&why, STAGE.name))
}
