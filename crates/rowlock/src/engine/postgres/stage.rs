//! Stores jobs: on a connection of ours, or of the caller's. One statement takes them all, as JSON,
//! so that every driver can send it.

use serde::Serialize;
use serde_json::Value;
use tokio_postgres::types::{ToSql, Type};

use super::Postgres;
use super::ms;
use super::row::get;
use super::shared::stage_statement;
use crate::error::{Error, Result};
use crate::job::{Backoff, Due, JobId, Kind, Name, NewJob};
use crate::stage::{Enqueued, Status};

impl Postgres {
    pub(super) async fn stage_all(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let (statement, text) = stage_statement(jobs)?;
        let values = [(&text.as_str() as &(dyn ToSql + Sync), Type::TEXT)];
        let mut answers = Vec::with_capacity(jobs.len());
        for row in &self.ask_often(statement, &values).await? {
            answers.push(answer(get(row, 0)?)?);
        }
        Ok(answers)
    }
}

/// The answer for one job, as `stage_call.sql` spells it.
pub(crate) fn answer(number: Option<i64>) -> Result<Enqueued> {
    let wrong = || Error::Bug(format!("an enqueue was answered {number:?}"));
    let number = number.filter(|number| *number >= 0).ok_or_else(wrong)?;
    let status = match number % 4 {
        0 => Status::Queued,
        1 => Status::Duplicate,
        2 => Status::Held,
        _ => Status::Rejected,
    };
    let id = (status != Status::Rejected).then_some(JobId(number / 4));
    Ok(Enqueued { id, status })
}

/// The same as `rowlock.stage` spells it.
pub(super) fn answer_in_words(id: Option<i64>, status: &str) -> Result<Enqueued> {
    const WORDS: [&str; 4] = ["queued", "duplicate", "held", "rejected"];
    let code = (0..).zip(WORDS).find(|(_, word)| *word == status);
    let Some((code, _)) = code else {
        return Err(Error::Bug(format!("an enqueue was answered {status:?}")));
    };
    answer(Some(id.unwrap_or(0) * 4 + code))
}

/// A job as `stage.sql` takes it. What isn't said is left open.
#[derive(Serialize)]
struct Spelled<'a> {
    kind: &'a str,
    /// As text, so that it is stored as it was written.
    payload: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_at: Option<jiff::Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique_until: Option<&'static str>,
    #[serde(skip_serializing_if = "<[Name]>::is_empty")]
    tags: &'a [Name],
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_context: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backoff: Option<&'a Backoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    declared: Option<Value>,
}

impl<'a> Spelled<'a> {
    fn new(job: &'a NewJob) -> Self {
        let (delay_ms, scheduled_at) = match job.due {
            Due::Now => (None, None),
            Due::In(delay) => (Some(ms(delay).min(LONGEST_DELAY)), None),
            Due::At(at) => (None, Some(within_calendar(at))),
        };
        Self {
            kind: job.kind.as_str(),
            payload: job.payload.as_str(),
            queue: job.queue.as_ref().map(Name::as_str),
            priority: job.priority,
            delay_ms,
            scheduled_at,
            max_attempts: job.max_attempts,
            unique_key: job.unique_key.as_deref(),
            unique_until: job.unique_until.map(|until| until.as_str()),
            tags: &job.tags,
            trace_context: job.trace_context.as_deref(),
            backoff: job.backoff.as_ref(),
            declared: job.declared.as_deref().map(declared),
        }
    }
}

/// Jobs as `stage.sql` takes them.
pub(crate) fn spell(jobs: &[NewJob]) -> Result<String> {
    json(&jobs.iter().map(Spelled::new).collect::<Vec<_>>())
}

pub(super) fn spell_one(job: &NewJob) -> Result<String> {
    json(&Spelled::new(job))
}

/// Whether a job is for `stage_plain.sql`: due now, without a key and whatever else is rare.
pub(super) fn is_plain(job: &NewJob) -> bool {
    job.due == Due::Now
        && job.unique_key.is_none()
        && job.unique_until.is_none()
        && job.tags.is_empty()
        && job.backoff.is_none()
        && job.declared.as_ref().is_none_or(|kind| kind.key.is_empty())
}

/// A plain job as `stage_plain.sql` takes it.
pub(super) struct Plain<'a> {
    pub(super) kind: &'a str,
    pub(super) payload: &'a str,
    pub(super) queue: Option<&'a str>,
    pub(super) priority: Option<i64>,
    pub(super) max_attempts: Option<i64>,
    pub(super) trace_context: Option<&'a str>,
    pub(super) declared: Option<String>,
}

impl<'a> Plain<'a> {
    pub(super) fn new(job: &'a NewJob) -> Result<Self> {
        let declared = job.declared.as_deref().map(declared);
        Ok(Self {
            kind: job.kind.as_str(),
            payload: job.payload.as_str(),
            queue: job.queue.as_ref().map(Name::as_str),
            priority: job.priority.map(i64::from),
            max_attempts: job.max_attempts.map(i64::from),
            trace_context: job.trace_context.as_deref(),
            declared: declared.map(|kind| json(&kind)).transpose()?,
        })
    }
}

/// The same as an array, as PostgreSQL writes it.
pub(super) fn spell_plain(job: &NewJob) -> Result<String> {
    let plain = Plain::new(job)?;
    let mut array = Array::new();
    array.push(Some(plain.kind));
    array.push(Some(plain.payload));
    plain.spell_rest(&mut array);
    Ok(array.end())
}

/// Whether plain jobs differ in nothing but their payloads.
pub(super) fn are_alike(jobs: &[NewJob]) -> bool {
    let is_same = |one: &NewJob, other: &NewJob| {
        one.kind == other.kind
            && one.queue == other.queue
            && one.priority == other.priority
            && one.max_attempts == other.max_attempts
            && one.trace_context == other.trace_context
            && one.declared == other.declared
    };
    jobs.first()
        .is_some_and(|first| jobs.iter().all(|job| is_plain(job) && is_same(first, job)))
}

/// Such jobs as `stage_alike.sql` takes them.
pub(super) fn spell_alike(first: &NewJob, jobs: &[NewJob]) -> Result<String> {
    let shared = Plain::new(first)?;
    let mut array = Array::new();
    array.push(Some(shared.kind));
    shared.spell_rest(&mut array);
    for job in jobs {
        array.push(Some(job.payload.as_str()));
    }
    Ok(array.end())
}

impl Plain<'_> {
    fn spell_rest(&self, array: &mut Array) {
        let number = |number: Option<i64>| number.map(|number| number.to_string());
        array.push(self.queue);
        array.push(number(self.priority).as_deref());
        array.push(number(self.max_attempts).as_deref());
        array.push(self.trace_context);
        array.push(self.declared.as_deref());
    }
}

/// Texts, as PostgreSQL writes an array of them.
struct Array(String);

impl Array {
    fn new() -> Self {
        Self(String::from("{"))
    }

    fn push(&mut self, text: Option<&str>) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        let Some(text) = text else {
            self.0.push_str("NULL");
            return;
        };
        self.0.push('"');
        for letter in text.chars() {
            if matches!(letter, '"' | '\\') {
                self.0.push('\\');
            }
            self.0.push(letter);
        }
        self.0.push('"');
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
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

pub(super) fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|why| Error::Bug(why.to_string()))
}
