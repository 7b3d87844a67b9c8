//! `rowlock job show`: one job.

use anyhow::Result;
use jiff::Timestamp;
use rowlock::claim::WorkerId;
use rowlock::{JobId, JobState, Record};

use crate::open::{Access, Setup};
use crate::{exit, out, show};

/// How much of a payload or a message is shown.
const EXCERPT: usize = 1_000;

pub async fn run(setup: &Setup, id: JobId, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Read).await?;
    let Some(job) = rowlock.operate().job(id).await? else {
        return Err(exit::with(exit::NOT_FOUND, not_found(id)));
    };
    match json {
        true => out::json(&job)?,
        false => out::lines(&page(&job, rowlock.clock().now()))?,
    }
    Ok(exit::OK)
}

/// The words for a job that isn't there.
pub fn not_found(id: JobId) -> String {
    format!(
        "job {id} not found: it never was in this store, or it was deleted or is past its retention"
    )
}

fn page(job: &Record, now: Timestamp) -> String {
    let mut page = format!(
        "{}  {}  {}  attempt {} of {}{}\n",
        job.id,
        job.kind,
        job.state,
        job.attempt,
        job.max_attempts,
        times(job, now)
    );
    let mut add = |what: &str, value: &str| page.push_str(&format!("  {what:<8}  {value}\n"));
    if job.payload.as_str() != "{}" {
        add("payload", &show::excerpt(job.payload.as_str(), EXCERPT));
    }
    if job.queue.as_str() != rowlock::Kind::DEFAULT_QUEUE {
        add("queue", &show::text(job.queue.as_str()));
    }
    if job.priority != 0 {
        add("priority", &job.priority.to_string());
    }
    if let Some(key) = &job.unique_key {
        add("key", &show::excerpt(key, EXCERPT));
    }
    if !job.tags.is_empty() {
        let tags: Vec<_> = job.tags.iter().map(ToString::to_string).collect();
        add("tags", &tags.join(" "));
    }
    if job.state == JobState::Pending && job.scheduled_at > now {
        add("due", &job.scheduled_at.to_string());
    }
    if let Some(key) = &job.idempotency_key {
        add("idem key", key);
    }
    match (&job.locked_by, route(job)) {
        (_, Some(route)) => add("sent", &format!("by route {}", show::text(route))),
        (Some(worker), None) => add("worker", &show::text(worker)),
        (None, None) => {}
    }
    for error in &job.errors {
        let kind = format!("{:?}", error.kind).to_lowercase();
        let message = show::ends(&error.message, EXCERPT);
        add(
            &kind,
            &format!("attempt {}, {}: {message}", error.attempt, error.at),
        );
    }
    page
}

/// The route that has sent it on, if one has.
fn route(job: &Record) -> Option<&str> {
    job.locked_by.as_deref()?.strip_prefix(WorkerId::ROUTE)
}

/// How long it waited and ran, or how long it will.
pub fn times(job: &Record, now: Timestamp) -> String {
    let due = job.scheduled_at.max(job.created_at);
    match (job.state, job.started_at, job.finished_at) {
        (JobState::Pending, _, _) if job.scheduled_at > now => {
            format!(
                "  due in {}",
                show::span(show::between(now, job.scheduled_at))
            )
        }
        (JobState::Pending, _, _) => {
            format!("  waits {}", show::span(show::between(due, now)))
        }
        (JobState::Processing, Some(sent), _) if route(job).is_some() => {
            format!("  sent {} ago", show::span(show::between(sent, now)))
        }
        (JobState::Processing, Some(started), _) => {
            format!("  runs {}", show::span(show::between(started, now)))
        }
        (_, Some(started), Some(finished)) if started >= due => format!(
            "  waited {}  ran {}",
            show::span(show::between(due, started)),
            show::span(show::between(started, finished))
        ),
        _ => String::new(),
    }
}
