//! Jobs and verdicts as they lie in Redis. Clocks differ: times of a verdict travel as waits and ages.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::claim::{ClaimedJob, WorkerId};
use crate::clock;
use crate::drain::Report;
use crate::error::{Error, Result};
use crate::job::{Backoff, ErrorKind, JobError, JobId, Name, Payload, Token};
use crate::settle::{Settlement, Verdict};

/// A job as it was claimed.
#[derive(Serialize)]
struct Sent<'a> {
    id: i64,
    kind: &'a str,
    queue: &'a str,
    priority: i16,
    payload: &'a RawValue,
    attempt: u32,
    max_attempts: u32,
    scheduled_at: i64,
    unique_key: Option<&'a str>,
    tags: &'a [Name],
    trace_context: Option<&'a str>,
    backoff: &'a Backoff,
    timeout_ms: u64,
    suspect: bool,
}

/// The same for whoever takes it.
#[derive(Deserialize)]
struct Taken<'a> {
    id: i64,
    kind: Name,
    queue: Name,
    priority: i16,
    #[serde(borrow)]
    payload: &'a RawValue,
    attempt: u32,
    max_attempts: u32,
    scheduled_at: i64,
    unique_key: Option<String>,
    tags: Vec<Name>,
    trace_context: Option<String>,
    backoff: Backoff,
    timeout_ms: u64,
    suspect: bool,
}

/// The body of a job, or why it can't have one.
pub(super) fn seal(job: &ClaimedJob) -> Result<String, String> {
    let payload = serde_json::from_str(job.payload.as_str())
        .map_err(|why| format!("the payload is not valid JSON: {why}"))?;
    let sent = Sent {
        id: job.id.0,
        kind: job.kind.as_str(),
        queue: job.queue.as_str(),
        priority: job.priority,
        payload,
        attempt: job.attempt,
        max_attempts: job.max_attempts,
        scheduled_at: job.scheduled_at.as_millisecond(),
        unique_key: job.unique_key.as_deref(),
        tags: &job.tags,
        trace_context: job.trace_context.as_deref(),
        backoff: &job.backoff,
        timeout_ms: u64::try_from(job.timeout.as_millis()).unwrap_or(u64::MAX),
        suspect: job.suspect,
    };
    serde_json::to_string(&sent).map_err(|why| format!("it can't be written as JSON: {why}"))
}

/// The job of a body, under the token it was taken with.
pub(super) fn open(body: &[u8], id: JobId, token: Token) -> Result<ClaimedJob, String> {
    let taken: Taken<'_> = serde_json::from_slice(body).map_err(|why| why.to_string())?;
    if taken.id != id.0 {
        return Err(format!("it is the body of job {}", taken.id));
    }
    let scheduled_at =
        Timestamp::from_millisecond(taken.scheduled_at).map_err(|why| why.to_string())?;
    Ok(ClaimedJob {
        id,
        token,
        kind: taken.kind,
        queue: taken.queue,
        priority: taken.priority,
        payload: Payload::stored(taken.payload.get().to_owned()),
        attempt: taken.attempt,
        max_attempts: taken.max_attempts,
        scheduled_at,
        unique_key: taken.unique_key,
        tags: taken.tags,
        trace_context: taken.trace_context,
        backoff: taken.backoff,
        timeout: Duration::from_millis(taken.timeout_ms),
        suspect: taken.suspect,
        segment: None,
    })
}

/// What the scripts must know of a job: `TOKEN DUE LANE ATTEMPT KEY`.
pub(super) fn label(job: &ClaimedJob) -> String {
    let suspect = if job.suspect { "/suspect" } else { "" };
    let key = match &job.unique_key {
        Some(key) => format!("={key}"),
        None => "-".to_owned(),
    };
    format!(
        "{} {} {}/{}/{}{suspect} {} {key}",
        job.token.get(),
        job.scheduled_at.as_millisecond(),
        job.queue,
        job.kind,
        job.priority,
        job.attempt,
    )
}

#[derive(Serialize, Deserialize)]
struct Told {
    #[serde(flatten)]
    verdict: Said,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_ms_ago: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
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

/// A verdict for the way back.
///
/// # Errors
/// [`Error::Bug`] for one that no worker gives.
pub(super) fn tell(settlement: &Settlement, now: Timestamp) -> Result<String> {
    let trouble = |error: &JobError| Trouble {
        attempt: error.attempt,
        ms_ago: ms(error.at, now),
        kind: error.kind,
        message: error.message.clone(),
    };
    let verdict = match &settlement.verdict {
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
    let told = Told {
        verdict,
        started_ms_ago: settlement.started_at.map(|started| ms(started, now)),
    };
    serde_json::to_string(&told).map_err(|why| Error::Bug(format!("a verdict as JSON: {why}")))
}

/// A report as the scripts write it: the verdict, then `TAKE WORKER TOKEN DUE LANE ATTEMPT
/// KEY`. It was given at
/// `given`, by the clock of whoever reads it.
pub(super) fn hear(id: &[u8], report: &[u8], given: Timestamp) -> Result<Report, String> {
    let id = text(id)?.parse().map_err(|_| "no id".to_owned())?;
    let (told, label) = text(report)?.split_once('\n').ok_or("no label")?;
    let told: Told = serde_json::from_str(told).map_err(|why| why.to_string())?;
    let mut words = label.splitn(7, ' ');
    let mut word = || words.next().ok_or("the label is too short");
    let token = |word: &str| word.parse().map(Token::stored).map_err(|_| "no token");
    let (taken, worker) = (token(word()?)?, WorkerId::stored(word()?.to_owned()));
    let (token, _due, lane) = (token(word()?)?, word()?, word()?);
    let attempt = word()?.parse().map_err(|_| "no attempt")?;
    let key = word()?;
    let kind = lane.split('/').nth(1).ok_or("no kind")?;
    let trouble = |error: Trouble| {
        let at = before(given, error.ms_ago);
        JobError::new(error.attempt, at, error.kind, &error.message)
    };
    let at = |in_ms| clock::add(given, Duration::from_millis(in_ms));
    let verdict = match told.verdict {
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
            id: JobId(id),
            token,
            verdict,
            started_at: told.started_ms_ago.map(|ago| before(given, ago)),
        },
        taken,
        worker,
        attempt,
        kind: Name::new(kind).map_err(|why| why.to_string())?,
        unique_key: key.strip_prefix('=').map(str::to_owned),
    })
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|why| why.to_string())
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
