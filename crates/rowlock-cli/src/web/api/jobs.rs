//! Jobs: pages of them, one of them, and what is done to one.

use std::sync::Arc;

use rowlock::engine::Filter;
use rowlock::{JobId, Record};
use serde_json::{Value, json};

use super::{NAME, items, value};
use crate::command::job_change::{Action, change};
use crate::command::job_not_found;
use crate::web::Web;
use crate::web::cursor::Cursor;
use crate::web::problem::Problem;
use crate::web::route::Given;
use crate::web::shape::{Field, Is, STATES, Values, may};

/// How many jobs a page has, unless it is asked for fewer or more.
const PAGE: usize = 50;

pub const LIST: &[Field] = &[
    may("state", Is::OneOf(STATES), "In this state"),
    may("queue", NAME, "In this queue"),
    may("kind", NAME, "Of this kind"),
    may("key", Is::Text(1_000), "With this unique key"),
    may("tag", NAME, "With this label"),
    may("since", Is::Time, "Added at or after"),
    may("until", Is::Time, "Added before"),
    may(
        "order",
        Is::OneOf(&["oldest", "newest"]),
        "Which number comes first; oldest unless said",
    ),
    may("limit", Is::Int(1, 200), "At most so many; 50 unless said"),
    may(
        "cursor",
        Is::Cursor,
        "The next of the page before; its order stays",
    ),
];

pub const FEW: &[Field] = &[may(
    "limit",
    Is::Int(1, 200),
    "At most so many; 50 unless said",
)];

/// The filter that was given; every one is a walk by number.
pub fn filter(given: &Values) -> Filter {
    Filter {
        state: given.state("state"),
        queue: given.name("queue"),
        kind: given.name("kind"),
        key: given.text("key").map(str::to_owned),
        tag: given.name("tag"),
        since: given.time("since"),
        until: given.time("until"),
        ..Filter::default()
    }
}

fn limit(given: &Values) -> usize {
    let limit = given
        .int("limit")
        .and_then(|limit| usize::try_from(limit).ok());
    limit.unwrap_or(PAGE)
}

pub async fn list(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let query = &given.query;
    let mut filter = filter(query);
    filter.limit = limit(query);
    let mut newest = query.text("order") == Some("newest");
    if let Some(cursor) = query.text("cursor").and_then(Cursor::parse) {
        if query.text("order").is_some() && newest != cursor.newest {
            return Err(Problem::invalid(
                "the cursor is of a walk in the other order",
            ));
        }
        (newest, filter.after) = (cursor.newest, Some(cursor.at));
    }
    let page = web.rowlock.browse().browse(filter, newest).await?;
    let next = page.next.map(|at| Cursor { newest, at }.to_string());
    Ok(json!({ "items": records(&page.jobs)?, "next": next }))
}

pub async fn running(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let jobs = web.rowlock.browse().in_hand(limit(&given.query)).await?;
    Ok(items(records(&jobs)?))
}

fn records(jobs: &[Record]) -> Result<Vec<Value>, Problem> {
    jobs.iter().map(value).collect()
}

fn id(given: &Given) -> Result<JobId, Problem> {
    let id = given.path.id("id");
    id.ok_or_else(|| Problem::invalid("id is missing"))
}

fn missing(id: JobId) -> Problem {
    Problem::not_found(
        job_not_found(id),
        "GET /api/v1/jobs lists those that there are",
    )
}

pub async fn show(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let id = id(&given)?;
    match web.rowlock.operate().job(id).await? {
        Some(job) => value(&job),
        None => Err(missing(id)),
    }
}

pub async fn retry(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    one(&web, Action::Retry, id(&given)?).await
}

pub async fn cancel(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    one(&web, Action::Cancel, id(&given)?).await
}

pub async fn delete(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    one(&web, Action::Delete, id(&given)?).await
}

async fn one(web: &Web, action: Action, id: JobId) -> Result<Value, Problem> {
    let answer = change(&web.rowlock, action, vec![id]).await?.pop();
    match answer {
        Some(Ok(done)) => Ok(json!({ "id": id, "status": done.as_str() })),
        Some(Err(rowlock::Error::NotFound(_))) | None => Err(missing(id)),
        Some(Err(why)) => Err(why.into()),
    }
}
