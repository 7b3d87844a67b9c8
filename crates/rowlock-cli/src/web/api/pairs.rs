//! Pairs, which turn rows that need work into jobs.

use std::sync::Arc;

use rowlock::reconcile::tick_by_hand;
use serde_json::{Value, json};

use super::{items, value};
use crate::command::reconcile::list::{Key, Shown};
use crate::command::reconcile::{failed, keys::spellings, run as by_hand, the_one, with_source};
use crate::web::Web;
use crate::web::problem::Problem;
use crate::web::route::Given;
use crate::web::shape::{Field, Is, may};

/// Longer than any that is stored: what is over 255 bytes is stored as its hash.
const KEY: Is = Is::Text(1_000);

pub const KEYS: &[Field] = &[
    may(
        "after",
        KEY,
        "Only keys after this one: the next of the page before",
    ),
    may("limit", Is::Int(1, 500), "At most so many; 50 unless said"),
];

pub const RUN: &[Field] = &[may("dry_run", Is::Bool, "Only say what it would do")];

pub const LIFT: &[Field] = &[
    may("keys", Is::List(&KEY, 1_000), "These keys"),
    may("all", Is::Bool, "Every key of the pair, instead of some"),
];

pub async fn list(web: Arc<Web>, _: Given) -> Result<Value, Problem> {
    let rows = web.rowlock.schedule().pairs().await?;
    let shown = rows.iter().map(|row| value(&Shown::of(row)));
    Ok(items(shown.collect::<Result<_, _>>()?))
}

pub async fn show(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let name = given.path.the_name("pair")?;
    let row = the_one(&web.setup, &web.rowlock, &name).await?;
    let mut shown = value(&Shown::of(&row))?;
    shown["query"] = row.pair.query.clone().into();
    Ok(shown)
}

pub async fn keys(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let name = given.path.the_name("pair")?;
    the_one(&web.setup, &web.rowlock, &name).await?;
    let limit = given
        .query
        .int("limit")
        .and_then(|n| usize::try_from(n).ok());
    let (limit, after) = (limit.unwrap_or(50), given.query.text("after"));
    let schedule = web.rowlock.schedule();
    let mut found = schedule.held_back(&name, after, limit + 1).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|last| last.key.clone());
    let keys = found.into_iter().map(|held| value(&Key::from(held)));
    let keys: Result<Vec<Value>, Problem> = keys.collect();
    Ok(json!({ "items": keys?, "next": next }))
}

pub async fn run(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let (name, dry) = (given.path.the_name("pair")?, given.body.flag("dry_run"));
    let row = the_one(&web.setup, &web.rowlock, &name).await?;
    if row.switch.is_some() && !dry {
        let sentence = by_hand::paused(&web.setup, &row);
        let remedy = format!("DELETE /api/v1/switches/pair/{name} lets it go on");
        return Err(Problem::conflict(sentence, remedy));
    }
    let pair = with_source(&web.setup, row.pair)?;
    let ticked = tick_by_hand(&web.rowlock, &pair, dry, |_| {}).await;
    let ticked = ticked.map_err(|why| failed(&name, why))?;
    value(&by_hand::Shown::of(&pair, &ticked, dry))
}

pub async fn lift(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let name = given.path.the_name("pair")?;
    let (some, all) = (given.body.list("keys"), given.body.flag("all"));
    let keys = match (some, all) {
        (Some(keys), false) if !keys.is_empty() => {
            let keys = keys.iter().filter_map(Value::as_str);
            Some(keys.flat_map(spellings).collect())
        }
        (None, true) => None,
        _ => return Err(Problem::invalid("which keys? give keys, or all: true")),
    };
    the_one(&web.setup, &web.rowlock, &name).await?;
    let lifted = web.rowlock.schedule().lift(&name, keys).await?;
    if lifted == 0 && !all {
        return Err(Problem::not_found(
            format!("pair {name} holds none of these keys back"),
            format!("GET /api/v1/pairs/{name}/keys shows which"),
        ));
    }
    Ok(json!({ "pair": name, "lifted": lifted }))
}
