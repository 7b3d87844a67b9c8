//! `rowlock doctor`: what is wrong or about to go wrong, and the command that mends it.
//!
//! Here is what holds for every store; [`file`] knows SQLite, [`server`], [`horizon`], [`vacuum`]
//! and [`shortage`] PostgreSQL, [`keys`] what outlived its jobs there, [`pairs`] what is derived, [`routes`] what is drained and [`redis`] where to. [`code`] has
//! every code.

mod code;
mod cron;
mod file;
mod horizon;
mod keys;
mod pairs;
mod redis;
mod routes;
mod server;
mod shortage;
mod vacuum;

use std::time::Duration;

use anyhow::Result;
use rowlock::claim::WorkerId;
use rowlock::engine::browse::Glance;
use rowlock::engine::postgres::part_sql as part_of_server;
use rowlock::engine::sqlite::{damage, part_sql as part_of_file};
use rowlock::engine::{PairRow, Unhandled, WorkerRow};
use rowlock::settle::UNWRITTEN;
use rowlock::switch::Switch;
use rowlock::{Kind, Name, Pair, Record, Rowlock};
use serde::Serialize;

use crate::cli::{Doctor, Mend};
use crate::open::{Access, Setup, Store, quoted};
use crate::{exit, out, show};

/// A worker that wasn't heard for so many leases is dead, and nobody has noticed.
const LEASES: u32 = 3;
/// So many running jobs are looked at, the one that began first on top.
const HELD: usize = 1_000;
/// A job may be due for so long before somebody asks where the workers are.
const UNATTENDED: Duration = Duration::from_secs(60);

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

pub async fn run(setup: &Setup, how: &Doctor, json: bool) -> Result<u8> {
    if let Some(Mend::Keys) = how.mend {
        return keys::mend(setup, how.yes, json).await;
    }
    let found = findings(setup, Depth::All).await?;
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

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// What takes seconds: for a screen that looks again and again.
    Quick,
    /// The plans of the pairs' queries as well: for pages, which share an answer.
    Plans,
    /// And the whole of a file.
    All,
}

/// Everything that was looked at, by code.
pub async fn findings(setup: &Setup, depth: Depth) -> Result<Vec<Finding>> {
    let other = match &setup.store {
        Store::Sqlite(address) => file::schema(setup, address)?,
        Store::Postgres(address) => server::schema(setup, address).await?,
    };
    let mut found = match other {
        // The tables of another version can't be asked.
        Some(other) => vec![other],
        None => {
            let (rowlock, _) = setup.open_quietly(Access::Read).await?;
            look(setup, &rowlock, depth).await?
        }
    };
    found.sort_by_key(|each| each.code);
    Ok(found)
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
        Some(remedy) => format!("{first}             remedy: {}\n", show::text(remedy)),
        None => first,
    }
}

async fn look(setup: &Setup, rowlock: &Rowlock, depth: Depth) -> Result<Vec<Finding>> {
    let store = rowlock.operate();
    if depth == Depth::All
        && let Store::Sqlite(address) = &setup.store
    {
        let damage = damage(address)?;
        if !damage.is_empty() {
            // Answers from such a file mean nothing.
            return Ok(vec![file::damaged(address, &damage)]);
        }
    }
    let health = store.health().await?;
    let mut found = match &setup.store {
        Store::Sqlite(address) => file::look(address, &health),
        Store::Postgres(address) => {
            let mut found = server::look(setup, address, &health).await?;
            found.extend(horizon::look(setup, rowlock).await?);
            let pinned = found.iter().any(|each| each.code == "R030");
            found.extend(vacuum::look(address, &health, pinned));
            found.extend(health.shortages.iter().map(shortage::told));
            // It looks at every key; and it may need just what is missing, which is told.
            if depth == Depth::All && health.drift.is_empty() {
                found.extend(keys::look(setup, address).await?);
            }
            found
        }
    };
    for difference in &health.drift {
        found.push(finding(
            "R002",
            Level::Error,
            difference,
            made_anew(setup, difference),
        ));
    }
    let declared = setup.config.kinds()?;
    for (kind, jobs) in &health.unknown_kinds {
        let remedy = match declared.iter().any(|known| known.name == *kind) {
            true => setup.line("apply"),
            // What comes after a # is for people: a shell leaves it out.
            false => format!(
                "{}  # or start the worker that knows it",
                setup.line(&format!("job cancel --kind {kind} --state pending"))
            ),
        };
        let what = format!(
            "{} waiting of kind {kind}, which no worker has declared yet",
            jobs_are(jobs.n, jobs.more)
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
    let workers = match rowlock.browse().hands().await {
        Err(_) if !health.drift.is_empty() => None,
        workers => Some(workers?),
    };
    // A route is no process: whether it is drained is told with it.
    let is_process = |each: &&WorkerRow| !each.id.as_str().starts_with(WorkerId::ROUTE);
    let processes = || workers.iter().flatten().filter(is_process);
    let before = found.len();
    found.extend(processes().filter_map(|each| dead(setup, each, now)));
    let nobody_lives = found.len() - before == processes().count();
    match workers.as_ref().map(|_| nobody_lives) {
        // Who can't be seen may be there.
        None => {}
        Some(true) => {
            let sent_by_others = routes::longest_lag(&rows);
            let glance = match rowlock.browse().glance().await {
                Err(_) if !health.drift.is_empty() => Glance::new(),
                glance => glance?,
            };
            found.extend(unattended(setup, &glance, sent_by_others));
        }
        Some(false) => {
            let known = |kind: &Name| declared.iter().any(|each| each.name == *kind);
            let all = health.unhandled.iter();
            found.extend(all.map(|each| unhandled(setup, each, known(&each.kind))));
        }
    }
    match rowlock.browse().in_hand(HELD).await {
        Err(_) if !health.drift.is_empty() => {}
        jobs => found.extend(refused(setup, &jobs?)),
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
    if depth != Depth::Quick {
        found.extend(pairs::plans(setup, rowlock, &rows).await?);
    }
    found.extend(cron::look(setup, rowlock).await?);
    let mut well = code::well(setup, &found, drains);
    // What nobody has looked at is not well.
    well.retain(|each| match each.code {
        "R001" => depth == Depth::All,
        "R036" => depth == Depth::All && health.drift.is_empty(),
        "R033" => depth != Depth::Quick,
        "R004" | "R034" => health.drift.is_empty() && !health.unseen,
        // These need what may be missing.
        "R005" | "R009" | "R025" | "R026" | "R038" => health.drift.is_empty(),
        _ => true,
    });
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
        jobs(worker.holds, worker.more),
    );
    Some(finding("R005", Level::Warn, what, setup.line("work")))
}

/// Jobs whose verdicts can't be written: their last error says so, of the attempt that they are in.
fn refused(setup: &Setup, running: &[Record]) -> Option<Finding> {
    let refused = |job: &&Record| {
        let last = job.errors.last();
        last.is_some_and(|error| {
            error.attempt == job.attempt && error.message.starts_with(UNWRITTEN)
        })
    };
    let mut held = running.iter().filter(refused);
    let first = held.next()?;
    let more = match held.count() {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    let why = first.errors.last().map_or("", |error| &error.message);
    let what = format!("job {}{more} is held by its worker: {why}", first.id);
    let remedy = setup.line(&format!("job show {}", first.id));
    Some(finding("R038", Level::Warn, what, remedy))
}

/// Nobody is there to run what is due. What waits for a drain is told with its route.
fn unattended(setup: &Setup, queues: &Glance, for_drains: Duration) -> Option<Finding> {
    let waits = queues
        .values()
        .filter_map(|queue| queue.counts.oldest_pending_seconds);
    let oldest = Duration::try_from_secs_f64(waits.fold(0.0, f64::max)).ok()?;
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

/// Jobs are due, workers are there, and none of them takes one.
fn unhandled(setup: &Setup, each: &Unhandled, known: bool) -> Finding {
    let what = format!(
        "{} of kind {} due, for {} by now, and none runs though workers do: they don't handle it, or \
         something else comes first",
        jobs_are(each.jobs.n, each.jobs.more),
        each.kind,
        show::span(each.oldest)
    );
    let remedy = match known {
        true => setup.line("work"),
        false => format!(
            "{}  # or start the worker that handles it",
            setup.line(&format!("job list --kind {} --state pending", each.kind))
        ),
    };
    finding("R034", Level::Warn, what, remedy)
}

/// The command that makes an index or a function again, from the words of a difference.
fn made_anew(setup: &Setup, difference: &str) -> String {
    let part = difference.strip_prefix("the ").unwrap_or(difference);
    let part = part
        .strip_suffix(" is missing")
        .or(part.strip_suffix(" was changed"));
    let part = part.unwrap_or_default();
    let (known, into) = match &setup.store {
        Store::Sqlite(address) => (
            part_of_file(part).is_ok_and(|text| text.is_some()),
            format!("sqlite3 {}", quoted(&show::path(&address.path))),
        ),
        Store::Postgres(address) => (
            part_of_server(&address.schema, part).is_some(),
            "psql -1".to_owned(),
        ),
    };
    match known {
        true => {
            let print = setup.line(&format!("migrate sql --part {}", quoted(part)));
            format!("{print} | {into}")
        }
        false => setup.line("migrate sql"),
    }
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

/// `1 job`, `12 jobs`, and `1,000+ jobs` where there may be more.
fn jobs(count: u64, more: bool) -> String {
    match (count, more) {
        (1, false) => "1 job".to_owned(),
        (many, false) => format!("{} jobs", show::count(many)),
        (many, true) => format!("{}+ jobs", show::count(many)),
    }
}

fn jobs_are(count: u64, more: bool) -> String {
    let are = if count == 1 && !more { "is" } else { "are" };
    format!("{} {are}", jobs(count, more))
}
