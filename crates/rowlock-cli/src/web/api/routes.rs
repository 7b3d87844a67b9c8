//! Routes: which jobs go on to Redis or Sidekiq, and how that is going. The sinks aren't asked:
//! `rowlock drain status` does that.

use std::sync::Arc;

use serde_json::Value;

use super::{items, value};
use crate::command::drain::Shown;
use crate::web::Web;
use crate::web::problem::Problem;
use crate::web::route::Given;

pub async fn list(web: Arc<Web>, _: Given) -> Result<Value, Problem> {
    let declared = web.setup.routes()?;
    let rows = web.rowlock.routes().routes().await?;
    let shown = rows.iter().map(|row| {
        let route = declared.iter().find(|route| route.name == row.route);
        let mut shown = value(&Shown::of(row, route, None))?;
        let most = rowlock::engine::RouteRow::MOST;
        shown["capped"] = (row.unsent >= most || row.sent >= most).into();
        Ok(shown)
    });
    Ok(items(shown.collect::<Result<_, Problem>>()?))
}
