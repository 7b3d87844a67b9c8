//! Budgets of workload classes, and what pins the server's horizon.

use std::sync::Arc;

use rowlock::guard::{Action, Class, Policy};
use serde_json::{Value, json};

use super::{NAME, items};
use crate::command::budget;
use crate::command::guard;
use crate::open::Store;
use crate::web::Web;
use crate::web::problem::Problem;
use crate::web::route::Given;
use crate::web::shape::{Field, Is, may, must};

const MATCH: &[Field] = &[
    may(
        "application_name",
        Is::Text(63),
        "Sessions with this application_name",
    ),
    may("role", Is::Text(63), "Sessions of this role"),
    may("tag", NAME, "Statements that begin with /* class:TAG */"),
];

pub const SET: &[Field] = &[
    must(
        "max",
        Is::Int(1, 1_000),
        "How many transactions may run at once",
    ),
    may(
        "match",
        Is::Object(MATCH),
        "Which sessions belong to the class; as before unless given",
    ),
];

/// A file has no sessions.
fn only_postgres(web: &Web) -> Result<(), Problem> {
    match web.setup.store {
        Store::Postgres(_) => Ok(()),
        Store::Sqlite(_) => Err(Problem::conflict(
            "the store is a SQLite file, which has no sessions that could pin a horizon",
            "this is for a store in PostgreSQL",
        )),
    }
}

pub async fn budgets(web: Arc<Web>, _: Given) -> Result<Value, Problem> {
    only_postgres(&web)?;
    let classes = web.rowlock.watch().classes().await?;
    Ok(items(classes.iter().map(budget::shown).collect()))
}

pub async fn set(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    only_postgres(&web)?;
    let (watch, name) = (web.rowlock.watch(), given.path.the_name("class")?);
    let max = given
        .body
        .int("max")
        .and_then(|max| u32::try_from(max).ok());
    let max = max.ok_or_else(|| Problem::invalid("max is missing"))?;
    let stored = watch.classes().await?;
    let old = stored.into_iter().find(|class| class.name == name);
    let mut rule = old.map(|class| class.rule).unwrap_or_default();
    if let Some(given) = given.body.object("match") {
        let text = |name: &str| given.text(name).map(str::to_owned);
        rule.application_name = text("application_name").or(rule.application_name);
        rule.role = text("role").or(rule.role);
        rule.tag = given.name("tag").or(rule.tag);
    }
    let class = Class::with(name, max, rule)?;
    watch.declare_class(&class).await?;
    Ok(budget::shown(&class))
}

pub async fn remove(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    only_postgres(&web)?;
    let name = given.path.the_name("class")?;
    match web.rowlock.watch().forget_class(&name).await? {
        true => Ok(json!({ "class": name, "status": "removed" })),
        false => Err(Problem::not_found(
            format!("there is no budget of class {name}"),
            "GET /api/v1/budgets lists those that there are",
        )),
    }
}

/// It looks, whatever the configuration lets a guard do.
pub async fn pins(web: Arc<Web>, _: Given) -> Result<Value, Problem> {
    only_postgres(&web)?;
    let policy = Policy {
        action: Action::Observe,
        ..web.setup.config.guard().unwrap_or_default()
    };
    let seen = guard::guard(&web.setup, &web.rowlock, policy)?
        .look()
        .await?;
    Ok(items(seen.iter().map(guard::shown).collect()))
}
