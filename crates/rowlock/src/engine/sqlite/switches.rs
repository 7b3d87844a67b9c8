//! Switches of kinds, queues and pairs.

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::health::all;
use super::settle::execute;
use super::statements::sql;
use super::{pairs, row};
use crate::error::{Error, Result};
use crate::job::Name;
use crate::switch::{Setting, Switch, Target};

pub(super) fn set(
    connection: &Connection,
    target: Target,
    name: &Name,
    setting: &Setting,
) -> Result<()> {
    setting.check(target)?;
    let statement = match target {
        Target::Kind => sql!("switch_kind"),
        Target::Queue => sql!("switch_queue"),
        Target::Pair => sql!("switch_pair"),
    };
    let until = setting.until.map(Timestamp::as_millisecond);
    let mode = setting.mode.as_str();
    let values = params![name.as_str(), mode, setting.reason, setting.by, until];
    match execute(connection, statement, values)? {
        true => Ok(()),
        false => Err(pairs::not_found(name)),
    }
}

pub(super) fn clear(
    connection: &Connection,
    target: Target,
    name: &Name,
    now: Timestamp,
) -> Result<()> {
    let statement = match target {
        Target::Kind => sql!("switch_kind_clear"),
        Target::Queue => sql!("switch_queue_clear"),
        Target::Pair => sql!("switch_pair_clear"),
    };
    let values = params![name.as_str(), now.as_millisecond()];
    match execute(connection, statement, values)? {
        true => Ok(()),
        false => Err(Error::NotFound(format!("a switch of {target} {name}"))),
    }
}

pub(super) fn switches(connection: &Connection, now: Timestamp) -> Result<Vec<Switch>> {
    let rows = all(
        connection,
        sql!("switches"),
        [now.as_millisecond()],
        |row| {
            let target = match row::text(row, 0)?.as_deref() {
                Some("kind") => Target::Kind,
                Some("queue") => Target::Queue,
                _ => Target::Pair,
            };
            let switch = switch(row, target, row::name(row, 1)?, 2, now)?;
            let rejected = row::count(row, 6)?;
            Ok(switch.map(|switch| Switch { rejected, ..switch }))
        },
    )?;
    let mut found: Vec<Switch> = rows.into_iter().flatten().collect();
    found.sort_by(|a, b| (a.target, &a.name).cmp(&(b.target, &b.name)));
    Ok(found)
}

/// The switch whose mode, reason, author and end are the columns from `at` on, if it is on.
pub(super) fn switch(
    row: &Row<'_>,
    target: Target,
    name: Name,
    at: usize,
    now: Timestamp,
) -> rusqlite::Result<Option<Switch>> {
    let Some(mode) = row::text(row, at)?.and_then(|mode| mode.parse().ok()) else {
        return Ok(None);
    };
    let until = row::time(row, at + 3)?;
    Ok(until.is_none_or(|until| until > now).then_some(Switch {
        target,
        name,
        mode,
        reason: row::text(row, at + 1)?,
        by: row::text(row, at + 2)?,
        until,
        rejected: 0,
    }))
}
