//! Lanes of the ready index: a queue, a kind, suspect or not, a priority. They are walked from seek to
//! seek, so that what lies in them costs nothing.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Params, params};

use super::error::map;
use super::health::all;
use super::row;
use super::statements::{Sql, sql};
use crate::error::Result;
use crate::job::Name;

/// The queues with pending jobs.
pub(super) fn queues(connection: &Connection) -> Result<Vec<Name>> {
    walk(|after| one(connection, sql!("claim_queues"), [after]))
}

/// The kinds with pending jobs in a queue.
pub(super) fn kinds(connection: &Connection, queue: &Name) -> Result<Vec<Name>> {
    walk(|after| {
        let values = [queue.as_str(), after];
        one(connection, sql!("claim_kinds"), values)
    })
}

fn walk(mut next: impl FnMut(&str) -> Result<Option<String>>) -> Result<Vec<Name>> {
    let mut names = Vec::new();
    let mut after = String::new();
    while let Some(found) = next(&after)? {
        after.clone_from(&found);
        names.extend(Name::new(found));
    }
    Ok(names)
}

fn one(connection: &Connection, sql: Sql, values: impl Params) -> Result<Option<String>> {
    let found = sql
        .on(connection)?
        .query_row(values, |row| row::text(row, 0))
        .optional();
    found.map(Option::flatten).map_err(|why| map(why, sql.name))
}

/// The best lane of a queue and kind below a priority, and when its first job is due.
pub(super) fn head(
    connection: &Connection,
    queue: &Name,
    kind: &Name,
    suspect: bool,
    below: i64,
) -> Result<Option<(i64, Timestamp)>> {
    sql!("claim_lane")
        .on(connection)?
        .query_row(
            params![queue.as_str(), kind.as_str(), suspect, below],
            |row| Ok((row::number(row, 0)?, row::time(row, 1)?.unwrap_or_default())),
        )
        .optional()
        .map_err(|why| map(why, "claim_lane"))
}

/// The kinds and queues that a switch keeps from being claimed.
#[derive(Default)]
pub(super) struct Stopped {
    pub(super) kinds: BTreeSet<String>,
    pub(super) queues: BTreeSet<String>,
}

impl Stopped {
    pub(super) fn read(connection: &Connection, now: Timestamp) -> Result<Self> {
        let now = now.as_millisecond();
        let mut stopped = Self::default();
        for (of_kind, name) in all(connection, sql!("claim_stopped"), [now], |row| {
            Ok((is_kind(row)?, row::text(row, 1)?.unwrap_or_default()))
        })? {
            match of_kind {
                true => stopped.kinds.insert(name),
                false => stopped.queues.insert(name),
            };
        }
        Ok(stopped)
    }
}

/// The kinds and queues that go by a route, and by which.
#[derive(Default)]
pub(super) struct Routed {
    pub(super) kinds: BTreeMap<Name, String>,
    pub(super) queues: BTreeMap<Name, String>,
}

impl Routed {
    pub(super) fn read(connection: &Connection) -> Result<Self> {
        let mut routed = Self::default();
        for (of_kind, name, route) in all(connection, sql!("claim_routed"), [], |row| {
            let route = row::text(row, 2)?.unwrap_or_default();
            Ok((is_kind(row)?, row::name(row, 1)?, route))
        })? {
            match of_kind {
                true => routed.kinds.insert(name, route),
                false => routed.queues.insert(name, route),
            };
        }
        Ok(routed)
    }

    /// The route of a queue's jobs, if they go by one.
    pub(super) fn of_queue(&self, queue: &Name) -> Option<&str> {
        self.queues.get(queue).map(String::as_str)
    }

    /// The route of a job: its kind's, otherwise its queue's, if it has one.
    pub(super) fn of(&self, queue: &Name, kind: &Name) -> Option<&str> {
        let of_kind = self.kinds.get(kind).map(String::as_str);
        of_kind.or_else(|| self.of_queue(queue))
    }

    /// The kinds that go by a route of their own.
    pub(super) fn kinds_of(&self, route: &str) -> Vec<Name> {
        named(&self.kinds, route)
    }

    /// The queues that go by a route.
    pub(super) fn queues_of(&self, route: &str) -> Vec<Name> {
        named(&self.queues, route)
    }
}

fn named(routes: &BTreeMap<Name, String>, route: &str) -> Vec<Name> {
    let going = routes.iter().filter(|(_, of)| *of == route);
    going.map(|(name, _)| name.clone()).collect()
}

fn is_kind(row: &rusqlite::Row<'_>) -> rusqlite::Result<bool> {
    Ok(row::text(row, 0)?.as_deref() == Some("kind"))
}
