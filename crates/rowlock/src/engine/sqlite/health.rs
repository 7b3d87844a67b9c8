//! A checkup: the schema in the file, the log beside it, and what was left lying about; and the file itself.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, Params, Row};

use super::error::map;
use super::readers::readers;
use super::statements::{Sql, sql};
use super::waiting::{Waiting, waiting};
use super::{migrate, row};
use crate::engine::Health;
use crate::error::Result;

pub(super) fn health(connection: &Connection, path: &Path, now: Timestamp) -> Result<Health> {
    let log_backlog = log_backlog(connection)?;
    let drift = drift(connection, now)?;
    let waiting = match waiting(connection, now) {
        // It may need just what is missing.
        Err(_) if !drift.is_empty() => Waiting::default(),
        waiting => waiting?,
    };
    Ok(Health {
        drift,
        log_backlog,
        readers: match log_backlog {
            0 => Vec::new(),
            _ => readers(path),
        },
        unknown_kinds: waiting.unknown.into_iter().collect(),
        unhandled: waiting.unhandled,
        ..Health::default()
    })
}

pub(super) fn damage(connection: &Connection) -> Result<Vec<String>> {
    let said = all(connection, sql!("health_damage"), [], |row| {
        Ok(row::text(row, 0)?.unwrap_or_default())
    })?;
    Ok(said.into_iter().filter(|line| line != "ok").collect())
}

/// Compares with a schema that is made on the spot.
pub(super) fn drift(connection: &Connection, now: Timestamp) -> Result<Vec<String>> {
    let mut fresh = Connection::open_in_memory().map_err(|why| map(why, "comparing schemas"))?;
    migrate::up(&mut fresh, now)?;
    let stored = schema(connection)?;
    let mut differences = Vec::new();
    for ((of, name), text) in schema(&fresh)? {
        match stored.get(&(of.clone(), name.clone())) {
            None => differences.push(format!("the {of} {name} is missing")),
            Some(other) if *other != text => {
                differences.push(format!("the {of} {name} was changed"));
            }
            Some(_) => {}
        }
    }
    Ok(differences)
}

/// The statements that make `index NAME` and the like anew; nothing for a table, which has rows, and for names
/// that we don't know.
///
/// # Errors
/// When there is no memory to make a schema in.
pub fn part_sql(part: &str) -> Result<Option<String>> {
    let mut fresh = Connection::open_in_memory().map_err(|why| map(why, "making a schema"))?;
    migrate::up(&mut fresh, Timestamp::UNIX_EPOCH)?;
    let Some((of, name)) = part.split_once(' ').filter(|(of, _)| *of != "table") else {
        return Ok(None);
    };
    let text = schema(&fresh)?.remove(&(of.to_owned(), name.to_owned()));
    Ok(text.map(|text| format!("DROP {} IF EXISTS {name};\n{text};\n", of.to_uppercase())))
}

fn schema(connection: &Connection) -> Result<BTreeMap<(String, String), String>> {
    let rows = all(connection, sql!("health_schema"), [], |row| {
        Ok(((row.get(0)?, row.get(1)?), row.get(2)?))
    })?;
    Ok(rows.into_iter().collect())
}

/// Copies what can be copied, and counts what can't.
fn log_backlog(connection: &Connection) -> Result<u64> {
    let (log, copied): (i64, i64) = sql!("health_log")
        .on(connection)?
        .query_row([], |row| Ok((row.get(1)?, row.get(2)?)))
        .map_err(|why| map(why, "health_log"))?;
    Ok(u64::try_from(log - copied).unwrap_or(0))
}

pub(super) fn all<T>(
    connection: &Connection,
    sql: Sql,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>> {
    let mut statement = sql.on(connection)?;
    let rows = statement
        .query_map(params, read)
        .map_err(|why| map(why, sql.name))?;
    rows.collect::<rusqlite::Result<_>>()
        .map_err(|why| map(why, sql.name))
}
