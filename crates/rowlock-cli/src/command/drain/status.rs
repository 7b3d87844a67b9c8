//! `rowlock drain status`: how the routes are doing.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use rowlock::drain::{Fill, Route, Sink};
use rowlock::engine::RouteRow;
use rowlock::{Clock, Name};
use serde::Serialize;

use crate::command::work::names;
use crate::open::{Access, Setup, sink};
use crate::show::{self, Table};
use crate::{exit, out};

/// How long a sink may take to say how full it is.
const PATIENCE: Duration = Duration::from_secs(3);
/// What an error may take up in a table.
const ERROR: usize = 80;

/// A route as JSON. What can't be told is null.
#[derive(Serialize)]
pub struct Shown<'a> {
    route: &'a Name,
    to: Option<String>,
    kinds: &'a [Name],
    queues: &'a [Name],
    unsent: u64,
    lag_seconds: f64,
    sent: u64,
    ready: Option<u64>,
    taken: Option<u64>,
    reports: Option<u64>,
    workers: Option<u64>,
    pushed: Option<u64>,
    resent: Option<u64>,
    drained: bool,
    error: Option<String>,
}

pub async fn run(setup: &Setup, json: bool) -> Result<u8> {
    let routes = setup.routes()?;
    let rowlock = setup.open(Access::Read).await?;
    let rows = rowlock.routes().routes().await?;
    let clock = rowlock.clock();
    let mut table = Table::new(&HEADING, &[3, 4, 5, 7, 8, 9, 10, 11, 12]);
    for row in &rows {
        let route = routes.iter().find(|route| route.name == row.route);
        let fill = match route {
            Some(route) => Some(fill(route, clock).await),
            None => None,
        };
        let shown = Shown::of(row, route, fill);
        match json {
            true => out::json(&shown)?,
            false => table.row(shown.cells(row, clock.now())),
        }
    }
    if !json && !rows.is_empty() {
        out::lines(&table.lines())?;
    }
    let written = |route: &&Route| rows.iter().any(|row| row.route == route.name);
    let missing: Vec<&Name> = routes
        .iter()
        .filter(|route| !written(route))
        .map(|route| &route.name)
        .collect();
    if !missing.is_empty() {
        out::note(&format!(
            "nothing goes by {} yet: {} writes the routes of the configuration",
            names(missing.into_iter()),
            setup.command("apply")
        ));
    } else if rows.is_empty() {
        out::note(
            "every job goes directly: write a [[drain]] into rowlock.toml, then `rowlock apply`",
        );
    }
    Ok(exit::OK)
}

const HEADING: [&str; 14] = [
    "ROUTE", "KINDS", "QUEUES", "UNSENT", "LAG", "SENT", "DRAIN", "READY", "TAKEN", "REPORTS",
    "WORKERS", "PUSHED", "RESENT", "SINK",
];

/// How full the sink is. It isn't opened: whether it has lost its memory is for the drain to find.
pub async fn fill(route: &Route, clock: &Clock) -> Result<Fill, String> {
    let sink: Arc<dyn Sink> = route.sink(clock).map_err(|why| why.to_string())?;
    match clock.timeout(PATIENCE, sink.fill()).await {
        Some(told) => told.map_err(|why| why.to_string()),
        None => Err(format!("it didn't answer for {}", show::span(PATIENCE))),
    }
}

impl<'a> Shown<'a> {
    pub fn of(
        row: &'a RouteRow,
        route: Option<&Route>,
        fill: Option<Result<Fill, String>>,
    ) -> Self {
        let (fill, error) = match fill {
            Some(Ok(fill)) => (Some(fill), None),
            Some(Err(why)) => (None, Some(why)),
            None => (None, None),
        };
        Self {
            route: &row.route,
            to: route.map(|route| sink(&route.to)),
            kinds: &row.kinds,
            queues: &row.queues,
            unsent: row.unsent,
            lag_seconds: Duration::from_millis(row.lag_ms).as_secs_f64(),
            sent: row.sent,
            ready: fill.map(|fill| fill.ready),
            taken: fill.map(|fill| fill.taken),
            reports: fill.map(|fill| fill.reports),
            workers: fill.map(|fill| fill.workers),
            pushed: fill.map(|fill| fill.pushed),
            resent: fill.map(|fill| fill.resent),
            drained: row.drained,
            error,
        }
    }

    fn cells(&self, row: &RouteRow, now: jiff::Timestamp) -> Vec<String> {
        let none = || "-".to_owned();
        let list = |list: &[Name]| match list.is_empty() {
            true => none(),
            false => names(list.iter()),
        };
        let number = |number: Option<u64>| number.map_or_else(none, show::count);
        let counted = |jobs: u64| match jobs {
            most if most >= RouteRow::MOST => format!("{}+", show::count(RouteRow::MOST)),
            some => show::count(some),
        };
        let lag = match self.unsent {
            0 => none(),
            _ => show::span(Duration::from_millis(row.lag_ms)),
        };
        let drain = match (row.seen_at, row.drained) {
            (None, _) => "never".to_owned(),
            (Some(_), true) => "runs".to_owned(),
            (Some(at), false) => format!("gone, seen {} ago", show::span(show::between(at, now))),
        };
        let place = match (&self.error, &self.to) {
            (Some(why), _) => show::excerpt(why, ERROR),
            (None, Some(to)) => to.clone(),
            (None, None) => "not in the configuration".to_owned(),
        };
        vec![
            self.route.to_string(),
            list(self.kinds),
            list(self.queues),
            counted(self.unsent),
            lag,
            counted(self.sent),
            drain,
            number(self.ready),
            number(self.taken),
            number(self.reports),
            number(self.workers),
            number(self.pushed),
            number(self.resent),
            place,
        ]
    }
}
