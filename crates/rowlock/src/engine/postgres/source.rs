//! The user's tables: beside the jobs, or in another database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::ask::Value;
use super::bounded::{May, Stopped, ask_within};
use super::connect::{self, Address, Pool};
use super::row::get;
use super::sessions::Sessions;
use super::statements::{Sql, sql};
use super::wanted::{self, around, column, literal, quoted};
use super::{lock, row};
use crate::engine::{Column, Examined, Line, Lines, Source};
use crate::error::{Error, Result};
use crate::io::Io;
use crate::job::Name;
use crate::reconcile::Pair;

/// How many connections are kept for statements with a pair's query in them.
pub(super) const CONNECTIONS: usize = 2;

/// The tables of another database.
///
/// # Errors
/// [`Error::Invalid`] for a URL that can't be read. The server is asked later.
pub fn source(url: &str) -> Result<Arc<dyn Source>> {
    let address = Address::parse(url)?.for_queries();
    let io = Io::start("rowlock-postgres")?;
    let pool = connect::pool(&address, &io, CONNECTIONS, &Sessions::default())?;
    Ok(Arc::new(Tables::new(pool, io)))
}

/// A query and its key.
type Asked = (String, Vec<Name>);

/// Tables that pairs' queries read.
pub(super) struct Tables {
    pub(super) pool: Pool,
    pub(super) io: Io,
    /// The types of key columns, by query and key.
    types: Mutex<HashMap<Asked, Vec<String>>>,
}

/// So many queries are remembered.
const REMEMBERED: usize = 1_000;

impl Tables {
    pub(super) fn new(pool: Pool, io: Io) -> Self {
        Self {
            pool,
            io,
            types: Mutex::default(),
        }
    }

    pub(super) async fn rows(
        &self,
        pair: &Pair,
        text: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, Stopped> {
        let on = (&self.pool, &self.io);
        let within = (pair.timeout, May::Read);
        ask_within(on, text, values, pair.name.as_str(), within).await
    }

    async fn types_of(&self, pair: &Pair, names: &[Name]) -> Result<Vec<String>> {
        let types: Vec<String> = names
            .iter()
            .map(|name| format!("pg_typeof({})::text", column(name)))
            .collect();
        let text = around(
            pair,
            sql!("source_types"),
            &[("{types}", &types.join(", "))],
        );
        let rows = self.rows(pair, &text, &[]).await?;
        let row = rows
            .first()
            .ok_or_else(|| Error::Bug("a query has no types".to_owned()))?;
        get(row, 0)
    }

    /// The types of the key's columns, as a cast has to name them.
    pub(super) async fn key_types(&self, pair: &Pair) -> Result<Vec<String>> {
        let asked = (pair.query.clone(), pair.key.clone());
        if let Some(types) = lock(&self.types).get(&asked) {
            return Ok(types.clone());
        }
        let types = self.types_of(pair, &pair.key).await?;
        // Without a length these would be one character long.
        let castable = |name: String| match name.as_str() {
            "character" => "bpchar".to_owned(),
            "bit" => "\"bit\"".to_owned(),
            _ => name,
        };
        let types: Vec<String> = types.into_iter().map(castable).collect();
        let mut remembered = lock(&self.types);
        if remembered.len() >= REMEMBERED {
            remembered.clear();
        }
        remembered.insert(asked, types.clone());
        Ok(types)
    }

    /// Which of these keys, given by their values, the query returns or can't be asked about; the
    /// keys' numbers.
    async fn ask_all(&self, pair: &Pair, keys: &[(usize, Vec<String>)]) -> Result<Vec<usize>> {
        let types = self.key_types(pair).await?;
        // Half of the keys at a time once one of them can't be read as its column's type.
        let mut left = vec![keys];
        let mut wanted = Vec::new();
        while let Some(part) = left.pop() {
            match self.ask_some(pair, &types, part).await {
                Ok(found) => wanted.extend(found),
                Err(Stopped::BadValue(why)) => match part {
                    [(number, values)] => {
                        self.must_be_unreadable(pair, &types, values, why).await?;
                        wanted.push(*number);
                    }
                    _ => {
                        let (one, other) = part.split_at(part.len() / 2);
                        left.extend([one, other]);
                    }
                },
                Err(other) => {
                    // The table may have changed.
                    lock(&self.types).clear();
                    return Err(other.into());
                }
            }
        }
        Ok(wanted)
    }

    async fn ask_some(
        &self,
        pair: &Pair,
        types: &[String],
        keys: &[(usize, Vec<String>)],
    ) -> Result<Vec<usize>, Stopped> {
        let columns: Vec<Vec<&str>> = (0..types.len())
            .map(|n| keys.iter().map(|(_, values)| values[n].as_str()).collect())
            .collect();
        let values: Vec<Value<'_>> = columns
            .iter()
            .map(|column| (column as &(dyn ToSql + Sync), Type::TEXT_ARRAY))
            .collect();
        let rows = self.rows(pair, &ask_text(pair, types), &values).await?;
        let number = |row: &Row| {
            let n = row::count(row, 0).map_err(Stopped::Failed)?;
            let at = usize::try_from(n).unwrap_or(0).saturating_sub(1);
            Ok(keys.get(at).map_or(usize::MAX, |(number, _)| *number))
        };
        rows.iter().map(number).collect()
    }

    /// A key that can't be read as its columns' types; any other trouble is the query's.
    async fn must_be_unreadable(
        &self,
        pair: &Pair,
        types: &[String],
        values: &[String],
        why: Error,
    ) -> Result<()> {
        let casts: Vec<String> = values
            .iter()
            .zip(types)
            .map(|(value, of)| format!("{}::text::{of}", literal(value)))
            .collect();
        let text = around(
            pair,
            sql!("source_cast"),
            &[("{values}", &casts.join(", "))],
        );
        match self.rows(pair, &text, &[]).await {
            Err(Stopped::BadValue(_)) => Ok(()),
            Err(other) => Err(other.into()),
            Ok(_) => Err(why),
        }
    }
}

/// The statement that asks for keys: one array for each column.
pub(super) fn ask_text(pair: &Pair, types: &[String]) -> String {
    let numbered = || (1..).zip(types.iter().zip(&pair.key));
    let keys: Vec<String> = numbered()
        .map(|(n, (of, _))| format!("${n}::text[]::{of}[]"))
        .collect();
    let names: Vec<String> = numbered().map(|(n, _)| format!("k{n}")).collect();
    let matches: Vec<String> = numbered()
        .map(|(n, (_, name))| format!("{} = asked.k{n}", column(name)))
        .collect();
    around(
        pair,
        sql!("source_ask"),
        &[
            ("{keys}", &keys.join(", ")),
            ("{names}", &names.join(", ")),
            ("{matches}", &matches.join(" AND ")),
        ],
    )
}

/// Rows of `source_rows`, at most `limit` of which count, and none from the first without a payload on.
fn lines(rows: &[Row], limit: usize) -> Result<Lines> {
    let payloads: Vec<Option<&str>> = rows.iter().map(|row| get(row, 1)).collect::<Result<_>>()?;
    let full = payloads.iter().position(Option::is_none);
    let limit = full.map_or(limit, |full| full.min(limit));
    let mut lines = Lines {
        found: rows.len().min(limit) as u64,
        ..Lines::default()
    };
    for (n, (row, payload)) in rows.iter().zip(payloads).enumerate() {
        let key: Option<String> = get(row, 0)?;
        match key {
            None if n < limit => lines.without_key += 1,
            // What comes after it, if it is the same, nobody would look at again.
            Some(key) if lines.cursor.as_ref() == Some(&key) => lines.repeated += 1,
            Some(key) if n < limit => {
                lines.cursor = Some(key.clone());
                let payload = payload.unwrap_or_default().to_owned();
                lines.lines.push(Line { key, payload });
            }
            _ => {}
        }
    }
    lines.more = rows.len() > limit && lines.cursor.is_some();
    Ok(lines)
}

#[async_trait]
impl Source for Tables {
    async fn columns(&self, pair: &Pair) -> Result<Vec<Column>> {
        let text = around(pair, sql!("source_columns"), &[]);
        let rows = self.rows(pair, &text, &[]).await?;
        let names: Vec<String> = rows.iter().map(|row| get(row, 0)).collect::<Result<_>>()?;
        let missing = |key: &&Name| !names.iter().any(|name| name == key.as_str());
        if let Some(key) = pair.key.iter().find(missing) {
            return Err(Error::invalid(format!(
                "pair {}: its query has no column {key}, which is part of its key; it has {}",
                pair.name,
                names.join(", ")
            )));
        }
        let stored: Vec<Name> = names.iter().cloned().map(Name::stored).collect();
        let types = self.types_of(pair, &stored).await?;
        let columns: Vec<Column> = names
            .into_iter()
            .zip(types)
            .map(|(name, of)| Column { name, of })
            .collect();
        for column in &columns {
            let in_key = pair.key.iter().any(|key| key.as_str() == column.name);
            let nested = column.of.ends_with("[]") || ["json", "jsonb"].contains(&&*column.of);
            if in_key && nested {
                return Err(Error::invalid(format!(
                    "pair {}: its column {} is of type {}, which can't be part of a key: use a \
                     number, a text, a uuid or a time",
                    pair.name, column.name, column.of
                )));
            }
        }
        // Whether its rows have an order.
        let text = wanted::rows(pair, 0, None, 0)?;
        self.rows(pair, &text_of_rows(&text), &[]).await?;
        Ok(columns)
    }

    async fn derive(
        &self,
        pair: &Pair,
        shard: u16,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Lines> {
        let wanted = wanted::rows(pair, shard, cursor, limit.saturating_add(1))?;
        let rows = self.rows(pair, &text_of_rows(&wanted), &[]).await?;
        let mut lines = lines(&rows, limit)?;
        let keyless = wanted::keyless(pair, shard, cursor).filter(|_| !lines.more);
        if let Some(keyless) = keyless {
            let rows = self.rows(pair, &keyless, &[]).await?;
            let keyless = rows.first().map_or(Ok(0), |row| row::count(row, 0))?;
            lines.found += keyless;
            lines.without_key += keyless;
        }
        Ok(lines)
    }

    async fn ask(&self, pair: &Pair, keys: &[String]) -> Result<Vec<bool>> {
        // Leaving a job out is worse than running it once too often: what can't be asked is wanted.
        let mut wanted = vec![true; keys.len()];
        let mut asked = Vec::with_capacity(keys.len());
        for (n, key) in keys.iter().enumerate() {
            if let Some(values) = wanted::values(key, pair.key.len()) {
                wanted[n] = false;
                asked.push((n, values));
            }
        }
        if asked.is_empty() {
            return Ok(wanted);
        }
        for number in self.ask_all(pair, &asked).await? {
            if let Some(answer) = wanted.get_mut(number) {
                *answer = true;
            }
        }
        Ok(wanted)
    }

    async fn examine(&self, pair: &Pair) -> Result<Examined> {
        let mut examined = Examined {
            plans: self.plans(pair).await?,
            ..Examined::default()
        };
        if let Some(states) = &pair.states {
            self.cover(pair, states, &mut examined).await?;
        }
        Ok(examined)
    }
}

fn text_of_rows(wanted: &str) -> String {
    let text = sql!("source_rows").text(&connect::Schema::default());
    text.replace("{wanted}", wanted)
}

/// A part of a statement that compares the key's columns of a table `t` with the query's.
pub(super) fn same_key(key: &[Name]) -> String {
    let same = |name: &Name| format!("{} = t.{}", column(name), quoted(name.as_str()));
    key.iter().map(same).collect::<Vec<_>>().join(" AND ")
}

/// For files that say nothing of a query.
pub(super) fn plain(statement: Sql) -> String {
    statement.text(&connect::Schema::default())
}
