//! Reads the rows of a pair's query: its columns, a batch of them by key, and single ones.

use std::fmt::Write;

use rusqlite::types::{Value as Stored, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};

use super::error::map_query;
use super::statements::{Sql, sql};
use super::{plain_select, query};
use crate::engine::{Column, Line, Lines};
use crate::error::{Error, Result};
use crate::job::{Name, Payload};
use crate::reconcile::Pair;

/// How much of payloads is read at once. The rest of a batch that has more comes with the next one.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// A batch of rows; those with a live job and those that are held back are only counted.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) lines: Lines,
    pub(super) live: u64,
    pub(super) held_back: u64,
}

/// Which rows.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) shard: u16,
    pub(super) cursor: Option<String>,
    pub(super) limit: usize,
}

/// The query's columns, checked.
pub(super) fn columns(connection: &Connection, pair: &Pair) -> Result<Vec<Column>> {
    sql!("derive_fresh")
        .on(connection)?
        .query_row([], |_| Ok(()))
        .map_err(map_query)?;
    let text = query::fill(sql!("derive_columns"), &[("query", &pair.query)]);
    let statement = connection.prepare(&text).map_err(map_query)?;
    if statement.parameter_count() > 0 {
        return Err(Error::invalid(
            "its query has a parameter, which nobody has a value for: write the value",
        ));
    }
    let columns: Vec<Column> = statement
        .columns()
        .into_iter()
        .map(|column| Column {
            name: column.name().to_owned(),
            of: column.decl_type().unwrap_or_default().to_owned(),
        })
        .collect();
    for key in &pair.key {
        let found = columns.iter().find(|column| column.name == key.as_str());
        let Some(found) = found else {
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            return Err(Error::invalid(format!(
                "its query has no column {key}, which is in the key: it has {}",
                names.join(", ")
            )));
        };
        if found.of.eq_ignore_ascii_case("BLOB") {
            return Err(Error::invalid(format!(
                "the column {key} is a BLOB, which can't be in a key: write hex({key}) AS {key}"
            )));
        }
    }
    Ok(columns)
}

/// The rows after the cursor, in the file that the jobs are in.
pub(super) fn here(connection: &Connection, pair: &Pair, part: &Part, now: i64) -> Result<Found> {
    let values = [
        Stored::Text(pair.kind.as_str().to_owned()),
        Stored::Text(pair.name.as_str().to_owned()),
        Stored::Integer(now),
    ];
    read(connection, pair, part, sql!("derive"), values.into())
}

/// The rows after the cursor, in any file.
pub(super) fn elsewhere(connection: &Connection, pair: &Pair, part: &Part) -> Result<Found> {
    read(connection, pair, part, sql!("derive_elsewhere"), Vec::new())
}

fn read(
    connection: &Connection,
    pair: &Pair,
    part: &Part,
    template: Sql,
    mut own: Vec<Stored>,
) -> Result<Found> {
    let limit = i64::try_from(part.limit).unwrap_or(i64::MAX);
    // The one row more tells whether others come after these.
    own.insert(0, Stored::Integer(limit.saturating_add(1)));
    let (after, cursor) = query::after(&pair.key, part.cursor.as_deref(), own.len() + 1)?;
    own.extend(cursor);
    let text = text(connection, pair, template, &after)?;
    let mut statement = connection.prepare_cached(&text).map_err(map_query)?;
    let mut rows = statement.query(params_from_iter(own)).map_err(map_query)?;
    let mut reading = Reading::new(pair, part);
    while let Some(row) = rows.next().map_err(map_query)? {
        if !reading.take(row)? {
            break;
        }
    }
    Ok(reading.end())
}

fn text(connection: &Connection, pair: &Pair, template: Sql, after: &str) -> Result<String> {
    let columns = columns(connection, pair)?;
    let names: Vec<String> = columns.into_iter().map(|column| column.name).collect();
    Ok(query::fill(
        template,
        &[
            ("pieces", &query::pieces(&pair.key)),
            ("key", &query::key(&pair.key)),
            ("fields", &query::fields(&names)),
            ("types", &query::types(&names)),
            ("query", &pair.query),
            ("after", after),
            ("order", &order(pair, after)),
        ],
    ))
}

/// The key's columns. What is due by now is few rows of many: the first batch looks for them by an
/// index on their time and sorts them, where SQLite would rather walk the table by key. Those after it
/// walk, so that a long list isn't sorted for each.
fn order(pair: &Pair, after: &str) -> String {
    match after.is_empty() && plain_select::moves(&pair.query) {
        true => {
            let unsorted = |name: &Name| format!("+{}", query::column(name.as_str()));
            pair.key.iter().map(unsorted).collect::<Vec<_>>().join(", ")
        }
        false => query::columns(&pair.key),
    }
}

/// The statement that a tick begins with.
pub(super) fn derive_text(connection: &Connection, pair: &Pair) -> Result<String> {
    text(connection, pair, sql!("derive_elsewhere"), "")
}

struct Reading<'a> {
    part: &'a Part,
    width: usize,
    shards: u64,
    found: Found,
    seen: usize,
    bytes: usize,
    key: String,
    last: String,
}

impl<'a> Reading<'a> {
    fn new(pair: &'a Pair, part: &'a Part) -> Self {
        Self {
            part,
            width: pair.key.len(),
            shards: u64::from(pair.shards.max(1)),
            found: Found::default(),
            seen: 0,
            bytes: 0,
            key: String::new(),
            last: String::new(),
        }
    }

    /// Whether another row is wanted.
    fn take(&mut self, row: &Row<'_>) -> Result<bool> {
        let whole = key(row, self.width, &mut self.key)?;
        let repeated = whole && self.seen > 0 && self.key == self.last;
        if self.seen >= self.part.limit || self.bytes > MOST_BYTES {
            self.found.lines.more = true;
            // The next batch begins after this key, so it is told here or never.
            self.found.lines.repeated += u64::from(repeated && self.is_ours());
            return Ok(false);
        }
        self.seen += 1;
        std::mem::swap(&mut self.key, &mut self.last);
        if !self.is_ours() {
            return Ok(true);
        }
        self.found.lines.found += 1;
        if !whole {
            self.found.lines.without_key += 1;
        } else if repeated {
            self.found.lines.repeated += 1;
        } else {
            self.keep(row)?;
        }
        Ok(true)
    }

    fn keep(&mut self, row: &Row<'_>) -> Result<()> {
        match row.get_ref(self.width).map_err(map_query)? {
            ValueRef::Integer(1) => self.found.live += 1,
            ValueRef::Integer(2) => self.found.held_back += 1,
            ValueRef::Integer(_) => self.leave_out(&Error::invalid(
                "JSON cannot hold BLOB values: write hex(column) AS column in the query",
            )),
            ValueRef::Text(payload) => match checked(payload) {
                Ok(payload) => {
                    self.bytes += payload.len();
                    let key = self.last.clone();
                    self.found.lines.lines.push(Line { key, payload });
                }
                Err(why) => self.leave_out(&why),
            },
            _ => return Err(Error::Bug("a row has no payload".to_owned())),
        }
        Ok(())
    }

    fn leave_out(&mut self, why: &Error) {
        let why = unfit(&self.last, why);
        self.found.lines.broken.get_or_insert(why);
    }

    /// By the key that was read last, whichever of the two it is in: both are equal if it matters.
    fn is_ours(&self) -> bool {
        self.shards == 1 || shard(&self.last, self.shards) == u64::from(self.part.shard)
    }

    fn end(mut self) -> Found {
        self.found.lines.cursor = match self.seen {
            0 => self.part.cursor.clone(),
            _ => Some(self.last),
        };
        self.found
    }
}

/// Which shard has a key (FNV-1a: the same in every process and version).
fn shard(key: &str, shards: u64) -> u64 {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // Keys that differ in their last digits only must not end up side by side.
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed >> 33) % shards
}

/// Writes the key as jobs have it; whether no part of it is missing.
fn key(row: &Row<'_>, width: usize, into: &mut String) -> Result<bool> {
    into.clear();
    let mut whole = true;
    for at in 0..width {
        into.push(if at == 0 { '[' } else { ',' });
        match row.get_ref(at).map_err(map_query)? {
            ValueRef::Integer(n) => {
                // Writing to a string can't fail.
                let _ = write!(into, "{n}");
            }
            ValueRef::Text(json) => into.push_str(&String::from_utf8_lossy(json)),
            _ => {
                whole = false;
                into.push_str("null");
            }
        }
    }
    into.push(']');
    Ok(whole)
}

/// What is said of a row that can't become a job.
pub(super) fn unfit(key: &str, why: &Error) -> String {
    format!("the row with the key {key} can't become a job: {why}")
}

/// The payload if it keeps the rules of an enqueue.
fn checked(payload: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(payload)
        .map_err(|_| Error::invalid("the payload is not valid UTF-8"))?;
    // SQLite has made an object of it. What else could break a rule is looked for by its look.
    let nested = payload[1..].iter().any(|byte| matches!(byte, b'{' | b'['));
    let odd =
        nested || text.contains("\\u0000") || text.contains("e+999") || text.contains("9e999");
    if payload.len() <= Payload::MAX_BYTES && !odd {
        return Ok(text.to_owned());
    }
    Payload::parse(text).map(|payload| payload.as_str().to_owned())
}

/// Which of the keys the query returns. One that can't be asked about counts as returned: leaving a
/// job out is worse than running it once too often.
pub(super) fn ask(connection: &Connection, pair: &Pair, keys: &[String]) -> Result<Vec<bool>> {
    let text = ask_text(pair);
    let mut statement = connection.prepare_cached(&text).map_err(map_query)?;
    let mut returns = |key: &String| match query::spellings(key, pair.key.len()) {
        None => Ok(true),
        Some(values) => statement
            .query_row(params_from_iter(values), |row| row.get(0))
            .map_err(map_query),
    };
    keys.iter().map(&mut returns).collect()
}

/// The statement that asks for one key: two values for each column.
pub(super) fn ask_text(pair: &Pair) -> String {
    let matches: Vec<String> = (0..)
        .zip(&pair.key)
        .map(|(n, name)| {
            let column = query::column(name.as_str());
            format!("{column} IN (?{}, ?{})", 2 * n + 1, 2 * n + 2)
        })
        .collect();
    query::fill(
        sql!("ask"),
        &[("query", &pair.query), ("matches", &matches.join(" AND "))],
    )
}
