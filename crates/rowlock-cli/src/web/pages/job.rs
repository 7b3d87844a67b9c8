//! One job: where it stands, how it got there, what it carries, and what can be done with it.

use jiff::Timestamp;
use maud::{Markup, html};
use rowlock::job::JobError;
use rowlock::{JobId, JobState, Record};

use super::payload;
use super::words::{ago, state};
use super::{Cx, Page};
use crate::command::job_not_found;
use crate::show;
use crate::web::problem::Problem;

/// A job that somebody names.
pub async fn find(cx: &Cx, id: &str) -> Result<Record, Problem> {
    let id: JobId = id.parse()?;
    let _turn = cx.turn().await?;
    let found = cx.web.rowlock.operate().job(id).await?;
    found.ok_or_else(|| {
        let remedy = "look in the list; ended jobs are there for as long as the retention of their kind says";
        Problem::not_found(job_not_found(id), remedy)
    })
}

pub async fn show(cx: &Cx, id: &str) -> Result<Page, Problem> {
    let job = find(cx, id).await?;
    let word = job.state.to_string();
    let main = html! {
        div #job data-live {
            div.top {
                h1 { "Job " (job.id) " " span.kind { (job.kind) } " " (state(&word)) }
                @if cx.may_change() { (acts(cx, &job)) }
            }
            p.lead { (sentence(&job)) }
        }
        div.two {
            div #timeline data-live { section.panel { h2 { "Timeline" } (timeline(cx, &job)) } }
            div {
                div #about data-live { section.panel { h2 { "About it" } (facts(&job)) } }
                // It never changes, and stays folded as somebody has folded it.
                section.panel { h2 { "Payload" } (payload::tree(job.payload.as_str())) }
            }
        }
        @if cx.may_change() { (again(cx, &job)) }
    };
    Ok(Page::new(format!("Job {}", job.id), "/jobs", main))
}

fn acts(cx: &Cx, job: &Record) -> Markup {
    let to = |verb: &str| format!("/jobs/{}/{verb}", job.id);
    let ended = !matches!(job.state, JobState::Pending | JobState::Processing);
    html! {
        div.acts {
            @if ended { (cx.button(&to("retry"), "Retry", "primary")) }
            @if !ended { (cx.sure(&to("cancel"), "Cancel", "Yes, cancel it")) }
            @if job.state != JobState::Processing { (cx.sure(&to("delete"), "Delete", "Yes, delete it")) }
        }
    }
}

/// How it stands, in a line.
fn sentence(job: &Record) -> String {
    let attempt = format!("attempt {} of {}", job.attempt, job.max_attempts);
    let waited = job
        .started_at
        .map(|at| show::span(show::between(job.scheduled_at.max(job.created_at), at)));
    let ran = job.started_at.zip(job.finished_at);
    let ran = ran.map(|(from, to)| show::span(show::between(from, to)));
    match (job.state, waited, ran) {
        (JobState::Completed, Some(waited), Some(ran)) => {
            format!("Done in {attempt}, waited {waited}, ran {ran}")
        }
        (JobState::Processing, ..) => format!("Running, {attempt}"),
        (JobState::Pending, ..) if job.attempt > 0 => {
            format!("Waits for its next try after {attempt}")
        }
        (JobState::Pending, ..) => format!("Waits, up to {} attempts", job.max_attempts),
        (JobState::Failed, ..) => format!("Given up after {attempt}"),
        _ => format!("Ended after {attempt}"),
    }
}

/// Something that happened to a job, or will.
struct Event<'a> {
    at: Timestamp,
    class: &'static str,
    what: String,
    /// Who did it.
    by: Option<&'a str>,
    more: Option<More<'a>>,
}

/// What went wrong.
enum More<'a> {
    Message(&'a str),
    /// The next attempt failed with the same words.
    Same,
}

/// The errors' messages, each of several in a row that say the same only once, at the last.
fn told_once(errors: &[JobError]) -> impl Iterator<Item = (&JobError, More<'_>)> {
    let next = errors.iter().skip(1).map(Some).chain([None]);
    errors.iter().zip(next).map(|(error, next)| {
        let same = next.is_some_and(|next| next.message == error.message);
        let more = if same {
            More::Same
        } else {
            More::Message(&error.message)
        };
        (error, more)
    })
}

fn timeline(cx: &Cx, job: &Record) -> Markup {
    let event = |at, class, what: &str| Event {
        at,
        class,
        what: what.to_owned(),
        by: None,
        more: None,
    };
    let mut events = vec![event(job.created_at, "", "added")];
    let waits = job.state == JobState::Pending;
    match job.errors.is_empty() {
        true if waits || job.scheduled_at > job.created_at => {
            events.push(event(job.scheduled_at, "", "due"));
        }
        false if waits => events.push(event(job.scheduled_at, "", "next try")),
        _ => {}
    }
    let running = job.state == JobState::Processing;
    let class = if running { "busy" } else { "" };
    // Whoever retries a job gives it all its attempts again.
    let what = match job.attempt {
        0 => "last started".to_owned(),
        n => format!("attempt {n} started"),
    };
    events.extend(job.started_at.map(|at| Event {
        by: job.locked_by.as_deref(),
        ..event(at, class, &what)
    }));
    events.extend(told_once(&job.errors).map(|(error, more)| Event {
        at: error.at,
        class: "bad",
        what: format!("attempt {}: {}", error.attempt, kind(error)),
        by: None,
        more: Some(more),
    }));
    // What happened in the same moment is told in this order.
    events.sort_by_key(|event| event.at);
    let class = match job.state {
        JobState::Completed => "good",
        JobState::Failed => "bad",
        _ => "",
    };
    let word = job.state.to_string();
    events.extend(job.finished_at.map(|at| event(at, class, &word)));
    let now = cx.now();
    html! {
        ol.timeline { @for event in events {
            li class=(event.class) {
                span.what { (event.what) } " " (ago(now, event.at)) ", " (clock(now, event.at))
                @if let Some(worker) = event.by { " by " code { (worker) } }
                @match event.more {
                    Some(More::Message(text)) => div.message { (message(text)) },
                    Some(More::Same) => div.message { span.hint { "the same error as in the next" } },
                    None => {}
                }
            }
        } }
    }
}

/// The time by the clock, with the day where it isn't today: what logs are compared with.
fn clock(now: Timestamp, at: Timestamp) -> String {
    let day = |at: Timestamp| at.strftime("%Y-%m-%d").to_string();
    let time = at.strftime("%H:%M:%S UTC").to_string();
    match day(now) == day(at) {
        true => time,
        false => format!("{} {time}", day(at)),
    }
}

fn kind(error: &JobError) -> String {
    serde_json::to_value(error.kind)
        .ok()
        .and_then(|kind| kind.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Every line of a message, folded when there are many.
fn message(text: &str) -> Markup {
    let short = text.chars().count() <= 400 && text.lines().count() <= 8;
    html! {
        @if short { pre { (text) } }
        @else {
            details.long {
                summary { (text.chars().take(120).collect::<String>()) " … " span.fold { "all of it" } }
                pre { (text) }
            }
        }
    }
}

fn facts(job: &Record) -> Markup {
    html! {
        dl.facts {
            dt { "Kind" } dd { a href={ "/jobs?kind=" (job.kind) } { (job.kind) } }
            dt { "Queue" } dd { a href={ "/jobs?queue=" (job.queue) } { (job.queue) } }
            dt { "Priority" } dd { (job.priority) }
            @if let Some(key) = &job.unique_key { dt { "Unique key" } dd { code { (show::text(key)) } } }
            @if let Some(key) = &job.idempotency_key { dt { "Idempotency key" } dd { code { (key) } } }
            @if !job.tags.is_empty() {
                dt { "Tags" }
                dd { @for tag in &job.tags { a.tag href={ "/jobs?tag=" (tag) } { (tag) } " " } }
            }
            @if let Some(trace) = &job.trace_context { dt { "Trace" } dd { code { (show::text(trace)) } } }
        }
    }
}

/// The same kind again, with a payload that may be mended. The key is the kind's own rule.
fn again(cx: &Cx, job: &Record) -> Markup {
    let text = job.payload.as_str();
    let pretty = serde_json::from_str::<Box<serde_json::value::RawValue>>(text)
        .ok()
        .and_then(|raw| indented(raw.get()));
    let text = pretty.unwrap_or_else(|| text.to_owned());
    let rows = text.lines().count().clamp(4, 24);
    html! {
        section.panel {
            details {
                summary { h2 { "Run it again with another payload" } }
                (cx.form(&format!("/jobs/{}/again", job.id), &html! {
                    label.block { span { "Payload (JSON)" }
                        textarea name="payload" rows=(rows) spellcheck="false" { (text) }
                    }
                    p.hint { "A new job of the same kind, queue, priority and tags. This one stays as it is." }
                    button.primary { "Add the job" }
                }))
            }
        }
    }
}

/// Line breaks and blanks between the values of a text that is JSON; the values stay as written.
fn indented(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut rest = text.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = rest.next() {
        if quoted {
            out.push(c);
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                quoted = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while rest.next_if(|c| c.is_whitespace()).is_some() {}
                if rest.next_if(|c| matches!(c, '}' | ']')).is_some() {
                    out.push(if c == '{' { '}' } else { ']' });
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.checked_sub(1)?;
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_whitespace() => {}
            c => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_another_day_tells_the_day() {
        let at: Timestamp = "2030-01-31T09:00:00.5Z".parse().unwrap();
        let on = |text: &str| clock(text.parse().unwrap(), at);
        assert_eq!(on("2030-01-31T11:30:00Z"), "09:00:00 UTC");
        assert_eq!(on("2030-02-01T00:00:00Z"), "2030-01-31 09:00:00 UTC");
    }

    #[test]
    fn an_error_that_comes_again_is_told_once() {
        let errors = serde_json::json!(["down", "down", "up", "down"]);
        let errors = errors.as_array().unwrap().iter().enumerate();
        let errors: Vec<JobError> = errors
            .map(|(n, message)| {
                serde_json::from_value(serde_json::json!({
                    "attempt": n + 1, "at": "2030-01-31T09:00:00Z", "kind": "error", "message": message,
                }))
                .unwrap()
            })
            .collect();
        let told = told_once(&errors).map(|(_, more)| match more {
            More::Message(text) => text,
            More::Same => "same",
        });
        assert_eq!(told.collect::<Vec<_>>(), ["same", "down", "up", "down"]);
    }

    #[test]
    fn a_payload_is_indented_without_touching_its_values() {
        let text = r#"{"a": [1e400,{}, []],"b\"{":"x\\","c":" [ "}"#;
        let shown = indented(text).unwrap();
        assert_eq!(
            shown,
            "{\n  \"a\": [\n    1e400,\n    {},\n    []\n  ],\n  \"b\\\"{\": \"x\\\\\",\n  \"c\": \" [ \"\n}"
        );
    }
}
