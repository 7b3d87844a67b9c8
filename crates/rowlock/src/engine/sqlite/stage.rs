//! Stores jobs: on our writer, or on a connection of the caller's.

use std::sync::Once;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::error::map;
use super::row;
use super::statements::sql;
use crate::error::{Error, Result};
use crate::job::{JobId, NewJob};
use crate::stage::{Enqueued, Status};

/// Stages jobs in the transaction that `connection` is in.
pub(crate) fn stage(
    connection: &Connection,
    jobs: &[NewJob],
    now: Timestamp,
) -> Result<Vec<Enqueued>> {
    let mut insert = sql!("stage").on(connection)?;
    let mut answers = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter().enumerate() {
        let declared = job.declared.as_deref();
        let key_fields = declared.map(|kind| json(&kind.key)).transpose()?;
        let stored = insert
            .query_row(
                params![
                    job.kind.as_str(),
                    job.payload.as_str(),
                    job.queue.as_ref().map(AsRef::as_ref),
                    job.priority,
                    job.due_at(now).as_millisecond(),
                    job.max_attempts,
                    job.unique_key,
                    job.unique_until.map(|until| until.as_str()),
                    json(&job.tags)?,
                    job.trace_context,
                    job.backoff.as_ref().map(json).transpose()?,
                    now.as_millisecond(),
                    declared.map(|kind| kind.queue.as_str()),
                    declared.map(|kind| kind.priority),
                    declared.map(|kind| kind.max_attempts),
                    key_fields,
                    declared.map(|kind| kind.unique_until.as_str()),
                ],
                |row| Ok((row.get(0)?, row.get::<_, bool>(1)?)),
            )
            .optional()
            .map_err(|why| map(why, "stage"))?;
        answers.push(match stored {
            Some((id, held)) => Enqueued {
                id: Some(JobId(id)),
                status: if held { Status::Held } else { Status::Queued },
            },
            None => refused(connection, job, key_fields.as_deref(), index)?,
        });
    }
    Ok(answers)
}

fn refused(
    connection: &Connection,
    job: &NewJob,
    key_fields: Option<&str>,
    index: usize,
) -> Result<Enqueued> {
    let (missing, holder) = sql!("stage_refused")
        .on(connection)?
        .query_row(
            params![
                job.kind.as_str(),
                job.payload.as_str(),
                job.unique_key,
                key_fields
            ],
            |row| Ok((row::text(row, 0)?, row.get::<_, Option<i64>>(1)?)),
        )
        .map_err(|why| map(why, "stage_refused"))?;
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
    let (ours, synchronous): (bool, i64) = sql!("attached")
        .on(connection)?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(|why| map(why, "looking at the main database"))?;
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
            tracing::warn!(
                "this connection has synchronous below FULL: a power cut can lose its last commits"
            );
        });
    }
    Ok(())
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|why| Error::Bug(why.to_string()))
}
