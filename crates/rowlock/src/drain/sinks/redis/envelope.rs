//! Jobs and verdicts as they lie in Redis. Clocks differ: times of a verdict travel as waits and ages.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::claim::{ClaimedJob, WorkerId};
use crate::clock;
use crate::drain::Report;
use crate::error::{Error, Result};
use crate::job::{Backoff, ErrorKind, JobError, JobId, KeySource, Name, Payload, Token};
use crate::settle::{Settlement, Verdict};

/// What the scripts don't look at of a job. What is as usual is left out.
#[derive(Serialize)]
struct Sent<'a> {
    payload: &'a RawValue,
    attempt: u32,
    max_attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique_key: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Name]>::is_empty")]
    tags: &'a [Name],
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_context: Option<&'a str>,
    #[serde(skip_serializing_if = "is_default")]
    backoff: &'a Backoff,
    timeout_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
}

/// The same for whoever takes it.
#[derive(Deserialize)]
struct Taken<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
    attempt: u32,
    max_attempts: u32,
    #[serde(default)]
    unique_key: Option<String>,
    #[serde(default)]
    tags: Vec<Name>,
    #[serde(default)]
    trace_context: Option<String>,
    #[serde(default)]
    backoff: Backoff,
    timeout_ms: u64,
    /// Older drains send none.
    #[serde(default)]
    idempotency_key: Option<String>,
}

fn is_default(backoff: &&Backoff) -> bool {
    **backoff == Backoff::default()
}

/// Where a job waits: `QUEUE/KIND/PRIORITY`, and `/suspect` for one that is.
pub(super) fn lane(job: &ClaimedJob) -> String {
    let suspect = if job.suspect { SUSPECT } else { "" };
    format!("{}/{}/{}{suspect}", job.queue, job.kind, job.priority)
}

const SUSPECT: &str = "/suspect";

/// What is known of a job for as long as it is held: `TOKEN LANE ATTEMPT KEY`.
pub(super) fn label(job: &ClaimedJob, lane: &str) -> String {
    let (token, attempt) = (job.token.get(), job.attempt);
    match &job.unique_key {
        Some(key) => format!("{token} {lane} {attempt} ={key}"),
        None => format!("{token} {lane} {attempt} -"),
    }
}

/// A job as it waits, in one line: `ID TOKEN DUE LANE BODY`; or why it can't.
pub(super) fn seal(job: &ClaimedJob, lane: &str) -> Result<String, String> {
    let payload = serde_json::from_str(job.payload.as_str())
        .map_err(|why| format!("the payload is not valid JSON: {why}"))?;
    let sent = Sent {
        payload,
        attempt: job.attempt,
        max_attempts: job.max_attempts,
        unique_key: job.unique_key.as_deref(),
        tags: &job.tags,
        trace_context: job.trace_context.as_deref(),
        backoff: &job.backoff,
        timeout_ms: u64::try_from(job.timeout.as_millis()).unwrap_or(u64::MAX),
        idempotency_key: job.idempotency_key().ok(),
    };
    let body = serde_json::to_string(&sent)
        .map_err(|why| format!("it can't be written as JSON: {why}"))?;
    let due = job.scheduled_at.as_millisecond();
    let entry = format!("{} {} {due} {lane} {body}", job.id, job.token.get());
    match entry.contains('\n') {
        // White space in a payload that was written by hand.
        true => Ok(entry.replace('\n', " ")),
        false => Ok(entry),
    }
}

/// An entry that was taken.
pub(super) struct Opened {
    pub(super) id: JobId,
    /// The claim it was sent under.
    pub(super) sent: Token,
    pub(super) kind: Name,
    /// The job under the token it was taken with, or why it can't be read.
    pub(super) job: Result<ClaimedJob, String>,
}

/// What a verdict on a taken job must say of it.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The claim it was sent under.
    pub(super) sent: Token,
    kind: Name,
    attempt: u32,
    unique_key: Option<String>,
}

impl Opened {
    pub(super) fn origin(&self) -> Origin {
        let job = self.job.as_ref().ok();
        Origin {
            sent: self.sent,
            kind: self.kind.clone(),
            attempt: job.map_or(0, |job| job.attempt),
            unique_key: job.and_then(|job| job.unique_key.clone()),
        }
    }
}

/// Reads an entry; nothing when not even its first words can be.
pub(super) fn open(entry: &[u8], taken: Token) -> Option<Opened> {
    let mut words = entry.splitn(5, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let id = JobId(word()?.parse().ok()?);
    let sent = Token::stored(word()?.parse().ok()?);
    let due = Timestamp::from_millisecond(word()?.parse().ok()?).ok()?;
    let lane = word()?;
    let (rest, suspect) = match lane.strip_suffix(SUSPECT) {
        Some(rest) => (rest, true),
        None => (lane, false),
    };
    let mut parts = rest.split('/');
    let queue = Name::new(parts.next()?).ok()?;
    let kind = Name::new(parts.next()?).ok()?;
    let priority = parts.next()?.parse().ok()?;
    let body = words.next().unwrap_or_default();
    let job = serde_json::from_slice::<Taken<'_>>(body).map_err(|why| why.to_string());
    Some(Opened {
        id,
        sent,
        kind: kind.clone(),
        job: job.map(|job| ClaimedJob {
            id,
            token: taken,
            kind,
            queue,
            priority,
            payload: Payload::stored(job.payload.get().to_owned()),
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            scheduled_at: due,
            unique_key: job.unique_key,
            tags: job.tags,
            trace_context: job.trace_context,
            backoff: job.backoff,
            timeout: Duration::from_millis(job.timeout_ms),
            suspect,
            segment: None,
            key: KeySource::Sent(job.idempotency_key),
        }),
    })
}

#[derive(Serialize)]
struct Telling<'a> {
    said: Said,
    kind: &'a Name,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_ms_ago: Option<u64>,
}

#[derive(Deserialize)]
struct Told {
    said: Said,
    kind: Name,
    attempt: u32,
    #[serde(default)]
    unique_key: Option<String>,
    #[serde(default)]
    started_ms_ago: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Done,
    NotNeeded,
    Retry { in_ms: u64, error: Trouble },
    Snooze { in_ms: u64 },
    Fail { error: Trouble },
    Cancelled,
    Release,
}

#[derive(Serialize, Deserialize)]
struct Trouble {
    attempt: u32,
    ms_ago: u64,
    kind: ErrorKind,
    message: String,
}

/// A verdict for the way back, in one line.
///
/// # Errors
/// [`Error::Bug`] for one that no worker gives.
pub(super) fn tell(settlement: &Settlement, origin: &Origin, now: Timestamp) -> Result<String> {
    let trouble = |error: &JobError| Trouble {
        attempt: error.attempt,
        ms_ago: ms(error.at, now),
        kind: error.kind,
        message: error.message.clone(),
    };
    let said = match &settlement.verdict {
        Verdict::Done => Said::Done,
        Verdict::NotNeeded => Said::NotNeeded,
        Verdict::Retry { at, error } => Said::Retry {
            in_ms: ms(now, *at),
            error: trouble(error),
        },
        Verdict::Snooze(at) => Said::Snooze {
            in_ms: ms(now, *at),
        },
        Verdict::Fail(error) => Said::Fail {
            error: trouble(error),
        },
        Verdict::Cancelled => Said::Cancelled,
        Verdict::Release => Said::Release,
        other => return Err(Error::Bug(format!("no worker says {other:?}"))),
    };
    let telling = Telling {
        said,
        kind: &origin.kind,
        attempt: origin.attempt,
        unique_key: origin.unique_key.as_deref(),
        started_ms_ago: settlement.started_at.map(|started| ms(started, now)),
    };
    serde_json::to_string(&telling).map_err(|why| Error::Bug(format!("a verdict as JSON: {why}")))
}

/// Who has taken a job, and when that one said something about it, by the clock of whoever reads it.
pub(super) struct Taker {
    pub(super) worker: WorkerId,
    pub(super) taken: Token,
    pub(super) given: Timestamp,
}

/// A verdict on a job that was sent under `token`.
pub(super) fn hear(told: &str, id: JobId, token: Token, by: Taker) -> Result<Report, String> {
    let given = by.given;
    let told: Told = serde_json::from_str(told).map_err(|why| why.to_string())?;
    let trouble = |error: Trouble| {
        let at = before(given, error.ms_ago);
        JobError::new(error.attempt, at, error.kind, &error.message)
    };
    let at = |in_ms| clock::add(given, Duration::from_millis(in_ms));
    let verdict = match told.said {
        Said::Done => Verdict::Done,
        Said::NotNeeded => Verdict::NotNeeded,
        Said::Retry { in_ms, error } => Verdict::Retry {
            at: at(in_ms),
            error: trouble(error),
        },
        Said::Snooze { in_ms } => Verdict::Snooze(at(in_ms)),
        Said::Fail { error } => Verdict::Fail(trouble(error)),
        Said::Cancelled => Verdict::Cancelled,
        Said::Release => Verdict::Release,
    };
    Ok(Report {
        settlement: Settlement {
            id,
            token,
            verdict,
            started_at: told.started_ms_ago.map(|ago| before(given, ago)),
        },
        taken: by.taken,
        worker: by.worker,
        attempt: told.attempt,
        kind: told.kind,
        unique_key: told.unique_key,
    })
}

/// From one time to a later one; nothing when it isn't later.
fn ms(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(from.duration_until(to).as_millis()).unwrap_or(0)
}

/// Held at the beginning of the calendar instead of failing.
pub(super) fn before(time: Timestamp, ms: u64) -> Timestamp {
    time.saturating_sub(Duration::from_millis(ms))
        .unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests;
