//! `rowlock drain`: the routes, by which jobs go on to Redis or Sidekiq.

mod recall;
mod run;
mod status;

pub use status::{Shown, fill};

use std::collections::BTreeSet;

use anyhow::Result;
use rowlock::config::nearest;
use rowlock::drain::{Drain, Options, Route};
use rowlock::engine::RouteRow;
use rowlock::run::Runner;
use rowlock::verify::Ran;
use rowlock::{Error, Kind, Name, Pair, Rowlock};

use super::work::names;
use crate::cli;
use crate::exit;
use crate::open::{Setup, sink};

pub async fn run(setup: &Setup, what: cli::Drain, json: bool) -> Result<u8> {
    match what {
        cli::Drain::Run(how) => run::run(setup, how, json).await,
        cli::Drain::Status => status::run(setup, json).await,
        cli::Drain::Recall { route, yes } => recall::run(setup, &route, yes, json).await,
    }
}

/// Whether jobs may go by these routes: what a sink can lose unseen must be derivable, or be lossy on
/// purpose.
pub async fn check(setup: &Setup, rowlock: &Rowlock, routes: &[Route]) -> Result<()> {
    if routes.is_empty() {
        return Ok(());
    }
    let derived = derived(setup, rowlock).await?;
    for route in routes {
        match route.check(|kind| derived.contains(kind)) {
            Err(Error::Invalid(why)) => {
                return Err(exit::with(
                    exit::USAGE,
                    format!("{why}; nothing was written"),
                ));
            }
            other => other?,
        }
    }
    Ok(())
}

/// The kinds that a pair derives from rows: of the configuration, and of the database.
pub async fn derived(setup: &Setup, rowlock: &Rowlock) -> Result<BTreeSet<Name>> {
    let rows = rowlock.schedule().pairs().await?;
    let mut kinds: BTreeSet<Name> = rows.into_iter().map(|row| row.pair.kind).collect();
    kinds.extend(setup.config.pairs()?.into_iter().map(|pair| pair.kind));
    Ok(kinds)
}

/// How a drain of this configuration works.
pub fn options(setup: &Setup, ran: Option<Ran>) -> Options {
    Options {
        lease: setup.config.worker.lease,
        poll: setup.config.worker.poll,
        ran,
        ..Options::default()
    }
}

/// A drain of these routes.
pub fn drain(rowlock: &Rowlock, routes: Vec<Route>, pairs: Vec<Pair>) -> Drain {
    let drain = routes
        .into_iter()
        .fold(Drain::new(rowlock.clone()), Drain::route);
    pairs.into_iter().fold(drain, Drain::pair)
}

/// The line of a start block about a route.
pub fn line(route: &Route) -> (&'static str, String) {
    let mut line = format!("{} to {}", route.name, sink(&route.to));
    for (what, list) in [("kinds", &route.kinds), ("queues", &route.queues)] {
        if !list.is_empty() {
            line += &format!(", {what} {}", names(list.iter()));
        }
    }
    ("drain", line)
}

/// The lines of a start block about kinds that have a handler here and are run elsewhere.
pub fn elsewhere(routes: &[Route], handlers: &[(Kind, Runner)]) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    for route in routes {
        let ours = handlers.iter().map(|(kind, _)| &kind.name);
        let kinds = names(ours.filter(|kind| route.kinds.contains(kind)));
        if kinds.is_empty() {
            continue;
        }
        let who = match route.reports_back() {
            true => format!("`rowlock work --from {}`", sink(&route.to)),
            false => "Sidekiq".to_owned(),
        };
        lines.push(("elsewhere", format!("{kinds}: run by {who}")));
    }
    lines
}

/// The error for a route that nobody knows, with the one that was meant.
fn unknown(setup: &Setup, name: &Name, known: &[&Name]) -> anyhow::Error {
    let hint = match nearest(name.as_str(), known.iter().map(|known| known.as_str())) {
        Some(known) => format!("did you mean {known}?"),
        None => format!(
            "there are no routes: {} writes those of rowlock.toml",
            setup.command("apply")
        ),
    };
    exit::with(exit::NOT_FOUND, format!("route {name} not found: {hint}"))
}

async fn the_one(setup: &Setup, rowlock: &Rowlock, name: &Name) -> Result<RouteRow> {
    let rows = rowlock.routes().routes().await?;
    let found = rows.iter().find(|row| row.route == *name).cloned();
    let known: Vec<&Name> = rows.iter().map(|row| &row.route).collect();
    found.ok_or_else(|| unknown(setup, name, &known))
}
