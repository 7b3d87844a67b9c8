//! The verbs of the command line as resources. Each file answers for one of them.

mod bulk;
mod crons;
mod enqueue;
mod jobs;
mod pairs;
mod queues;
mod routes;
mod switches;
mod watch;

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::problem::Problem;
use super::route::{Given, Route, call};
use super::shape::{Field, Is, may, must};
use super::{Web, document};

const NAME: Is = Is::Name;
/// As much as a person writes into one line.
const WORDS: Is = Is::Text(1_000);

const JOB: &[Field] = &[must("id", Is::Id, "The job's number")];
const QUEUE: &[Field] = &[must("queue", NAME, "The queue")];
const PAIR: &[Field] = &[must("pair", NAME, "The pair")];
const CRON: &[Field] = &[must("cron", NAME, "The cron")];
const CLASS: &[Field] = &[must("class", NAME, "The workload class")];
const SWITCH: &[Field] = &[
    must(
        "target",
        Is::OneOf(&["kind", "queue", "pair"]),
        "What the switch is about",
    ),
    must("name", NAME, "Which one"),
];
const WHY: &[Field] = &[may("reason", WORDS, "Why, for whoever looks at it next")];

/// Everything that can be asked.
pub const ROUTES: &[Route] = &[
    Route::get(
        "/openapi.json",
        "This document",
        "Document",
        call!(document::show),
    ),
    Route::get(
        "/jobs",
        "Jobs by filter, page by page",
        "JobPage",
        call!(jobs::list),
    )
    .query(jobs::LIST),
    Route::post("/jobs", "Add a job", "Enqueued", call!(enqueue::one))
        .written(enqueue::JOB)
        .creates(),
    Route::post(
        "/jobs/batch",
        "Add many jobs in one transaction: all or none",
        "EnqueuedMany",
        call!(enqueue::many),
    )
    .written(enqueue::BATCH)
    .creates(),
    Route::post(
        "/jobs/bulk",
        "Retry, cancel or delete what a filter finds; without confirm only count it",
        "Bulk",
        call!(bulk::run),
    )
    .body(bulk::BODY),
    Route::get(
        "/jobs/running",
        "Jobs in somebody's hands, the one that began first on top",
        "JobList",
        call!(jobs::running),
    )
    .query(jobs::FEW),
    Route::get(
        "/jobs/{id}",
        "One job with its attempts and errors",
        "Job",
        call!(jobs::show),
    )
    .at(JOB),
    Route::delete(
        "/jobs/{id}",
        "Remove a job that isn't running",
        "Changed",
        call!(jobs::delete),
    )
    .at(JOB),
    Route::post(
        "/jobs/{id}/retry",
        "Give an ended job all its attempts again",
        "Changed",
        call!(jobs::retry),
    )
    .at(JOB),
    Route::post(
        "/jobs/{id}/cancel",
        "Call off a waiting job, or ask the worker of a running one to stop",
        "Changed",
        call!(jobs::cancel),
    )
    .at(JOB),
    Route::get(
        "/stats",
        "How many jobs stand where; live ones are counted up to 10,000 a queue",
        "Stats",
        call!(queues::stats),
    )
    .kept(),
    Route::get(
        "/queues",
        "Every queue that has jobs or a switch",
        "QueueList",
        call!(queues::list),
    )
    .kept(),
    Route::post(
        "/queues/{queue}/pause",
        "Stop taking jobs from a queue; what runs goes on",
        "Paused",
        call!(queues::pause),
    )
    .at(QUEUE)
    .body(WHY),
    Route::post(
        "/queues/{queue}/resume",
        "Take jobs from a paused queue again",
        "Paused",
        call!(queues::resume),
    )
    .at(QUEUE),
    Route::get(
        "/kinds",
        "Every kind that has a row",
        "KindList",
        call!(queues::kinds),
    ),
    Route::get(
        "/workers",
        "Workers that have joined and not left",
        "WorkerList",
        call!(queues::workers),
    )
    .kept(),
    Route::get(
        "/switches",
        "The switches that are on",
        "SwitchList",
        call!(switches::list),
    ),
    Route::put(
        "/switches/{target}/{name}",
        "Stop a kind, a queue or a pair",
        "SwitchSet",
        call!(switches::set),
    )
    .at(SWITCH)
    .body(switches::SET),
    Route::delete(
        "/switches/{target}/{name}",
        "Let it go on",
        "SwitchCleared",
        call!(switches::clear),
    )
    .at(SWITCH),
    Route::get(
        "/pairs",
        "Every pair with how it is doing",
        "PairList",
        call!(pairs::list),
    )
    .kept(),
    Route::get("/pairs/{pair}", "One pair", "Pair", call!(pairs::show)).at(PAIR),
    Route::get(
        "/pairs/{pair}/keys",
        "The keys that ticks leave alone, or left alone once",
        "KeyPage",
        call!(pairs::keys),
    )
    .at(PAIR)
    .query(pairs::KEYS),
    Route::post(
        "/pairs/{pair}/run",
        "A tick by hand; with dry_run only what it would do",
        "Ticked",
        call!(pairs::run),
    )
    .at(PAIR)
    .body(pairs::RUN),
    Route::post(
        "/pairs/{pair}/lift",
        "Let ticks have keys again",
        "Lifted",
        call!(pairs::lift),
    )
    .at(PAIR)
    .body(pairs::LIFT),
    Route::get("/crons", "What recurs", "CronList", call!(crons::list)),
    Route::post(
        "/crons/{cron}/run",
        "Fire a cron now, beside its own times",
        "CronRan",
        call!(crons::run),
    )
    .at(CRON),
    Route::post(
        "/crons/{cron}/pause",
        "Stop a cron",
        "CronPaused",
        call!(crons::pause),
    )
    .at(CRON),
    Route::post(
        "/crons/{cron}/resume",
        "Let a cron go on with its next time",
        "CronPaused",
        call!(crons::resume),
    )
    .at(CRON),
    Route::get(
        "/routes",
        "The routes by which jobs go on to Redis or Sidekiq",
        "RouteList",
        call!(routes::list),
    )
    .kept(),
    Route::get(
        "/budgets",
        "How many transactions of a workload class may run at once (PostgreSQL)",
        "BudgetList",
        call!(watch::budgets),
    ),
    Route::put(
        "/budgets/{class}",
        "Set a budget",
        "Budget",
        call!(watch::set),
    )
    .at(CLASS)
    .body(watch::SET),
    Route::delete(
        "/budgets/{class}",
        "Remove a budget",
        "BudgetRemoved",
        call!(watch::remove),
    )
    .at(CLASS),
    Route::get(
        "/pins",
        "What keeps the server from removing old rows (PostgreSQL)",
        "PinList",
        call!(watch::pins),
    ),
    Route::get(
        "/doctor",
        "What is wrong or about to go wrong; looked at no more often than every 30 s",
        "Checkup",
        call!(doctor),
    ),
];

async fn doctor(web: Arc<Web>, _: Given) -> Result<Value, Problem> {
    web.checkup.findings(&web).await
}

/// A whole list.
fn items(all: Vec<Value>) -> Value {
    json!({ "items": all })
}

fn value(of: &impl Serialize) -> Result<Value, Problem> {
    serde_json::to_value(of).map_err(|why| anyhow::Error::new(why).into())
}
