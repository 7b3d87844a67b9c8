//! Queues, kinds and workers, and how much waits where.

use std::collections::BTreeMap;
use std::sync::Arc;

use rowlock::Name;
use rowlock::engine::Counts;
use rowlock::engine::browse::Capped;
use rowlock::switch::{Mode, Setting, Switch, Target};
use serde_json::{Value, json};

use super::{items, value};
use crate::web::Web;
use crate::web::problem::Problem;
use crate::web::route::Given;

pub async fn stats(web: Arc<Web>, _: Given) -> Result<Value, Problem> {
    let queues = web.rowlock.browse().glance().await?;
    let capped = queues.values().any(|queue| queue.capped);
    let counts = Counts::sum(queues.values().map(|queue| &queue.counts));
    let mut all = value(&Capped { counts, capped })?;
    all["queues"] = value(&queues)?;
    Ok(all)
}

pub async fn list(web: Arc<Web>, _: Given) -> Result<Value, Problem> {
    let mut queues = web.rowlock.browse().glance().await?;
    let on: BTreeMap<Name, Switch> = web
        .rowlock
        .schedule()
        .switches()
        .await?
        .into_iter()
        .filter(|on| on.target == Target::Queue)
        .map(|on| (on.name.clone(), on))
        .collect();
    for name in on.keys() {
        queues.entry(name.clone()).or_default();
    }
    let shown = queues.iter().map(|(name, counts)| {
        let on = on.get(name).filter(|on| on.mode != Mode::Reject);
        let mut shown = value(counts)?;
        shown["queue"] = json!(name);
        shown["paused"] = on.is_some().into();
        shown["reason"] = json!(on.and_then(|on| on.reason.as_ref()));
        Ok(shown)
    });
    Ok(items(shown.collect::<Result<_, Problem>>()?))
}

pub async fn pause(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let queue = given.path.the_name("queue")?;
    let pause = Setting {
        reason: given.body.text("reason").map(str::to_owned),
        ..Setting::new(Mode::Pause)
    };
    let schedule = web.rowlock.schedule();
    schedule.switch(Target::Queue, &queue, Some(pause)).await?;
    Ok(json!({ "queue": queue, "paused": true }))
}

pub async fn resume(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let queue = given.path.the_name("queue")?;
    let schedule = web.rowlock.schedule();
    let on = schedule.switches().await?;
    // Another switch of the queue is cleared by its own verb.
    let paused =
        |on: &Switch| (on.target, &on.name, on.mode) == (Target::Queue, &queue, Mode::Pause);
    if !on.iter().any(paused) {
        let sentence = format!("queue {queue} is not paused");
        return Err(Problem::not_found(
            sentence,
            "GET /api/v1/queues shows which are",
        ));
    }
    schedule.switch(Target::Queue, &queue, None).await?;
    Ok(json!({ "queue": queue, "paused": false }))
}

pub async fn kinds(web: Arc<Web>, _: Given) -> Result<Value, Problem> {
    let kinds = web.rowlock.operate().kinds().await?;
    Ok(items(kinds.iter().map(value).collect::<Result<_, _>>()?))
}

pub async fn workers(web: Arc<Web>, _: Given) -> Result<Value, Problem> {
    let workers = web.rowlock.browse().hands().await?;
    let shown = workers.iter().map(|worker| {
        json!({
            "id": worker.id.as_str(), "lease_seconds": worker.lease.as_secs_f64(),
            "joined_at": worker.joined_at, "seen_at": worker.seen_at, "holds": worker.holds, "capped": worker.more,
        })
    });
    Ok(items(shown.collect()))
}
