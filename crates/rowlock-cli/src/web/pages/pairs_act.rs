//! What is done with pairs and crons.

use axum::http::Method;
use serde_json::{Value, json};

use super::form::{Form, encode};
use super::note::Note;
use super::words::{exact, list, number, text};
use super::{Cx, Done};
use crate::web::problem::Problem;

/// How many keys a note names.
const NAMED: usize = 10;

pub async fn pair(cx: &Cx, name: &str, verb: &str, form: &Form) -> Result<Done, Problem> {
    let page = format!("/pairs/{}", encode(name));
    let switch = format!("/switches/pair/{}", encode(name));
    let words = match verb {
        "run" | "dry" => {
            let body = json!({ "dry_run": verb == "dry" });
            let ticked = cx
                .change(Method::POST, &format!("{page}/run"), &body)
                .await?;
            told(&ticked, verb == "dry")
        }
        "pause" => {
            let body =
                json!({ "mode": "pause", "reason": form.word("reason").unwrap_or_default() });
            cx.change(Method::PUT, &switch, &body).await?;
            format!("Pair {name} is paused: rows that need work may wait unseen")
        }
        "resume" => {
            cx.change(Method::DELETE, &switch, &Value::Null).await?;
            format!("Pair {name} goes on with its next tick")
        }
        _ => {
            let body = match form.get("key") {
                Some(key) => json!({ "keys": [key] }),
                None => json!({ "all": true }),
            };
            let lifted = cx
                .change(Method::POST, &format!("{page}/lift"), &body)
                .await?;
            format!(
                "{} lifted: the next tick may have them",
                exact(number(&lifted, "lifted"))
            )
        }
    };
    Ok(Done::Go(page, Note::done(words)))
}

fn told(ticked: &Value, dry: bool) -> String {
    let n = |field| exact(number(ticked, field));
    let mut words = match dry {
        true => format!(
            "Dry run, nothing was changed: {} found, {} would be added",
            n("found"),
            n("enqueued")
        ),
        false => format!("{} found, {} added", n("found"), n("enqueued")),
    };
    words += &format!(
        ", {} have a job, {} held back, {} rejected",
        n("live"),
        n("held_back"),
        n("rejected")
    );
    let keys: Vec<&str> = list(ticked, "keys")
        .iter()
        .filter_map(Value::as_str)
        .take(NAMED)
        .collect();
    if !keys.is_empty() {
        words += &format!(". Keys: {}", keys.join(", "));
    }
    words
}

pub async fn cron(cx: &Cx, name: &str, verb: &str) -> Result<Done, Problem> {
    let path = format!("/crons/{}/{verb}", encode(name));
    let done = cx.change(Method::POST, &path, &json!({})).await?;
    let words = match (verb, done["id"].as_i64()) {
        ("run", Some(id)) => {
            let words = format!("Cron {name}: job {id} is {}", text(&done, "status"));
            return Ok(Done::Go(format!("/jobs/{id}"), Note::done(words)));
        }
        ("run", None) => {
            let words = format!("Cron {name}: a switch rejects its kind, no job was added");
            return Ok(Done::Go("/switches".into(), Note::warning(words)));
        }
        ("pause", _) => format!("Cron {name} is paused"),
        _ => format!("Cron {name} goes on, next at {}", text(&done, "next_at")),
    };
    Ok(Done::Go("/pairs".into(), Note::done(words)))
}
