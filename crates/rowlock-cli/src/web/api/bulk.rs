//! What is done to many jobs: counted first, changed only when confirmed, and no more in one request
//! than ends in time.

use std::sync::Arc;

use rowlock::engine::Filter;
use rowlock::{Error, JobId};
use serde_json::{Map, Value, json};

use super::NAME;
use super::jobs::filter;
use crate::command::job_change::{Action, change, makes_sense, meant};
use crate::web::Web;
use crate::web::cursor::Cursor;
use crate::web::problem::Problem;
use crate::web::route::Given;
use crate::web::shape::{Field, Is, STATES, Values, may, must};

const FILTER: &[Field] = &[
    may(
        "state",
        Is::OneOf(STATES),
        "In this state; retry means failed unless said",
    ),
    may("queue", NAME, "In this queue"),
    may("kind", NAME, "Of this kind"),
    may("key", Is::Text(1_000), "With this unique key"),
    may("tag", NAME, "With this label"),
    may("since", Is::Time, "Added at or after"),
    may("until", Is::Time, "Added before"),
];

pub const BODY: &[Field] = &[
    must(
        "action",
        Is::OneOf(&["retry", "cancel", "delete"]),
        "What to do",
    ),
    may(
        "ids",
        Is::List(&Is::Id, 1_000),
        "These jobs, instead of a filter",
    ),
    may(
        "filter",
        Is::Object(FILTER),
        "Those that match; at least one field",
    ),
    may("all", Is::Bool, "Every job there is, instead of a filter"),
    may(
        "confirm",
        Is::Bool,
        "Yes, change them; otherwise they are only counted",
    ),
    may("cursor", Is::Cursor, "The next of the answer before"),
];

/// How many are changed in one transaction: small enough to let workers in between.
const PAGE: usize = 200;
/// How many pages one request goes through.
const PAGES: usize = 25;

/// What came of it so far.
#[derive(Default)]
struct Sum {
    done: Map<String, Value>,
    conflicts: u64,
    missing: u64,
    first: Option<String>,
}

impl Sum {
    fn add(&mut self, answers: Vec<Result<crate::command::job_change::Done, Error>>, named: bool) {
        for answer in answers {
            match answer {
                Ok(done) => {
                    let n = self.done.entry(done.as_str()).or_insert(json!(0));
                    *n = json!(n.as_u64().unwrap_or_default() + 1);
                }
                // It went between the look and the change: that is what filters are about.
                Err(Error::NotFound(_)) if !named => {}
                Err(Error::NotFound(_)) => self.missing += 1,
                Err(why) => {
                    self.conflicts += 1;
                    self.first.get_or_insert(why.to_string());
                }
            }
        }
    }

    fn shown(self, action: &str, next: Option<Cursor>) -> Value {
        json!({
            "action": action, "confirmed": true, "changed": self.done, "conflicts": self.conflicts,
            "missing": self.missing, "first_conflict": self.first,
            "next": next.map(|next| next.to_string()),
        })
    }
}

async fn some(web: &Web, action: Action, given: &Values) -> Result<Value, Problem> {
    let word = given.text("action").unwrap_or_default().to_owned();
    let confirmed = given.flag("confirm");
    if let Some(ids) = given.list("ids") {
        let mut ids: Vec<JobId> = ids.iter().filter_map(Value::as_i64).map(JobId).collect();
        ids.sort_unstable();
        ids.dedup();
        if !confirmed {
            return Ok(counted(&word, ids.len(), None));
        }
        let mut sum = Sum::default();
        for some in ids.chunks(PAGE) {
            sum.add(change(&web.rowlock, action, some.to_vec()).await?, true);
        }
        return Ok(sum.shown(&word, None));
    }
    let mut walk = Walk::new(action, given)?;
    if !confirmed {
        let mut n = 0;
        while let Some(ids) = walk.next(web).await? {
            n += ids.len();
        }
        return Ok(counted(&word, n, walk.next));
    }
    let mut sum = Sum::default();
    while let Some(ids) = walk.next(web).await? {
        if !ids.is_empty() {
            sum.add(change(&web.rowlock, action, ids).await?, false);
        }
    }
    Ok(sum.shown(&word, walk.next))
}

fn counted(action: &str, n: usize, next: Option<Cursor>) -> Value {
    json!({
        "action": action, "confirmed": false, "count": n, "capped": next.is_some(),
        "next": next.map(|next| next.to_string()),
    })
}

/// Pages of jobs that the action makes sense for, as many as one request may have.
struct Walk {
    action: Action,
    filter: Filter,
    pages: usize,
    over: bool,
    next: Option<Cursor>,
}

impl Walk {
    fn new(action: Action, given: &Values) -> Result<Self, Problem> {
        let fields = given.object("filter").unwrap_or_default();
        let (empty, all) = (fields.0.is_empty(), given.flag("all"));
        if empty != all {
            return Err(Problem::invalid(
                "which jobs? give ids, a filter with at least one field, or all: true",
            ));
        }
        let cursor = given.text("cursor").and_then(Cursor::parse);
        // From there it would go the other way, over other jobs.
        if cursor.is_some_and(|cursor| cursor.newest) {
            return Err(Problem::invalid(
                "the cursor is of a list, not of a change: begin without one",
            ));
        }
        let mut filter = filter(&fields);
        filter.state = meant(action, filter.state);
        filter.limit = PAGE;
        filter.after = cursor.map(|cursor| cursor.at);
        Ok(Self {
            action,
            filter,
            pages: PAGES,
            over: false,
            next: cursor,
        })
    }

    async fn next(&mut self, web: &Web) -> Result<Option<Vec<JobId>>, Problem> {
        if self.over || self.pages == 0 {
            return Ok(None);
        }
        self.pages -= 1;
        let page = web
            .rowlock
            .browse()
            .browse(self.filter.clone(), false)
            .await?;
        self.over = page.next.is_none();
        self.filter.after = page.next;
        self.next = page.next.map(|at| Cursor { newest: false, at });
        let wanted = page.jobs.iter().filter(|job| makes_sense(self.action, job));
        Ok(Some(wanted.map(|job| job.id).collect()))
    }
}

pub async fn run(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let action = match given.body.text("action") {
        Some("retry") => Action::Retry,
        Some("cancel") => Action::Cancel,
        _ => Action::Delete,
    };
    some(&web, action, &given.body).await
}
