//! `rowlock apply`: the kinds, pairs, crons, routes and budgets of rowlock.toml become rows.

use anyhow::Result;
use rowlock::drain::Route;
use rowlock::engine::Applied;
use rowlock::{Error, Name, Pair, Rowlock};
use serde_json::json;

use super::cron::file_name;
use super::reconcile::source;
use crate::open::{Access, Setup};
use crate::{exit, out, show};

pub async fn run(setup: &Setup, json: bool) -> Result<u8> {
    let Some(file) = &setup.file else {
        return Err(exit::with(
            exit::USAGE,
            "there is no rowlock.toml in this folder to apply: `rowlock init` writes one, --config \
             names another",
        ));
    };
    let (kinds, pairs) = (setup.config.kinds()?, setup.pairs()?);
    let routes = setup.routes()?;
    let classes = setup.config.classes()?;
    if !classes.is_empty() {
        super::budget::only_postgres(setup, "[budget.NAME] of rowlock.toml")?;
    }
    let rowlock = setup.open(Access::Write).await?;
    let crons = setup.config.crons()?;
    if kinds.is_empty() && routes.is_empty() && crons.is_empty() && classes.is_empty() {
        out::warn(&format!(
            "{} has no [handlers.NAME], no [[cron]] and no [[drain]], so there was nothing to apply",
            file.display()
        ));
    }
    check(&rowlock, &pairs).await?;
    super::drain::check(setup, &rowlock, &routes).await?;
    let applied = rowlock.operate().apply(&kinds).await?;
    for (kind, done) in kinds.iter().zip(&applied) {
        say("kind", &kind.name, done, json)?;
    }
    write_pairs(setup, &rowlock, &pairs, json).await?;
    super::cron::apply(setup, &rowlock, json).await?;
    write_routes(setup, &rowlock, &routes, json).await?;
    let say = |name: &Name, done: &Applied| say("budget", name, done, json);
    super::budget::apply(setup, &rowlock, json, say).await?;
    Ok(exit::OK)
}

/// Before anything is written: each query must run, and be one that can be asked by its key.
pub async fn check(rowlock: &Rowlock, pairs: &[Pair]) -> Result<()> {
    for pair in pairs {
        match source(rowlock, pair)?.columns(pair).await {
            Err(Error::Invalid(why)) => {
                let known = format!("pair {}: ", pair.name);
                let why = why.strip_prefix(&known).unwrap_or(&why);
                return Err(exit::with(
                    exit::USAGE,
                    format!("{known}{why}; nothing was written"),
                ));
            }
            other => other?,
        };
    }
    Ok(())
}

async fn write_pairs(setup: &Setup, rowlock: &Rowlock, pairs: &[Pair], json: bool) -> Result<()> {
    let schedule = rowlock.schedule();
    if !pairs.is_empty() {
        let applied = schedule.declare_pairs(pairs, true).await?;
        for (pair, done) in pairs.iter().zip(&applied) {
            say("pair", &pair.name, done, json)?;
            for warning in pair.warnings() {
                out::warn(&format!("pair {}: {warning}", pair.name));
            }
        }
    }
    for row in schedule.pairs().await? {
        let name = &row.pair.name;
        if pairs.iter().all(|pair| pair.name != *name) {
            let remedy = setup.line(&format!("reconcile remove {name}"));
            match json {
                true => {
                    out::json(&json!({ "pair": name, "status": "undeclared", "remedy": remedy }))?
                }
                false => out::line(&format!(
                    "pair {name} is not in {} and still ticks; `{remedy}` ends it",
                    file_name(setup)
                ))?,
            }
        }
    }
    Ok(())
}

async fn write_routes(
    setup: &Setup,
    rowlock: &Rowlock,
    routes: &[Route],
    json: bool,
) -> Result<()> {
    let store = rowlock.routes();
    for route in routes {
        let (name, kinds, queues) = (&route.name, &route.kinds, &route.queues);
        let done = store.declare_route(name, kinds, queues, true).await?;
        say("route", name, &done, json)?;
    }
    for row in store.routes().await? {
        let name = &row.route;
        if routes.iter().all(|route| route.name != *name) {
            let remedy = setup.line(&format!("drain recall {name}"));
            match json {
                true => {
                    out::json(&json!({ "route": name, "status": "undeclared", "remedy": remedy }))?
                }
                false => out::line(&format!(
                    "route {name} is not in {} and jobs still go by it; `{remedy}` ends it",
                    file_name(setup)
                ))?,
            }
        }
    }
    Ok(())
}

fn say(what: &str, name: &Name, done: &Applied, json: bool) -> Result<()> {
    let none = Vec::new();
    let (status, differences) = match done {
        Applied::Added => ("added", &none),
        Applied::Changed(differences) => ("changed", differences),
        Applied::Unchanged => ("unchanged", &none),
    };
    if json {
        return out::json(&json!({
            what: name, "status": status, "differences": differences,
        }));
    }
    let shown = match what {
        "kind" => name.to_string(),
        other => format!("{other} {name}"),
    };
    let differences: Vec<_> = differences.iter().map(|each| show::text(each)).collect();
    let line = format!("{status:<9}  {shown}  {}", differences.join(", "));
    out::line(line.trim_end())
}
