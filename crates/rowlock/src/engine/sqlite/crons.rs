//! Crons, and the jobs of their ticks.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::error::map;
use super::health::all;
use super::settle::execute;
use super::stage;
use super::statements::sql;
use super::{posts, row};
use crate::engine::{Applied, CronRow, Duty, Fire, once};
use crate::error::{Error, Result};
use crate::job::{Cron, JobId, Name, spelled};
use crate::log;
use crate::stage::Enqueued;

/// How long ticks are remembered.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How many are forgotten at once.
const FORGOTTEN: i64 = 1_000;

pub(super) fn declare(
    connection: &Connection,
    crons: &[(Cron, Timestamp)],
    change: bool,
) -> Result<Vec<Applied>> {
    once("cron", crons.iter().map(|(cron, _)| &cron.name))?;
    let mut applied = Vec::with_capacity(crons.len());
    for (cron, next_at) in crons {
        cron.check()?;
        applied.push(declare_one(connection, cron, *next_at, change)?);
    }
    if !crons.is_empty() {
        posts::set_cron(connection, true)?;
    }
    Ok(applied)
}

fn declare_one(
    connection: &Connection,
    cron: &Cron,
    next_at: Timestamp,
    change: bool,
) -> Result<Applied> {
    let declared = spelled(cron);
    let before: Option<String> = sql!("cron_declared")
        .on(connection)?
        .query_row([cron.name.as_str()], |row| row.get(0))
        .optional()
        .map_err(|why| map(why, "cron_declared"))?;
    let before = before.map(|text| serde_json::from_str(&text).unwrap_or_default());
    let applied = Applied::over(before.as_ref(), &declared);
    let added = applied == Applied::Added;
    if added || (change && applied != Applied::Unchanged) {
        let another_calendar = added || applied.touches(&["cron", "tz"]);
        let (declared, next_at) = (declared.to_string(), next_at.as_millisecond());
        let values = params![cron.name.as_str(), declared, next_at, another_calendar];
        execute(connection, sql!("cron_write"), values)?;
    }
    Ok(applied)
}

pub(super) fn crons(connection: &Connection) -> Result<Vec<CronRow>> {
    let rows = all(connection, sql!("crons"), [], |row| {
        let name = row::name(row, 0)?;
        // One that can't be read stops no other.
        let read = cron_row(row, &name)
            .inspect_err(|why| log::error!(cron = %name, %why, "left out a cron"));
        Ok(read.ok())
    })?;
    Ok(rows.into_iter().flatten().collect())
}

fn cron_row(row: &Row<'_>, name: &Name) -> Result<CronRow> {
    let declared = row::text(row, 1).map_err(|why| map(why, "crons"))?;
    let cron: Cron = serde_json::from_str(&declared.unwrap_or_default()).map_err(|why| {
        Error::invalid(format!(
            "the declaration of cron {name} can't be read ({why}): declare it again with \
             `rowlock apply`"
        ))
    })?;
    let read = || {
        let job = row.get::<_, Option<i64>>(5)?.map(JobId);
        Ok(CronRow {
            cron,
            paused: row.get(2)?,
            next_at: row::time(row, 3)?.unwrap_or_default(),
            last: row::time(row, 4)?.map(|tick| (tick, job)),
        })
    };
    read().map_err(|why| map(why, "crons"))
}

pub(super) fn pause(
    connection: &Connection,
    name: &Name,
    resume_at: Option<Timestamp>,
) -> Result<()> {
    let values = params![name.as_str(), resume_at.map(Timestamp::as_millisecond)];
    match execute(connection, sql!("cron_pause"), values)? {
        true => Ok(()),
        false => Err(not_found(name)),
    }
}

pub(super) fn forget(connection: &Connection, name: &Name) -> Result<()> {
    if !execute(connection, sql!("cron_forget"), [name.as_str()])? {
        return Err(not_found(name));
    }
    execute(connection, sql!("cron_forget_ticks"), [name.as_str()])?;
    let any: bool = sql!("cron_any")
        .on(connection)?
        .query_row([], |row| row.get(0))
        .map_err(|why| map(why, "cron_any"))?;
    posts::set_cron(connection, any)
}

fn not_found(name: &Name) -> Error {
    Error::NotFound(format!("cron {name}"))
}

pub(super) fn fire(
    connection: &Connection,
    fire: &Fire,
    now: Timestamp,
) -> Result<Vec<(Timestamp, Enqueued)>> {
    let name = fire.cron.name.as_str();
    if let Some(token) = fire.token {
        posts::check(connection, Some(&(Duty::Cron, token)))?;
        let (expected, next_at) = (
            fire.expected.as_millisecond(),
            fire.next_at.as_millisecond(),
        );
        let values = params![name, expected, next_at];
        if !execute(connection, sql!("cron_move"), values)? {
            return Ok(Vec::new());
        }
    }
    let declared = sql!("cron_declared").on(connection)?.exists([name]);
    if !declared.map_err(|why| map(why, "cron_declared"))? {
        return Ok(Vec::new());
    }
    let mut made = Vec::new();
    for tick in &fire.ticks {
        let values = params![name, tick.as_millisecond()];
        if !execute(connection, sql!("cron_tick"), values)? {
            continue;
        }
        let job = fire.cron.job(*tick)?;
        let staged = stage::stage(connection, &[job], now).map_err(Error::alone)?;
        for enqueued in staged {
            let id = enqueued.id.map(|id| id.0);
            let values = params![name, tick.as_millisecond(), id];
            execute(connection, sql!("cron_tick_job"), values)?;
            made.push((*tick, enqueued));
        }
    }
    let old = now.saturating_sub(REMEMBERED).unwrap_or(Timestamp::MIN);
    let values = params![name, old.as_millisecond(), FORGOTTEN];
    execute(connection, sql!("cron_prune"), values)?;
    Ok(made)
}
