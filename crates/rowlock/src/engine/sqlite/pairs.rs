//! Pairs as they are declared, and how they are doing.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value as Json;

use super::error::map;
use super::health::all;
use super::settle::execute;
use super::stage::json;
use super::statements::sql;
use super::{held_back, operate, posts, row, switches};
use crate::engine::{Applied, PairRow, once};
use crate::error::{Error, Result};
use crate::job::{Name, spelled};
use crate::log;
use crate::reconcile::Pair;
use crate::switch::Target;

pub(super) fn declare(
    connection: &Connection,
    pairs: &[Pair],
    change: bool,
    now: Timestamp,
) -> Result<Vec<Applied>> {
    once("pair", pairs.iter().map(|pair| &pair.name))?;
    pairs
        .iter()
        .map(|pair| declare_one(connection, pair, change, now))
        .collect()
}

fn declare_one(
    connection: &Connection,
    pair: &Pair,
    change: bool,
    now: Timestamp,
) -> Result<Applied> {
    pair.check()?;
    let kinds = operate::kinds(connection)?;
    pair.fits(kinds.iter().find(|kind| kind.name == pair.kind))?;
    let declared = spelled(&pair.stored());
    let applied = Applied::over(stored(connection, pair)?.as_ref(), &declared);
    match applied {
        Applied::Unchanged => return Ok(applied),
        Applied::Changed(_) if !change => return Ok(applied),
        _ => {}
    }
    let values = params![
        pair.name.as_str(),
        pair.kind.as_str(),
        declared.to_string(),
        row::ms(pair.hold_back),
        now.as_millisecond()
    ];
    execute(connection, sql!("pair_write"), values)?;
    posts::set(connection, &pair.name, pair.shards)?;
    if let Applied::Changed(_) = applied {
        let from_start = applied.touches(&["query", "key", "shards"]);
        let values = params![pair.name.as_str(), from_start];
        execute(connection, sql!("post_restart"), values)?;
    }
    Ok(applied)
}

/// The declaration that is stored.
fn stored(connection: &Connection, pair: &Pair) -> Result<Option<Json>> {
    let text: Option<String> = sql!("pair_declared")
        .on(connection)?
        .query_row([pair.name.as_str()], |row| row.get(0))
        .optional()
        .map_err(|why| map(why, "pair_declared"))?;
    Ok(text.map(|text| serde_json::from_str(&text).unwrap_or_default()))
}

pub(super) fn no_kind(kind: &Name) -> Error {
    Error::NotFound(format!(
        "a row of kind {kind} (write it with `rowlock apply`)"
    ))
}

pub(super) fn pairs(connection: &Connection, now: Timestamp) -> Result<Vec<PairRow>> {
    let rows = all(connection, sql!("pairs"), [now.as_millisecond()], |row| {
        let name = row::name(row, 0)?;
        // One that can't be read stops no other.
        let read = pair_row(row, &name, now)
            .inspect_err(|why| log::error!(pair = %name, %why, "left out a pair"));
        Ok(read.ok())
    })?;
    Ok(rows.into_iter().flatten().collect())
}

fn pair_row(row: &Row<'_>, name: &Name, now: Timestamp) -> Result<PairRow> {
    let declared = row::text(row, 1).map_err(|why| map(why, "pairs"))?;
    let pair: Pair = serde_json::from_str(&declared.unwrap_or_default()).map_err(|why| {
        Error::invalid(format!(
            "the declaration of pair {name} can't be read ({why}): declare it again with \
             `rowlock apply`"
        ))
    })?;
    let read = || {
        let last_success = row::time(row, 9)?;
        let since = last_success.or(row::time(row, 2)?).unwrap_or(now);
        let uncovered = row::text(row, 4)?.unwrap_or_default();
        Ok(PairRow {
            last_success,
            age: now.duration_since(since).try_into().unwrap_or_default(),
            duration: row::span(row, 10)?.unwrap_or_default(),
            found: row::count(row, 11)?,
            enqueued: row::count(row, 12)?,
            lost_enqueues: row::count(row, 13)?,
            ineffective: row::count(row, 3)?,
            held_back: row::count(row, 17)?,
            ticks: row::count(row, 14)?,
            error: row::text(row, 15)?,
            leader: row::text(row, 16)?,
            uncovered: serde_json::from_str(&uncovered).unwrap_or_default(),
            switch: switches::switch(row, Target::Pair, name.clone(), 5, now)?,
            pair,
        })
    };
    read().map_err(|why| map(why, "pairs"))
}

pub(super) fn forget(connection: &Connection, name: &Name) -> Result<()> {
    if !execute(connection, sql!("pair_forget"), [name.as_str()])? {
        return Err(not_found(name));
    }
    posts::drop(connection, name, 0)?;
    held_back::lift(connection, name, None).map(|_| ())
}

pub(super) fn uncovered(
    connection: &Connection,
    name: &Name,
    states: &[(String, u64)],
) -> Result<()> {
    let values = params![name.as_str(), json(&states)?];
    match execute(connection, sql!("pair_uncovered"), values)? {
        true => Ok(()),
        false => Err(not_found(name)),
    }
}

/// `NotFound` for a pair that isn't declared.
pub(super) fn must_exist(connection: &Connection, name: &Name) -> Result<()> {
    let mut declared = sql!("pair_declared").on(connection)?;
    match declared.exists([name.as_str()]) {
        Ok(true) => Ok(()),
        Ok(false) => Err(not_found(name)),
        Err(why) => Err(map(why, "pair_declared")),
    }
}

pub(super) fn not_found(name: &Name) -> Error {
    Error::NotFound(format!("pair {name}"))
}
