//! Stores jobs: on our writer, or on a connection of the caller's.

use std::sync::Once;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};

use super::error::map;
use super::row;
use super::statements::{Sql, sql};
use super::value::Value;
use crate::error::{Error, Result};
use crate::job::{JobId, NewJob};
use crate::log;
use crate::stage::{Enqueued, Status};

pub(super) const STAGE: Sql = sql!("stage");
pub(super) const STAGE_REFUSED: Sql = sql!("stage_refused");
pub(super) const REJECTED_KIND: Sql = sql!("stage_rejected_kind");
pub(super) const REJECTED_QUEUE: Sql = sql!("stage_rejected_queue");
pub(super) const ATTACHED: Sql = sql!("attached");

/// What is staged together stands or falls together, whatever else the transaction holds.
pub(crate) const SAVEPOINT: &str = "SAVEPOINT rowlock_stage";

/// Ends the savepoint.
pub(crate) fn end(keep: bool) -> &'static str {
    match keep {
        true => "RELEASE rowlock_stage",
        false => "ROLLBACK TO rowlock_stage; RELEASE rowlock_stage",
    }
}

/// Stages jobs in the transaction that `connection` is in.
pub(crate) fn stage(
    connection: &Connection,
    jobs: &[NewJob],
    now: Timestamp,
) -> Result<Vec<Enqueued>> {
    let mut insert = STAGE.on(connection)?;
    let mut answers = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter().enumerate() {
        let stored = insert
            .query_row(rusqlite::params_from_iter(values(job, now)?), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
            .map_err(|why| map(why, STAGE.name))?;
        answers.push(match stored {
            Some((id, held)) => taken(id, held),
            None => {
                let (missing, holder) = STAGE_REFUSED
                    .on(connection)?
                    .query_row(rusqlite::params_from_iter(refused_values(job)?), |row| {
                        Ok((row::text(row, 0)?, row.get(1)?))
                    })
                    .map_err(|why| map(why, STAGE_REFUSED.name))?;
                let answer = refused(job, index, missing, holder)?;
                if answer.status == Status::Rejected {
                    count_rejected(connection, job, now)?;
                }
                answer
            }
        });
    }
    crash_point!("stage.written");
    Ok(answers)
}

fn count_rejected(connection: &Connection, job: &NewJob, now: Timestamp) -> Result<()> {
    let count = |statement: Sql, values: &[Value<'_>]| {
        super::settle::execute(connection, statement, rusqlite::params_from_iter(values))
    };
    let values = rejected_values(job, now);
    if !count(REJECTED_KIND, &values[..2])? {
        count(REJECTED_QUEUE, &values)?;
    }
    Ok(())
}

/// What `stage_rejected_queue.sql` takes; the first two are for `stage_rejected_kind.sql`.
pub(super) fn rejected_values(job: &NewJob, now: Timestamp) -> [Value<'_>; 4] {
    let declared = job.declared.as_deref();
    [
        job.kind.as_str().into(),
        now.as_millisecond().into(),
        job.queue.as_ref().map(AsRef::<str>::as_ref).into(),
        declared.map(|kind| kind.queue.as_str()).into(),
    ]
}

/// What `stage.sql` takes.
pub(super) fn values(job: &NewJob, now: Timestamp) -> Result<[Value<'_>; 17]> {
    let declared = job.declared.as_deref();
    Ok([
        job.kind.as_str().into(),
        job.payload.as_str().into(),
        job.queue.as_ref().map(AsRef::<str>::as_ref).into(),
        job.priority.map(i64::from).into(),
        job.due_at(now).as_millisecond().into(),
        job.max_attempts.map(i64::from).into(),
        job.unique_key.as_deref().into(),
        job.unique_until.map(|until| until.as_str()).into(),
        json(&job.tags)?.into(),
        job.trace_context.as_deref().into(),
        job.backoff.as_ref().map(json).transpose()?.into(),
        now.as_millisecond().into(),
        declared.map(|kind| kind.queue.as_str()).into(),
        declared.map(|kind| i64::from(kind.priority)).into(),
        declared.map(|kind| i64::from(kind.max_attempts)).into(),
        key_fields(job)?.into(),
        declared.map(|kind| kind.unique_until.as_str()).into(),
    ])
}

/// What `stage_refused.sql` takes.
pub(super) fn refused_values(job: &NewJob) -> Result<[Value<'_>; 4]> {
    Ok([
        job.kind.as_str().into(),
        job.payload.as_str().into(),
        job.unique_key.as_deref().into(),
        key_fields(job)?.into(),
    ])
}

fn key_fields(job: &NewJob) -> Result<Option<String>> {
    job.declared
        .as_deref()
        .map(|kind| json(&kind.key))
        .transpose()
}

/// The answer for a job that was stored.
pub(super) fn taken(id: i64, held: bool) -> Enqueued {
    Enqueued {
        id: Some(JobId(id)),
        status: if held { Status::Held } else { Status::Queued },
    }
}

/// The answer for a job that wasn't, from what `stage_refused.sql` found.
pub(super) fn refused(
    job: &NewJob,
    index: usize,
    missing: Option<String>,
    holder: Option<i64>,
) -> Result<Enqueued> {
    if let Some(field) = missing {
        return Err(Error::InvalidAt {
            index,
            why: format!(
                "the payload lacks the field {field:?}, which is part of the unique key of {}",
                job.kind
            ),
        });
    }
    Ok(match holder {
        Some(id) => Enqueued {
            id: Some(JobId(id)),
            status: Status::Duplicate,
        },
        None => Enqueued {
            id: None,
            status: Status::Rejected,
        },
    })
}

const FULL: i64 = 2;

/// A commit over attached files is not atomic in WAL mode, so only the main database will do.
pub(crate) fn check_main(connection: &Connection) -> Result<()> {
    let (ours, synchronous) = ATTACHED
        .on(connection)?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(|why| map(why, ATTACHED.name))?;
    judge_main(ours, synchronous)
}

/// Judges what `attached.sql` found.
pub(super) fn judge_main(ours: bool, synchronous: i64) -> Result<()> {
    if !ours {
        return Err(Error::Schema(
            "the connection's main database has no rowlock tables, so a job can't share its \
             transaction: point rowlock at the application's own file (url = \"sqlite:app.db\") and \
             run `rowlock migrate up`; an attached file won't do"
                .to_owned(),
        ));
    }
    if synchronous < FULL {
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            log::warn!(
                "this connection has synchronous below FULL: a power cut can lose its last commits"
            );
        });
    }
    Ok(())
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|why| Error::Bug(why.to_string()))
}
