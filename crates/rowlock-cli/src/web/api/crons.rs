//! What recurs.

use std::sync::Arc;

use rowlock::{Error, Name, reconcile};
use serde_json::{Value, json};

use super::items;
use crate::command::cron::object;
use crate::web::Web;
use crate::web::problem::Problem;
use crate::web::route::Given;

pub async fn list(web: Arc<Web>, _: Given) -> Result<Value, Problem> {
    let (_, rows) = web.rowlock.schedule().crons().await?;
    Ok(items(rows.iter().map(object).collect()))
}

/// One that isn't there is told with where to look.
fn known<T>(name: &Name, done: Result<T, Error>) -> Result<T, Problem> {
    done.map_err(|why| match why {
        Error::NotFound(_) => Problem::not_found(
            format!("cron {name} not found"),
            "GET /api/v1/crons lists those that there are",
        ),
        why => why.into(),
    })
}

pub async fn run(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let name = given.path.the_name("cron")?;
    let (schedule, lead) = (web.rowlock.schedule(), web.rowlock.lead());
    let job = reconcile::run_cron_now(&*schedule, &*lead, &name).await;
    let job = known(&name, job)?;
    Ok(json!({ "cron": name, "id": job.id, "status": job.status }))
}

pub async fn pause(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let name = given.path.the_name("cron")?;
    known(&name, web.rowlock.schedule().pause_cron(&name, None).await)?;
    Ok(json!({ "cron": name, "paused": true, "next_at": null }))
}

pub async fn resume(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let name = given.path.the_name("cron")?;
    let next = reconcile::resume_cron(&*web.rowlock.schedule(), &name).await;
    let next = known(&name, next)?;
    Ok(json!({ "cron": name, "paused": false, "next_at": next }))
}
