//! What can be wrong with routes, as far as the store knows.

use std::collections::BTreeSet;
use std::time::Duration;

use rowlock::Name;
use rowlock::drain::Route;
use rowlock::engine::RouteRow;

use super::{Finding, Level, finding, jobs, jobs_are};
use crate::command::work::names;
use crate::open::{Setup, quoted, sink};
use crate::show;

/// A due job may wait for so long before somebody asks what holds it up.
const LAG: Duration = Duration::from_secs(60);

pub fn look(
    setup: &Setup,
    rows: &[RouteRow],
    ours: &[Route],
    derived: &BTreeSet<Name>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for row in rows {
        found.extend(match row.drained {
            true => lag(
                setup,
                row,
                ours.iter().find(|route| route.name == row.route),
            ),
            false => undrained(setup, row),
        });
        let known = ours.iter().any(|route| route.name == row.route);
        if setup.file.is_some() && !known {
            found.push(stranger(setup, row));
        }
    }
    for route in ours {
        let row = rows.iter().find(|row| row.route == route.name);
        found.extend(drift(setup, route, row));
        found.extend(lossy(setup, route, derived));
    }
    found
}

/// How long the job has been due that was to be sent first.
pub fn longest_lag(rows: &[RouteRow]) -> Duration {
    let longest = rows.iter().map(|row| row.lag_ms).max();
    Duration::from_millis(longest.unwrap_or_default())
}

fn waiting(row: &RouteRow) -> String {
    let lag = Duration::from_millis(row.lag_ms);
    let more = if row.unsent >= RouteRow::MOST {
        "+"
    } else {
        ""
    };
    format!(
        "{}{more} due, for {} by now",
        show::count(row.unsent),
        show::span(lag)
    )
}

/// What waits isn't sent, and what was sent isn't answered for.
fn undrained(setup: &Setup, row: &RouteRow) -> Option<Finding> {
    let mut parts = Vec::new();
    if row.unsent > 0 {
        parts.push(format!("{} and not sent", waiting(row)));
    }
    if row.sent > 0 {
        parts.push(format!(
            "{} not answered for",
            jobs_are(row.sent, row.has_sent_more())
        ));
    }
    let idle = parts.is_empty();
    let state = match idle {
        true => "nothing waits".to_owned(),
        false => parts.join(", "),
    };
    let last = match row.seen_at {
        Some(at) => format!("the last one was heard at {at}"),
        None => "none has run yet".to_owned(),
    };
    let what = format!("no drain of route {} runs ({last}): {state}", row.route);
    let level = if idle { Level::Info } else { Level::Warn };
    let remedy = setup.line(&format!("drain run {}", row.route));
    Some(finding("R025", level, what, remedy))
}

/// More workers, if there are any of ours behind that sink; whoever starts them adds the password.
fn lag(setup: &Setup, row: &RouteRow, route: Option<&Route>) -> Option<Finding> {
    if Duration::from_millis(row.lag_ms) < LAG {
        return None;
    }
    let what = format!(
        "route {} lags: {}, and {} sent and not settled",
        row.route,
        waiting(row),
        jobs_are(row.sent, row.has_sent_more())
    );
    let remedy = match route.filter(|route| route.reports_back()) {
        Some(route) => format!("rowlock work --from {}", quoted(&sink(&route.to))),
        None => setup.line("drain status"),
    };
    Some(finding("R026", Level::Warn, what, remedy))
}

/// Only with an explicit word, and so that nobody forgets it.
fn lossy(setup: &Setup, route: &Route, derived: &BTreeSet<Name>) -> Option<Finding> {
    if route.reports_back() || !route.lossy {
        return None;
    }
    let kinds = route.kinds.iter().filter(|kind| !derived.contains(*kind));
    let mut parts: Vec<String> = Vec::new();
    let kinds = names(kinds);
    if !kinds.is_empty() {
        parts.push(format!("kinds {kinds}"));
    }
    if !route.queues.is_empty() {
        parts.push(format!("queues {}", names(route.queues.iter())));
    }
    if parts.is_empty() {
        return None;
    }
    let what = format!(
        "route {} is lossy: a job of {} is gone if Sidekiq loses it, and no pair brings it back",
        route.name,
        parts.join(" and ")
    );
    let remedy = format!(
        "write a [[pair]] for them into rowlock.toml, then {}",
        setup.command("apply")
    );
    Some(finding("R027", Level::Info, what, remedy))
}

fn stranger(setup: &Setup, row: &RouteRow) -> Finding {
    let name = &row.route;
    let going = names(row.kinds.iter().chain(&row.queues));
    let what = match going.is_empty() {
        true => format!(
            "route {name} is not in the configuration and still holds {}",
            jobs(row.sent, row.has_sent_more())
        ),
        false => format!("route {name} is not in the configuration, and {going} still go by it"),
    };
    let remedy = setup.line(&format!("drain recall {name}"));
    finding("R028", Level::Warn, what, remedy)
}

/// A route of the configuration that is not, or not so, in the database.
fn drift(setup: &Setup, route: &Route, row: Option<&RouteRow>) -> Option<Finding> {
    let sorted = |names: &[Name]| names.iter().cloned().collect::<BTreeSet<Name>>();
    let what = match row {
        None if route.kinds.is_empty() && route.queues.is_empty() => return None,
        None => "nothing goes by it yet",
        Some(row)
            if sorted(&row.kinds) == sorted(&route.kinds)
                && sorted(&row.queues) == sorted(&route.queues) =>
        {
            return None;
        }
        Some(_) => "the kinds and queues that go by it differ",
    };
    let what = format!("route {}: {what}", route.name);
    Some(finding("R006", Level::Warn, what, setup.line("apply")))
}
