//! Switches: what somebody has stopped, why and until when; and stopping something.

use axum::http::Method;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::form::{Form, encode};
use super::note::Note;
use super::words::{cell, empty, exact, items, number, state, text, time};
use super::{Cx, Done, Page};
use crate::web::problem::Problem;

pub async fn show(cx: &Cx) -> Result<Page, Problem> {
    let found = cx.get("/switches").await?;
    let on = items(&found);
    let main = html! {
        h1 { "Switches" }
        div #switches data-live {
            @if on.is_empty() {
                (empty("Nothing is stopped. A switch stops a kind, a queue or a pair at once, everywhere:",
                    &cx.command("switch set kind:send_email hold --reason 'wrong template' --for 2h")))
            } @else { (table(cx, on)) }
        }
        @if cx.may_change() { (fields(cx)) }
    };
    Ok(Page::new("Switches", "/switches", main))
}

fn table(cx: &Cx, on: &[Value]) -> Markup {
    let now = cx.now();
    html! {
        section.panel { h2 { "Stopped now" } div.wide tabindex="0" role="region" aria-label="Switches" { table {
            thead { tr {
                @for head in ["What", "Does", "Why", "By", "Until"] { th scope="col" { (head) } }
                th.n scope="col" title="Enqueues that were refused" { "Rejected" }
                @if cx.may_change() { th.acts scope="col" { span.hidden { "Clear" } } }
            } }
            tbody { @for switch in on {
                @let (target, name) = (text(switch, "target"), text(switch, "name"));
                tr {
                    th scope="row" { span.hint { (target) " " } (name) }
                    td { (state(text(switch, "mode"))) }
                    td.words { (text(switch, "reason")) }
                    td { (text(switch, "by")) }
                    td { @if switch["until"].is_null() { "cleared by hand" } @else { (time(now, switch, "until")) } }
                    @let rejects = text(switch, "mode") == "reject";
                    @if rejects { (cell(&exact(number(switch, "rejected")))) } @else { td.n.none { "–" } }
                    @if cx.may_change() { td.acts {
                        (cx.button(&format!("/switches/{}/{}/clear", encode(target), encode(name)), "Clear", ""))
                    } }
                }
            } }
        } } }
    }
}

fn fields(cx: &Cx) -> Markup {
    html! {
        section.panel.form {
            h2 { "Stop something" }
            (cx.form("/switches/set", &html! {
                div.row {
                    label { span { "What" }
                        select name="target" { @for word in ["kind", "queue", "pair"] { option value=(word) { (word) } } }
                    }
                    label { span { "Name" } input name="name" required autocomplete="off" placeholder="send_email"; }
                    label { span { "For" }
                        select name="for" {
                            option value="30m" { "30 minutes" }
                            option value="2h" selected { "2 hours" }
                            option value="1d" { "1 day" }
                            option value="" { "until it is cleared" }
                        }
                    }
                }
                fieldset {
                    legend { "How" }
                    label.check { input type="radio" name="mode" value="hold" checked; " hold " span.hint { "new jobs are stored, and wait with those that wait already" } }
                    label.check { input type="radio" name="mode" value="pause"; " pause " span.hint { "nothing that waits is taken, and a pair doesn't tick; what runs goes on" } }
                    label.check { input type="radio" name="mode" value="reject"; " reject " span.hint { "new jobs are refused; those that wait already are run" } }
                    label.check.lose { input type="checkbox" name="lose_jobs" value="true"; " yes, lose jobs that nobody will enqueue again" }
                }
                label.block { span { "Why" } input name="reason" required autocomplete="off" placeholder="for whoever looks at it next"; }
                button.primary { "Set the switch" }
            }))
        }
    }
}

pub async fn set(cx: &Cx, form: &Form) -> Result<Done, Problem> {
    let word = |field: &str| form.word(field).unwrap_or_default();
    let (target, name) = (word("target"), word("name"));
    let mut body = json!({ "mode": word("mode"), "reason": word("reason") });
    if let Some(time) = form.word("for") {
        body["for"] = time.into();
    }
    if form.get("lose_jobs").is_some() {
        body["lose_jobs"] = true.into();
    }
    body["by"] = format!("dashboard ({})", cx.caller.role.as_str()).into();
    let path = format!("/switches/{}/{}", encode(target), encode(name));
    let set = cx.change(Method::PUT, &path, &body).await?;
    let warnings: Vec<&str> = set["warnings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let words = format!("Switch {} of {target} {name} is on", word("mode"));
    let note = match warnings.is_empty() {
        true => Note::done(words),
        false => Note::warning(format!("{words}. {}", warnings.join(". "))),
    };
    Ok(Done::Go("/switches".into(), note))
}

pub async fn clear(cx: &Cx, target: &str, name: &str) -> Result<Done, Problem> {
    let path = format!("/switches/{}/{}", encode(target), encode(name));
    cx.change(Method::DELETE, &path, &Value::Null).await?;
    let words = format!("{target} {name} goes on");
    Ok(Done::Go("/switches".into(), Note::done(words)))
}
