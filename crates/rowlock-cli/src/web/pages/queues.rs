//! Queues: how much waits where, and whether it may be taken.

use std::collections::BTreeMap;

use axum::http::Method;
use maud::{Markup, html};
use rowlock::engine::browse::Capped;
use serde_json::{Value, json};

use super::form::{Form, encode};
use super::live::due;
use super::note::Note;
use super::words::{cell, counted, empty, exact, failures, items, span, state, text};
use super::{Cx, Done, Page};
use crate::web::problem::Problem;

/// What is in each, and how long the job that is due longest has been waiting.
type Queues<'a> = BTreeMap<&'a str, (Capped, Option<f64>)>;

pub async fn show(cx: &Cx) -> Result<Page, Problem> {
    let switches = cx.get("/switches").await?;
    let stopped = stopped(items(&switches));
    // What everybody sees: counting again for each page would cost what waits.
    let seen = cx.web.live.seen(&cx.web).await;
    let mut queues: Queues<'_> = seen
        .queues
        .iter()
        .map(|(name, queue)| {
            let late = seen.late(name, &queue.counts);
            (name.as_str(), (queue.clone(), late))
        })
        .collect();
    for name in stopped.keys() {
        queues.entry(name).or_default();
    }
    let main = html! {
        h1 { "Queues" }
        div #queues data-live {
            @if queues.is_empty() {
                (empty("A queue is there as soon as a job is in it:", &cx.command("enqueue echo --queue mail")))
            } @else { (table(cx, &queues, &stopped)) }
        }
    };
    Ok(Page::new("Queues", "/queues", main))
}

/// Queues that nothing is taken from, and why.
fn stopped(switches: &[Value]) -> BTreeMap<&str, &str> {
    let of_queues = switches.iter().filter(|on| text(on, "target") == "queue");
    let stopping = of_queues.filter(|on| text(on, "mode") != "reject");
    stopping
        .map(|on| (text(on, "name"), text(on, "reason")))
        .collect()
}

fn table(cx: &Cx, queues: &Queues<'_>, stopped: &BTreeMap<&str, &str>) -> Markup {
    html! {
        section.panel { div.wide { table {
            thead { tr {
                th scope="col" { "Queue" }
                @for head in ["Due", "Scheduled", "Held", "of these retrying", "Running", "Completed", "Failed", "Oldest due"] {
                    th.n scope="col" { (head) }
                }
                @if cx.may_change() { th.acts scope="col" { span.hidden { "Pause or resume" } } }
            } }
            tbody { @for (name, (queue, late)) in queues {
                @let counts = &queue.counts;
                @let why = stopped.get(name);
                tr data-row {
                    th scope="row" {
                        a.id href={ "/jobs?queue=" (encode(name)) } { (name) }
                        @if let Some(why) = why {
                            " " (state("paused"))
                            @if !why.is_empty() { div.reason { (why) } }
                        }
                    }
                    @for n in [due(counts), counts.scheduled, counts.held, counts.retrying, counts.processing] {
                        (cell(&counted(n, queue.capped)))
                    }
                    (cell(&exact(counts.completed)))
                    (failures(counts.failed))
                    td.n { (late.map_or("–".to_owned(), span)) }
                    @if cx.may_change() { td.acts { (acts(cx, name, why.is_some())) } }
                }
            } }
        } } }
    }
}

fn acts(cx: &Cx, name: &str, paused: bool) -> Markup {
    let to = |verb: &str| format!("/queues/{}/{verb}", encode(name));
    if paused {
        return cx.button(&to("resume"), "Resume", "primary");
    }
    html! {
        details.sure {
            summary.button { "Pause" }
            (cx.form(&to("pause"), &html! {
                label { span.hidden { "Why" } input name="reason" placeholder="why, for whoever looks next" autocomplete="off"; }
                button { "Pause " (name) }
            }))
        }
    }
}

pub async fn act(cx: &Cx, name: &str, verb: &str, form: &Form) -> Result<Done, Problem> {
    let body = match form.word("reason").filter(|_| verb == "pause") {
        Some(reason) => json!({ "reason": reason }),
        None => json!({}),
    };
    let path = format!("/queues/{}/{verb}", encode(name));
    let done = cx.change(Method::POST, &path, &body).await;
    let words = match (done, verb) {
        // `resume` ends a pause; whatever else stops a queue is a switch of its own.
        (Err(why), "resume") if why.status == 404 => {
            let words = format!("{}: clear its switch here", why.sentence);
            return Ok(Done::Go("/switches".into(), Note::warning(words)));
        }
        (Err(why), _) => return Err(why),
        (Ok(_), "pause") => {
            format!("Queue {name} is paused: what runs goes on, nothing more is taken")
        }
        (Ok(_), _) => format!("Queue {name} goes on"),
    };
    Ok(Done::Go("/queues".into(), Note::done(words)))
}
