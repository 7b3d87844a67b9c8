//! Stores jobs: on a connection of ours, or of the caller's. One statement takes them all, as JSON,
//! so that every driver can send it.

use serde_json::{Map, Value};
use tokio_postgres::types::Type;

use super::Postgres;
use super::ms;
use super::row::get;
use crate::error::{Error, Result};
use crate::job::{Due, JobId, Kind, NewJob};
use crate::stage::{Enqueued, Status};

impl Postgres {
    pub(super) async fn stage_all(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let text = spell(jobs)?;
        let mut answers = Vec::with_capacity(jobs.len());
        for row in &self.call("stage", &[(&text.as_str(), Type::TEXT)]).await? {
            answers.push(answer(get(row, 0)?, &get::<String>(row, 1)?)?);
        }
        Ok(answers)
    }
}

/// The answer for one job.
pub(crate) fn answer(id: Option<i64>, status: &str) -> Result<Enqueued> {
    let status = match status {
        "queued" => Status::Queued,
        "duplicate" => Status::Duplicate,
        "held" => Status::Held,
        "rejected" => Status::Rejected,
        other => return Err(Error::Bug(format!("an enqueue was answered {other:?}"))),
    };
    let id = id.map(JobId).filter(|_| status != Status::Rejected);
    Ok(Enqueued { id, status })
}

/// Jobs as `stage.sql` takes them.
pub(crate) fn spell(jobs: &[NewJob]) -> Result<String> {
    let all: Result<Vec<Value>> = jobs.iter().map(spell_one).collect();
    json(&all?)
}

pub(super) fn spell_one(job: &NewJob) -> Result<Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            fields.insert(name.to_owned(), value);
        }
    };
    put("kind", job.kind.as_str().into());
    // As text, so that it is stored as it was written.
    put("payload", job.payload.as_str().into());
    put(
        "queue",
        job.queue.as_ref().map(|queue| queue.as_str()).into(),
    );
    put("priority", job.priority.into());
    match job.due {
        Due::Now => {}
        Due::In(delay) => put("delay_ms", ms(delay).min(LONGEST_DELAY).into()),
        Due::At(at) => put("scheduled_at", within_calendar(at).to_string().into()),
    }
    put("max_attempts", job.max_attempts.into());
    put("unique_key", job.unique_key.as_deref().into());
    put(
        "unique_until",
        job.unique_until.map(|until| until.as_str()).into(),
    );
    if !job.tags.is_empty() {
        put("tags", job.tags.iter().map(|tag| tag.as_str()).collect());
    }
    put("trace_context", job.trace_context.as_deref().into());
    put("backoff", value(&job.backoff)?);
    put("declared", job.declared.as_deref().map(declared).into());
    Ok(Value::Object(fields))
}

/// About a thousand years: beyond that a time is as good as the calendar's end.
const LONGEST_DELAY: i64 = 1_000 * 365 * 86_400_000;

fn within_calendar(at: jiff::Timestamp) -> jiff::Timestamp {
    // PostgreSQL's calendar begins in 4713 BC.
    const EARLIEST: i64 = -210_000_000_000;
    let earliest = jiff::Timestamp::from_second(EARLIEST).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let latest = jiff::Timestamp::from_second(253_402_128_000).unwrap_or(jiff::Timestamp::MAX);
    at.clamp(earliest, latest)
}

fn declared(kind: &Kind) -> Value {
    serde_json::json!({
        "queue": kind.queue.as_str(),
        "priority": kind.priority,
        "max_attempts": kind.max_attempts,
        "key": kind.key.iter().map(|field| field.as_str()).collect::<Vec<_>>(),
        "unique_until": kind.unique_until.as_str(),
    })
}

fn value<T: serde::Serialize>(value: &T) -> Result<Value> {
    serde_json::to_value(value).map_err(|why| Error::Bug(why.to_string()))
}

pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|why| Error::Bug(why.to_string()))
}
