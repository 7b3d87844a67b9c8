//! What is done with one job.

use axum::body::Bytes;
use axum::http::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::form::{Form, encode};
use super::note::Note;
use super::words::text;
use super::{Cx, Done, job};
use crate::web::problem::Problem;

pub async fn act(cx: &Cx, id: &str, verb: &str) -> Result<Done, Problem> {
    let path = format!("/jobs/{}", encode(id));
    if verb == "delete" {
        cx.change(Method::DELETE, &path, &Value::Null).await?;
        return Ok(Done::Go(
            "/jobs".into(),
            Note::done(format!("Job {id} is deleted")),
        ));
    }
    let done = cx
        .change(Method::POST, &format!("{path}/{verb}"), &json!({}))
        .await?;
    let words = match text(&done, "status") {
        "retried" => format!("Job {id} waits again, with all its attempts"),
        "asked" => format!("The worker of job {id} is asked to stop"),
        other => format!("Job {id} is {other}"),
    };
    Ok(Done::Go(path, Note::done(words)))
}

/// A new job like this one, with the payload that was written.
pub async fn again(cx: &Cx, id: &str, form: &Form) -> Result<Done, Problem> {
    let old = job::find(cx, id).await?;
    let rest = json!({
        "kind": old.kind, "queue": old.queue, "priority": old.priority,
        "max_attempts": old.max_attempts, "tags": old.tags,
    });
    add(cx, &rest, form.get("payload")).await
}

/// Adds a job whose payload is kept as it was written.
pub async fn add(cx: &Cx, rest: &Value, payload: Option<&str>) -> Result<Done, Problem> {
    let payload = payload.unwrap_or("{}");
    let raw: &RawValue = serde_json::from_str(payload)
        .map_err(|why| Problem::invalid(format!("the payload is not JSON: {why}")))?;
    let rest = rest.to_string();
    let body = format!("{},\"payload\":{}}}", rest.trim_end_matches('}'), raw.get());
    let added = cx.send(Method::POST, "/jobs", Bytes::from(body)).await?;
    let kind = text(&serde_json::from_str(&rest).unwrap_or_default(), "kind").to_owned();
    let Some(id) = added["id"].as_i64() else {
        let words = format!("A switch rejects {kind}: no job was added");
        return Ok(Done::Go("/switches".into(), Note::warning(words)));
    };
    let note = match (text(&added, "status"), added["warning"].as_str()) {
        ("duplicate", _) => Note::warning(format!(
            "Job {id} has the same key and still lives: none was added"
        )),
        ("held", _) => Note::warning(format!("Job {id} is added, and held by a switch")),
        (_, Some(warning)) => Note::warning(format!("Job {id} is added, but {warning}")),
        _ => Note::done(format!("Job {id} is added")),
    };
    Ok(Done::Go(format!("/jobs/{id}"), note))
}
