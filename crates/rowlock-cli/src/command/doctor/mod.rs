//! `rowlock doctor`: what is wrong or about to go wrong, and the command that mends it.
//!
//! Here is what holds for every store; [`file`] knows SQLite, [`server`] PostgreSQL, [`pairs`] what
//! is derived, [`routes`] what is drained and [`redis`] where to.

mod cron;
mod file;
mod pairs;
mod redis;
mod routes;
mod server;

use std::time::Duration;

use anyhow::Result;
use rowlock::claim::WorkerId;
use rowlock::engine::{PairRow, Stats, WorkerRow};
use rowlock::switch::Switch;
use rowlock::{Kind, Pair, Rowlock};
use serde::Serialize;

use crate::open::{Access, Setup, Store};
use crate::{exit, out, show};

/// A worker that wasn't heard for so many leases is dead, and nobody has noticed.
const LEASES: u32 = 3;
/// A job may be due for so long before somebody asks where the workers are.
const UNATTENDED: Duration = Duration::from_secs(60);

/// Which stores a code is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    All,
    File,
    Server,
    /// Stores with routes.
    Route,
}

/// Every code, and what a checkup without it says. docs/findings has a page for each.
const CODES: [(&str, Of, &str); 29] = [
    ("R001", Of::File, "the file is whole"),
    ("R002", Of::All, "the schema is the one this rowlock made"),
    (
        "R003",
        Of::File,
        "the write-ahead log is copied back in time",
    ),
    ("R004", Of::All, "every waiting job has a known kind"),
    ("R005", Of::All, "every worker was heard lately"),
    (
        "R006",
        Of::All,
        "kinds, pairs and routes are as the configuration says",
    ),
    (
        "R007",
        Of::File,
        "a commit that was answered survives a power cut",
    ),
    ("R008", Of::All, "no queue is paused and no switch is on"),
    ("R009", Of::All, "whatever is due has a worker"),
    ("R010", Of::Server, "the server's clock agrees with ours"),
    ("R011", Of::Server, "this role may do what a worker does"),
    (
        "R012",
        Of::Server,
        "nobody keeps a segment from being emptied",
    ),
    ("R013", Of::Server, "new numbers are ahead of stored ones"),
    (
        "R014",
        Of::Server,
        "transactions are READ COMMITTED by default",
    ),
    ("R015", Of::Server, "notifications arrive"),
    ("R016", Of::All, "every cron is declared and fires"),
    ("R017", Of::All, "every pair ticks in time"),
    ("R018", Of::All, "no switch keeps a pair from its rows"),
    ("R019", Of::All, "every state of the rows has an owner"),
    ("R020", Of::All, "no key is held back"),
    ("R021", Of::All, "every pair is in the configuration"),
    ("R022", Of::Route, "Redis throws no key away"),
    ("R023", Of::Route, "Redis keeps what it holds on disk"),
    ("R024", Of::Route, "every sink can be used"),
    ("R025", Of::Route, "every route has a drain"),
    ("R026", Of::Route, "what is due is sent at once"),
    (
        "R027",
        Of::Route,
        "whatever is sent comes back or is derived again",
    ),
    ("R028", Of::Route, "every route is in the configuration"),
    ("R029", Of::Route, "Redis has room for what is sent"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// Worth knowing; nothing has to be done.
    Info,
    Warn,
    Error,
}

#[derive(Debug, Serialize)]
pub struct Finding {
    pub code: &'static str,
    pub level: Level,
    pub what: String,
    pub remedy: Option<String>,
}

fn finding(code: &'static str, level: Level, what: impl Into<String>, remedy: String) -> Finding {
    Finding {
        code,
        level,
        what: what.into(),
        remedy: Some(remedy),
    }
}

pub async fn run(setup: &Setup, json: bool) -> Result<u8> {
    let found = findings(setup).await?;
    for each in &found {
        match json {
            true => out::json(each)?,
            false => out::lines(&lines(each))?,
        }
    }
    let harmless = |each: &Finding| matches!(each.level, Level::Ok | Level::Info);
    Ok(match found.iter().all(harmless) {
        true => exit::OK,
        false => exit::FINDINGS,
    })
}

/// Everything that was looked at, by code.
pub async fn findings(setup: &Setup) -> Result<Vec<Finding>> {
    let other = match &setup.store {
        Store::Sqlite(address) => file::schema(setup, address)?,
        Store::Postgres(address) => server::schema(setup, address).await?,
    };
    let mut found = match other {
        // The tables of another version can't be asked.
        Some(other) => vec![other],
        None => {
            let (rowlock, _) = setup.open_quietly(Access::Read).await?;
            look(setup, &rowlock).await?
        }
    };
    found.sort_by_key(|each| each.code);
    Ok(found)
}

/// What was looked at and is well.
fn well(setup: &Setup, found: &[Finding], drains: bool) -> Vec<Finding> {
    let unknown = |code: &str| found.iter().all(|each| each.code != code);
    let here = match &setup.store {
        Store::Sqlite(_) => Of::File,
        Store::Postgres(_) => Of::Server,
    };
    CODES
        .into_iter()
        .filter(|(_, of, _)| match of {
            Of::All => true,
            Of::Route => drains,
            of => *of == here,
        })
        .filter(|(code, _, _)| unknown(code))
        .map(|(code, _, what)| Finding {
            code,
            level: Level::Ok,
            what: what.to_owned(),
            remedy: None,
        })
        .collect()
}

fn lines(each: &Finding) -> String {
    let level = match each.level {
        Level::Ok => "ok",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    let first = format!("{level:<5}  {}  {}\n", each.code, show::text(&each.what));
    match &each.remedy {
        Some(remedy) => format!("{first}             remedy: {remedy}\n"),
        None => first,
    }
}

async fn look(setup: &Setup, rowlock: &Rowlock) -> Result<Vec<Finding>> {
    let store = rowlock.operate();
    let health = store.health().await?;
    let mut found = match &setup.store {
        Store::Sqlite(address) => file::look(address, &health),
        Store::Postgres(address) => server::look(setup, address, &health).await?,
    };
    if !health.damage.is_empty() {
        return Ok(found);
    }
    for difference in &health.drift {
        let remedy = setup.line("migrate sql");
        found.push(finding("R002", Level::Error, difference, remedy));
    }
    let declared = setup.config.kinds()?;
    for (kind, jobs) in &health.unknown_kinds {
        let remedy = match declared.iter().any(|known| known.name == *kind) {
            true => setup.line("apply"),
            false => setup.line(&format!("job list --kind {kind} --state pending")),
        };
        let what = format!(
            "{} waiting of kind {kind}, which no worker has declared yet",
            jobs_are(*jobs)
        );
        found.push(finding("R004", Level::Warn, what, remedy));
    }
    // Where the server says when a worker was heard, its clock says how long ago that was.
    let ahead = health.clock_ahead.unwrap_or_default();
    let now = rowlock.clock().now();
    let now = now.saturating_add(ahead).unwrap_or(now);
    let routes = setup.routes()?;
    let rows = match rowlock.routes().routes().await {
        // It may need just what is missing, which was told.
        Err(_) if !health.drift.is_empty() => Vec::new(),
        rows => rows?,
    };
    let mut workers = store.workers().await?;
    // A route is no process: whether it is drained is told with it.
    workers.retain(|each| !each.id.as_str().starts_with(WorkerId::ROUTE));
    let before = found.len();
    found.extend(workers.iter().filter_map(|each| dead(setup, each, now)));
    if found.len() - before == workers.len() {
        let sent_by_others = routes::longest_lag(&rows);
        found.extend(unattended(setup, &store.stats().await?, sent_by_others));
    }
    let derived = super::drain::derived(setup, rowlock).await?;
    found.extend(routes::look(setup, &rows, &routes, &derived));
    found.extend(redis::look(rowlock, &routes).await?);
    let drains = !rows.is_empty() || !routes.is_empty();
    found.extend(drift(setup, &declared, &store.kinds().await?));
    let schedule = rowlock.schedule();
    let (rows, switches) = (schedule.pairs().await?, schedule.switches().await?);
    let ours = setup.pairs()?;
    found.extend(undeclared(setup, &ours, &rows));
    let told = |on: &&Switch| pairs::tells(on, &rows);
    let others = switches.iter().filter(|on| !told(on));
    found.extend(others.map(|on| left_on(setup, on)));
    found.extend(pairs::look(setup, &rows, &switches, &ours));
    found.extend(cron::look(setup, rowlock).await?);
    let well = well(setup, &found, drains);
    found.extend(well);
    Ok(found)
}

fn dead(setup: &Setup, worker: &WorkerRow, now: jiff::Timestamp) -> Option<Finding> {
    let silent = show::between(worker.seen_at, now);
    if silent <= worker.lease * LEASES {
        return None;
    }
    let what = format!(
        "worker {} was heard {} ago last (its lease is {}) and holds {}: no living worker has \
         given that back",
        worker.id,
        show::span(silent),
        show::span(worker.lease),
        jobs(worker.holds),
    );
    Some(finding("R005", Level::Warn, what, setup.line("work")))
}

/// Nobody is there to run what is due. What waits for a drain is told with its route.
fn unattended(setup: &Setup, stats: &Stats, for_drains: Duration) -> Option<Finding> {
    let oldest = Duration::try_from_secs_f64(stats.total.oldest_pending_seconds?).ok()?;
    // The two were asked for one after the other.
    if oldest < UNATTENDED || oldest <= for_drains + Duration::from_secs(5) {
        return None;
    }
    let what = format!(
        "no worker is there, and the oldest job has been due for {}",
        show::span(oldest)
    );
    Some(finding("R009", Level::Warn, what, setup.line("work")))
}

fn drift(setup: &Setup, declared: &[Kind], stored: &[Kind]) -> Vec<Finding> {
    let mut found = Vec::new();
    for kind in declared {
        let row = stored.iter().find(|row| row.name == kind.name);
        let what = match row {
            Some(row) if row == kind => continue,
            Some(row) => row.differences(kind).join(", "),
            None => "has no row yet".to_owned(),
        };
        let what = format!("kind {}: {what}", kind.name);
        found.push(finding("R006", Level::Warn, what, setup.line("apply")));
    }
    found
}

/// Pairs of the configuration that are not, or not so, in the database.
fn undeclared(setup: &Setup, declared: &[Pair], stored: &[PairRow]) -> Vec<Finding> {
    let mut found = Vec::new();
    for pair in declared {
        let row = stored.iter().find(|row| row.pair.name == pair.name);
        // The store keeps a source without its password, so that is nothing to compare.
        let what = match row.map(|row| row.pair.clone()) {
            Some(mut same) => {
                same.source.clone_from(&pair.source);
                match same == *pair {
                    true => continue,
                    false => "differs from its row",
                }
            }
            None => "has no row yet",
        };
        let what = format!("pair {}: {what}", pair.name);
        found.push(finding("R006", Level::Warn, what, setup.line("apply")));
    }
    found
}

fn left_on(setup: &Setup, on: &Switch) -> Finding {
    let name = format!("{}:{}", on.target, on.name);
    let until = on.until.map(|until| format!(" until {until}"));
    let reason = on.reason.as_ref().map(|reason| format!(": {reason}"));
    let what = format!(
        "{name} is set to {}{}{}",
        on.mode,
        until.unwrap_or_default(),
        reason.unwrap_or_default()
    );
    let remedy = setup.line(&format!("switch clear {name}"));
    finding("R008", Level::Warn, what, remedy)
}

fn jobs(count: u64) -> String {
    match count {
        1 => "1 job".to_owned(),
        many => format!("{} jobs", show::count(many)),
    }
}

fn jobs_are(count: u64) -> String {
    format!("{} {}", jobs(count), if count == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_code_has_a_page_and_every_page_a_code() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/findings");
        let mut pages: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|page| page.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        pages.sort();
        let codes = super::CODES.map(|(code, _, _)| format!("{code}.md"));
        assert_eq!(pages, codes);
        for page in codes {
            let text = std::fs::read_to_string(format!("{folder}/{page}")).unwrap();
            for part in ["## What", "## Why it matters", "## Remedy"] {
                assert!(text.contains(part), "{page} has no {part}");
            }
        }
    }
}
