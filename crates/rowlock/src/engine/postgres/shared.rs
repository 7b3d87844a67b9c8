//! What every driver sends in a transaction of the caller's: one statement to stage, one to complete.

use super::connect::Schema;
use super::ms;
use super::settle::between;
use super::stage::{are_alike, is_plain, spell, spell_alike, spell_plain};
use super::statements::{Sql, sql};
use crate::error::Result;
use crate::guard::Entered;
use crate::job::NewJob;
use crate::settle::Completion;

const STAGE: Sql = sql!("stage_call");
pub(super) const STAGE_PLAIN: Sql = sql!("stage_plain_call");
const STAGE_ALIKE: Sql = sql!("stage_alike_call");
pub(super) const STAGE_PREPARED: Sql = sql!("stage_plain_prepared");
pub(super) const COMPLETE: Sql = sql!("complete_call");
pub(super) const ENTER: Sql = sql!("budget_enter_call");

/// A connection or transaction of the application's whose jobs are in another schema than `rowlock`:
/// [`Schema::on`] makes it.
#[derive(Debug)]
pub struct InSchema<'a, T> {
    pub(crate) on: T,
    pub(crate) schema: &'a Schema,
}

impl Schema {
    /// A connection or transaction, for jobs in this schema:
    /// `rowlock::enqueue(schema.on(&mut tx), &job)`.
    pub fn on<T>(&self, on: T) -> InSchema<'_, T> {
        InSchema { on, schema: self }
    }
}

/// The statement that stages one job, prepared on one connection of tokio-postgres: the server needn't read it
/// again for each job. Other drivers prepare by themselves.
///
/// Not behind a pooler that hands out a connection per transaction: there the next one doesn't know it.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub(crate) schema: Schema,
    pub(crate) plain: tokio_postgres::Statement,
}

/// A connection or transaction with what was prepared on it: [`Prepared::on`] makes it.
#[derive(Debug)]
pub struct OnPrepared<'a, T> {
    pub(crate) on: T,
    pub(crate) prepared: &'a Prepared,
}

impl Schema {
    /// Prepares staging on a connection.
    ///
    /// # Errors
    /// [`Error::Schema`](crate::Error::Schema) without our tables, and whatever else the server says.
    pub async fn prepare(&self, client: &tokio_postgres::Client) -> Result<Prepared> {
        Ok(Prepared {
            schema: self.clone(),
            plain: super::through_tokio_postgres::prepare(client, self).await?,
        })
    }
}

impl Prepared {
    /// The same connection, or a transaction on it: `rowlock::enqueue(prepared.on(&tx), &job)`.
    pub fn on<T>(&self, on: T) -> OnPrepared<'_, T> {
        OnPrepared { on, prepared: self }
    }
}

/// The statement that stages jobs, and the text that it takes.
pub(super) fn stage_statement(jobs: &[NewJob]) -> Result<(Sql, String)> {
    Ok(match jobs {
        [one] if is_plain(one) => (STAGE_PLAIN, spell_plain(one)?),
        [first, _, ..] if are_alike(jobs) => (STAGE_ALIKE, spell_alike(first, jobs)?),
        some => (STAGE, spell(some)?),
    })
}

/// The values of [`COMPLETE`], in its order.
pub(super) fn complete_values(completion: &Completion) -> (Option<i16>, i64, i64, Option<i64>) {
    // The server's time rules: it is told how long ago.
    let began = completion.started_at;
    let began_ago = began.map(|at| ms(between(at, completion.now)));
    (
        completion.segment,
        completion.id.0,
        completion.token.get(),
        began_ago,
    )
}

/// The answer of [`ENTER`].
pub(super) fn entered(slot: Option<i32>, max: Option<i32>) -> Entered {
    let number = |number: Option<i32>| number.and_then(|n| u32::try_from(n).ok());
    Entered {
        slot: number(slot),
        max: number(max),
    }
}
