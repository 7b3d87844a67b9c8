//! Applies verdicts under the fence, and moves of operators.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::error::map;
use super::held_back;
use super::row;
use super::stage::json;
use super::statements::{Sql, sql};
use super::value::Value;
use crate::engine::Cancel;
use crate::error::{Error, Result};
use crate::job::{JobError, JobId, JobState};
use crate::settle::{Completion, Settled, Settlement, Verdict};

pub(super) const FINISH: Sql = sql!("settle_finish");
pub(super) const FORGET: Sql = sql!("settle_forget");

/// When a verdict is applied, and how many errors a job keeps; the oldest go first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) now: Timestamp,
    pub(super) errors_kept: i64,
}

/// One verdict. Every statement matches id and token.
pub(super) fn settle(
    connection: &Connection,
    settlement: &Settlement,
    terms: Terms,
) -> Result<Settled> {
    let finish =
        |state, error: Option<&JobError>| finish(connection, settlement, state, error, terms);
    let again = |at, given_back, suspect, error| {
        again(
            connection, settlement, at, given_back, suspect, error, terms,
        )
    };
    let moved = match &settlement.verdict {
        Verdict::Done | Verdict::NotNeeded => finish(JobState::Completed, None),
        Verdict::Fail(error) => finish(JobState::Failed, Some(error)),
        Verdict::Cancelled => finish(JobState::Cancelled, None),
        Verdict::Retry { at, error } => again(Some(*at), false, Some(false), Some(error)),
        Verdict::Snooze(until) => again(Some(*until), true, Some(false), None),
        Verdict::Release => again(None, true, None, None),
        Verdict::Sent => forget(connection, settlement),
        Verdict::Note(error) => execute(
            connection,
            sql!("settle_note"),
            params![
                settlement.id.0,
                settlement.token.get(),
                json(error)?,
                terms.errors_kept
            ],
        ),
        Verdict::Expired { charged: None } => again(None, true, Some(true), None),
        Verdict::Expired {
            charged: Some((at, error)),
        } => again(Some(*at), false, Some(true), Some(error)),
    }?;
    // What somebody wants cancelled gets no other attempt.
    let moved = moved
        || match &settlement.verdict {
            Verdict::Retry { error, .. } => finish(JobState::Cancelled, Some(error))?,
            Verdict::Snooze(_) | Verdict::Release | Verdict::Expired { .. } => {
                finish(JobState::Cancelled, None)?
            }
            _ => false,
        };
    Ok(match moved {
        true => Settled::Accepted,
        false => Settled::LeaseLost,
    })
}

/// Ends a job: into the history, or out of the store when its kind keeps none.
pub(super) fn finish(
    connection: &Connection,
    settlement: &Settlement,
    state: JobState,
    error: Option<&JobError>,
    terms: Terms,
) -> Result<bool> {
    let (id, token) = (settlement.id, Some(settlement.token));
    held_back::hold(connection, id, token, state, terms.now)?;
    let kept = execute(
        connection,
        FINISH,
        params![
            settlement.id.0,
            settlement.token.get(),
            state.as_str(),
            terms.now.as_millisecond(),
            settlement.started_at.map(Timestamp::as_millisecond),
            error.map(json).transpose()?,
            terms.errors_kept,
        ],
    )?;
    if kept {
        return Ok(true);
    }
    forget(connection, settlement)
}

fn forget(connection: &Connection, settlement: &Settlement) -> Result<bool> {
    execute(
        connection,
        FORGET,
        params![settlement.id.0, settlement.token.get()],
    )
}

/// Ends a claimed job as done, in a transaction of the caller's. Whether the claim still held.
pub(crate) fn complete(connection: &Connection, completion: &Completion) -> Result<bool> {
    let values = rusqlite::params_from_iter(complete_values(completion));
    Ok(execute(connection, FINISH, values)?
        || execute(
            connection,
            FORGET,
            rusqlite::params_from_iter(forget_values(completion)),
        )?)
}

/// What `settle_finish.sql` takes when the work is done.
pub(super) fn complete_values(completion: &Completion) -> [Value<'static>; 7] {
    let started_at = completion.started_at.map(Timestamp::as_millisecond);
    [
        completion.id.0.into(),
        completion.token.get().into(),
        JobState::Completed.as_str().into(),
        completion.now.as_millisecond().into(),
        started_at.into(),
        Value::Null,
        // Without an error none has to go.
        Value::Null,
    ]
}

/// What `settle_forget.sql` takes.
pub(super) fn forget_values(completion: &Completion) -> [Value<'static>; 2] {
    [completion.id.0.into(), completion.token.get().into()]
}

/// Puts a job back to pending.
pub(super) fn again(
    connection: &Connection,
    settlement: &Settlement,
    at: Option<Timestamp>,
    attempt_given_back: bool,
    suspect: Option<bool>,
    error: Option<&JobError>,
    terms: Terms,
) -> Result<bool> {
    execute(
        connection,
        sql!("settle_again"),
        params![
            settlement.id.0,
            settlement.token.get(),
            at.map(Timestamp::as_millisecond),
            attempt_given_back,
            suspect,
            error.map(json).transpose()?,
            terms.errors_kept,
        ],
    )
}

pub(super) fn cancel(connection: &Connection, id: JobId, now: Timestamp) -> Result<Result<Cancel>> {
    held_back::hold(connection, id, None, JobState::Cancelled, now)?;
    if execute(
        connection,
        sql!("cancel"),
        params![id.0, now.as_millisecond()],
    )? {
        return Ok(Ok(Cancel::Cancelled));
    }
    if execute(connection, sql!("cancel_request"), params![id.0])? {
        return Ok(Ok(Cancel::Requested));
    }
    refuse(connection, id, "it has ended already")
}

pub(super) fn redrive(connection: &Connection, id: JobId, now: Timestamp) -> Result<Result<()>> {
    if execute(
        connection,
        sql!("redrive"),
        params![id.0, now.as_millisecond()],
    )? {
        execute(connection, sql!("lift_redriven"), params![id.0])?;
        execute(connection, sql!("prune_one"), params![id.0])?;
        return Ok(Ok(()));
    }
    let holder: Option<i64> = sql!("key_holder")
        .on(connection)?
        .query_row([id.0], |row| row.get(0))
        .optional()
        .map_err(|why| map(why, "key_holder"))?;
    match holder {
        Some(holder) => refuse(
            connection,
            id,
            &format!("job {holder} is live and has the same unique key; wait for it or cancel it"),
        ),
        None => refuse(connection, id, "only ended jobs can be retried"),
    }
}

pub(super) fn delete(connection: &Connection, id: JobId) -> Result<Result<()>> {
    if execute(connection, sql!("delete"), params![id.0])?
        || execute(connection, sql!("prune_one"), params![id.0])?
    {
        return Ok(Ok(()));
    }
    refuse(
        connection,
        id,
        &format!("cancel it first (rowlock job cancel {id})"),
    )
}

pub(super) fn prune(connection: &Connection, now: Timestamp, limit: usize) -> Result<usize> {
    sql!("prune")
        .on(connection)?
        .execute(params![
            now.as_millisecond(),
            i64::try_from(limit).unwrap_or(i64::MAX)
        ])
        .map_err(|why| map(why, "prune"))
}

fn refuse<T>(connection: &Connection, id: JobId, why: &str) -> Result<Result<T>> {
    let state = sql!("state_of")
        .on(connection)?
        .query_row([id.0], |row| row::state(row, 0))
        .optional()
        .map_err(|why| map(why, "state_of"))?;
    Ok(Err(match state {
        None => Error::NotFound(format!("job {id}")),
        Some(state) => Error::Conflict {
            id,
            state,
            why: why.to_owned(),
        },
    }))
}

/// Whether the statement changed a row.
pub(super) fn execute(
    connection: &Connection,
    statement: Sql,
    values: impl rusqlite::Params,
) -> Result<bool> {
    let changed = statement
        .on(connection)?
        .execute(values)
        .map_err(|why| map(why, statement.name))?;
    Ok(changed > 0)
}
