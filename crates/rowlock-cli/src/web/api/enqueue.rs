//! Adding jobs: the same object as a line of `rowlock enqueue --from`.

use std::sync::Arc;

use rowlock::{Enqueued, Error, NewJob};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{NAME, value};
use crate::command::bulk::line;
use crate::command::enqueue::Known;
use crate::web::Web;
use crate::web::problem::Problem;
use crate::web::route::Given;
use crate::web::shape::{Field, Is, may, must};

pub const JOB: &[Field] = &[
    must("kind", NAME, "What has to be done"),
    may("payload", Is::Json, "The data for it; {} unless given"),
    may(
        "queue",
        NAME,
        "Where it waits; as its kind says unless given",
    ),
    may("priority", Is::Int(-32_768, 32_767), "Higher goes first"),
    may("scheduled_at", Is::Time, "Not before"),
    may(
        "max_attempts",
        Is::Int(1, 1_000_000),
        "How many attempts it may use",
    ),
    may(
        "unique_key",
        Is::Text(65_536),
        "At most one live job of this kind with this key",
    ),
    may(
        "unique_until",
        Is::OneOf(&["start", "finished"]),
        "How long the key stays taken",
    ),
    may("tags", Is::List(&NAME, 100), "Labels for finding it"),
];

pub const BATCH: &[Field] = &[must("jobs", Is::List(&Is::Object(JOB), MOST), "The jobs")];

/// How many jobs are staged in one transaction.
const MOST: usize = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch<'a> {
    #[serde(borrow)]
    jobs: Vec<&'a RawValue>,
}

pub async fn one(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let job = read(&web, &given, &given.raw)?;
    let known = Known::of(&web.rowlock, web.declared.clone()).await?;
    let warning = (!known.has(job.kind())).then(|| known.complaint(job.kind()));
    let Enqueued { id, status, .. } = web.rowlock.enqueue(&job).await?;
    Ok(json!({ "id": id, "status": status, "warning": warning }))
}

pub async fn many(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let batch: Batch<'_> = serde_json::from_slice(&given.raw)
        .map_err(|why| Problem::invalid(format!("the body is not {{\"jobs\": [...]}}: {why}")))?;
    if batch.jobs.len() > MOST {
        return Err(Problem::invalid(format!(
            "jobs must be a list of at most {MOST}"
        )));
    }
    let jobs = batch.jobs.iter().enumerate().map(|(index, job)| {
        let read = read(&web, &given, job.get().as_bytes());
        read.map_err(|why| {
            Error::InvalidAt {
                index,
                why: why.sentence,
            }
            .into()
        })
    });
    let jobs: Result<Vec<NewJob>, Problem> = jobs.collect();
    let answers = web.rowlock.enqueue_many(jobs?).await?;
    let answers: Result<Vec<Value>, Problem> = answers.iter().map(value).collect();
    Ok(json!({ "items": answers? }))
}

/// A job as it was written, in the trace that the request came in.
fn read(web: &Web, given: &Given, text: &[u8]) -> Result<NewJob, Problem> {
    let job = line::parse(text, &web.declared, &web.setup.config).map_err(Problem::invalid)?;
    Ok(match &given.traceparent {
        // One that is malformed is nobody's trace.
        Some(context) => job.clone().trace_context(context).unwrap_or(job),
        None => job,
    })
}
