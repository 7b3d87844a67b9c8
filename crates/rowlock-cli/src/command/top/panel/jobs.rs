//! Jobs: those that run, those that failed, and everything about one of them.

use jiff::Timestamp;
use rowlock::Record;

use super::{Column, Grid, Key, Row, Tone, WAITING, number, text};
use crate::command::job_show::times;
use crate::command::top::look::Seen;
use crate::command::top::state::{Page, View};
use crate::command::top::text::{clean, short, spread};
use crate::show;

/// What is shown of a message in a row, and of a payload on a page.
const MESSAGE: usize = 200;
const PAYLOAD: usize = 20_000;

const RUNNING: [Column; 6] = [
    number("ID", 0),
    text("KIND", 0),
    text("QUEUE", 3),
    text("ATTEMPT", 2),
    number("AGE", 1),
    text("WORKER", 4),
];

const FAILED: [Column; 6] = [
    number("ID", 0),
    text("KIND", 0),
    text("QUEUE", 4),
    text("ATTEMPT", 3),
    number("ENDED", 2),
    text("ERROR", 1),
];

pub fn grid(seen: &Seen, view: View) -> Grid {
    let (columns, jobs, empty) = match view {
        View::Running => (&RUNNING, &seen.running, "nothing runs; s shows what failed"),
        View::Failed => (
            &FAILED,
            &seen.failed,
            "nothing failed lately; `rowlock job list --state failed` looks further back",
        ),
    };
    let rows = jobs.iter().flatten().map(|job| match view {
        View::Running => running(job, seen.now),
        View::Failed => failed(job, seen.now),
    });
    Grid {
        columns,
        rows: rows.collect(),
        empty: match jobs {
            Some(_) => empty,
            None => WAITING,
        },
    }
}

fn first(job: &Record) -> Vec<String> {
    vec![
        job.id.to_string(),
        clean(job.kind.as_str()),
        clean(job.queue.as_str()),
        format!("{} of {}", job.attempt, job.max_attempts),
    ]
}

fn ago(then: Option<Timestamp>, now: Timestamp) -> String {
    let ago = then.map(|then| short(show::between(then, now)));
    ago.unwrap_or_else(|| "-".to_owned())
}

fn running(job: &Record, now: Timestamp) -> Row {
    let mut cells = first(job);
    cells.push(ago(job.started_at, now));
    cells.push(clean(job.locked_by.as_deref().unwrap_or("-")));
    Row {
        key: Key::Job(job.id),
        cells,
        tone: Tone::Plain,
    }
}

fn failed(job: &Record, now: Timestamp) -> Row {
    let mut cells = first(job);
    cells.push(ago(job.finished_at, now));
    let why = job.errors.last().map_or("-", |last| &last.message);
    let why: String = why.chars().take(MESSAGE).collect();
    cells.push(clean(&why));
    Row {
        key: Key::Job(job.id),
        cells,
        tone: Tone::Bad,
    }
}

/// Everything about one job.
pub fn page(job: &Record, now: Timestamp) -> Page {
    let title = format!("job {}  {}  {}", job.id, job.kind, job.state);
    let mut page = Page::new(clean(&title));
    let attempt = format!("{} of {}", job.attempt, job.max_attempts);
    page.add("attempt", &format!("{attempt}{}", times(job, now)));
    page.add("queue", job.queue.as_str());
    page.add("priority", &job.priority.to_string());
    if let Some(key) = &job.unique_key {
        page.add("key", key);
    }
    let tags: Vec<_> = job.tags.iter().map(|tag| tag.as_str()).collect();
    if !tags.is_empty() {
        page.add("tags", &tags.join(" "));
    }
    if let Some(worker) = &job.locked_by {
        page.add("worker", worker);
    }
    page.add("created", &job.created_at.to_string());
    page.add("due", &job.scheduled_at.to_string());
    if let Some(started) = job.started_at {
        page.add("started", &started.to_string());
    }
    if let Some(finished) = job.finished_at {
        page.add("finished", &finished.to_string());
    }
    if let Some(trace) = &job.trace_context {
        page.add("trace", trace);
    }
    for error in &job.errors {
        let kind = format!("{:?}", error.kind).to_lowercase();
        page.add(&kind, &format!("attempt {}, {}", error.attempt, error.at));
        for line in error.message.lines() {
            page.add("", line);
        }
    }
    let whole = job.payload.as_str();
    let end = whole.char_indices().nth(PAYLOAD).map(|(end, _)| end);
    let mut lines = spread(&whole[..end.unwrap_or(whole.len())]).into_iter();
    page.add("payload", &lines.next().unwrap_or_default());
    lines.for_each(|line| page.add("", &line));
    if end.is_some() {
        let bytes = show::count(whole.len() as u64);
        let rest = format!("... {bytes} bytes: `rowlock job show {} --json`", job.id);
        page.add("", &rest);
    }
    page
}
