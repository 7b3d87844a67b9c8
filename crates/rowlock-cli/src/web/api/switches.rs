//! Switches: what an operator stops, and lets go on.

use std::sync::Arc;

use rowlock::Error;
use rowlock::job::parse_duration;
use rowlock::switch::{Mode, Target};
use serde_json::{Value, json};

use super::{WORDS, items, value};
use crate::cli::{SwitchSet, SwitchTarget};
use crate::command::switch::turn_on;
use crate::web::Web;
use crate::web::problem::Problem;
use crate::web::route::Given;
use crate::web::shape::{Field, Is, may, must};

pub const SET: &[Field] = &[
    must(
        "mode",
        Is::OneOf(&["reject", "hold", "pause"]),
        "What it does",
    ),
    must("reason", WORDS, "Why, for whoever looks at it next"),
    may("for", Is::Duration, "It clears itself after this time"),
    may("until", Is::Time, "It clears itself then"),
    may("by", Is::Text(200), "Who says so"),
    may(
        "lose_jobs",
        Is::Bool,
        "Yes, reject what nobody will enqueue again",
    ),
];

pub async fn list(web: Arc<Web>, _: Given) -> Result<Value, Problem> {
    let switches = web.rowlock.schedule().switches().await?;
    Ok(items(switches.iter().map(value).collect::<Result<_, _>>()?))
}

fn target(given: &Given) -> Result<SwitchTarget, Problem> {
    let target = match given.path.text("target") {
        Some("kind") => Target::Kind,
        Some("queue") => Target::Queue,
        _ => Target::Pair,
    };
    let name = given.path.the_name("name")?;
    Ok(SwitchTarget { target, name })
}

pub async fn set(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let body = &given.body;
    let reason = body.text("reason").unwrap_or_default().trim();
    if reason.is_empty() {
        return Err(Problem::invalid(
            "reason is empty: say why, for whoever looks at it next",
        ));
    }
    if body.text("for").is_some() && body.text("until").is_some() {
        return Err(Problem::invalid("give for or until, not both"));
    }
    let role = given.caller.role.as_str();
    let by = body
        .text("by")
        .map_or_else(|| format!("api ({role})"), str::to_owned);
    let what = SwitchSet {
        target: target(&given)?,
        mode: body.text("mode").unwrap_or_default().parse::<Mode>()?,
        reason: reason.to_owned(),
        time: body.text("for").map(parse_duration).transpose()?,
        until: body.time("until"),
        by: Some(by),
        lose_jobs: body.flag("lose_jobs"),
    };
    let (until, warnings) = turn_on(&web.setup, &web.rowlock, &what).await?;
    let SwitchTarget { target, name } = &what.target;
    Ok(json!({
        "target": target, "name": name, "mode": what.mode, "until": until, "warnings": warnings,
    }))
}

pub async fn clear(web: Arc<Web>, given: Given) -> Result<Value, Problem> {
    let whole = target(&given)?;
    let SwitchTarget { target, name } = &whole;
    match web.rowlock.schedule().switch(*target, name, None).await {
        Err(Error::NotFound(_)) => Err(Problem::not_found(
            format!("no switch of {whole} is on"),
            "GET /api/v1/switches shows which are",
        )),
        Err(why) => Err(why.into()),
        Ok(()) => Ok(json!({ "target": target, "name": name, "mode": null })),
    }
}
