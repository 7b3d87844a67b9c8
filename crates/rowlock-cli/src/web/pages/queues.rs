//! Queues: how much waits where, and whether it may be taken.

use axum::http::Method;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::form::{Form, encode};
use super::note::Note;
use super::words::{cell, count, empty, exact, items, number, seconds, state, text};
use super::{Cx, Done, Page};
use crate::web::problem::Problem;

pub async fn show(cx: &Cx) -> Result<Page, Problem> {
    let found = cx.get("/queues").await?;
    let queues = items(&found);
    let main = html! {
        h1 { "Queues" }
        div #queues data-live {
            @if queues.is_empty() {
                (empty("A queue is there as soon as a job is in it:", &cx.command("enqueue echo --queue mail")))
            } @else { (table(cx, queues)) }
        }
    };
    Ok(Page::new("Queues", "/queues", main))
}

fn table(cx: &Cx, queues: &[Value]) -> Markup {
    html! {
        section.panel { div.wide { table {
            thead { tr {
                th scope="col" { "Queue" }
                @for head in ["Waiting", "Scheduled", "Retrying", "Held", "Running", "Completed", "Failed", "Oldest due"] {
                    th.n scope="col" { (head) }
                }
                @if cx.may_change() { th scope="col" { span.hidden { "Pause or resume" } } }
            } }
            tbody { @for queue in queues {
                @let name = text(queue, "queue");
                @let paused = queue["paused"] == true;
                tr data-row {
                    th scope="row" {
                        a.id href={ "/jobs?queue=" (encode(name)) } { (name) }
                        @if paused {
                            " " (state("paused"))
                            @if let Some(reason) = queue["reason"].as_str() { div.reason { (reason) } }
                        }
                    }
                    @for field in ["pending", "scheduled", "retrying", "held", "processing"] {
                        (cell(&count(number(queue, field))))
                    }
                    @for field in ["completed", "failed"] { (cell(&exact(number(queue, field)))) }
                    td.n { (seconds(queue, "oldest_pending_seconds")) }
                    @if cx.may_change() { td.acts { (acts(cx, name, paused)) } }
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
