//! A job by hand.

use maud::html;
use rowlock::job::parse_duration;
use serde_json::json;

use super::form::Form;
use super::words::{items, text};
use super::{Cx, Done, Page, job_act};
use crate::web::problem::Problem;

pub async fn show(cx: &Cx) -> Result<Page, Problem> {
    crate::web::operator(cx.caller)?;
    let kinds = cx.get("/kinds").await?;
    let main = html! {
        h1 { "New job" }
        section.panel.form {
            (cx.form("/jobs/new", &html! {
                label.block { span { "Kind" }
                    input name="kind" list="kinds" required autofocus autocomplete="off" placeholder="echo";
                    datalist #kinds { @for kind in items(&kinds) { option value=(text(kind, "name")) {} } }
                }
                label.block { span { "Payload (JSON)" }
                    textarea name="payload" rows="6" spellcheck="false" placeholder="{}" {}
                }
                div.row {
                    label { span { "Queue" } input name="queue" placeholder="as its kind says" autocomplete="off"; }
                    label { span { "Starts in" } input.short name="in" placeholder="10m" autocomplete="off"; }
                    label { span { "Unique key" } input name="key" autocomplete="off"; }
                    label { span { "Tags" } input name="tags" placeholder="one two" autocomplete="off"; }
                }
                button.primary { "Add the job" }
            }))
            p.hint { "The same on the command line: " code { (cx.command("enqueue echo '{\"hello\":\"world\"}'")) } }
        }
    };
    Ok(Page::new("New job", "/jobs", main))
}

pub async fn add(cx: &Cx, form: &Form) -> Result<Done, Problem> {
    let mut job = json!({ "kind": form.word("kind").unwrap_or_default() });
    if let Some(queue) = form.word("queue") {
        job["queue"] = queue.into();
    }
    if let Some(key) = form.get("key") {
        job["unique_key"] = key.into();
    }
    if let Some(tags) = form.word("tags") {
        job["tags"] = tags.split_whitespace().collect();
    }
    if let Some(wait) = form.word("in") {
        let at = rowlock::clock::add(cx.now(), parse_duration(wait)?);
        job["scheduled_at"] = at.to_string().into();
    }
    job_act::add(cx, &job, form.get("payload")).await
}
