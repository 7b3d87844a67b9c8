//! The limit: the statements of ours in a bare loop on one connection, prepared once, with nothing
//! around them that a queue needs besides.

use std::path::Path;

use anyhow::{Result, ensure};
use rowlock::Clock;
use rusqlite::{Connection, params};

use super::connect::open;
use super::{KIND, PAYLOAD, QUEUE};
use crate::stopwatch::Stopwatch;

/// The very files that the engine runs.
macro_rules! ours {
    ($name:literal) => {
        include_str!(concat!(
            "../../../rowlock/src/engine/sqlite/sql/",
            $name,
            ".sql"
        ))
    };
}

const TOKEN: i64 = 4_711;

/// Jobs staged with so many rows in a transaction.
pub(super) fn enqueue(path: &Path, jobs: usize, per_commit: f64) -> Result<f64> {
    let connection = open(path)?;
    let clock = Clock::system();
    let watch = Stopwatch::start();
    let mut stage = connection.prepare(ours!("stage"))?;
    let mut rows = Rows::new(per_commit);
    let mut left = jobs;
    while left > 0 {
        let batch = rows.next().min(left);
        begin(&connection)?;
        for _ in 0..batch {
            let now = clock.now().as_millisecond();
            let none = None::<i64>;
            let stored: i64 = stage.query_row(
                params![
                    KIND, PAYLOAD, none, none, now, none, none, none, "[]", none, none, now, none,
                    none, none, none, none
                ],
                |row| row.get(0),
            )?;
            ensure!(stored > 0, "a row was not stored");
        }
        commit(&connection)?;
        left -= batch;
    }
    Ok(watch.rate(jobs))
}

/// Jobs claimed and settled with so many in a transaction: claim and settle in the same one.
pub(super) fn drain(path: &Path, jobs: usize, per_commit: f64, history: bool) -> Result<f64> {
    let connection = open(path)?;
    let clock = Clock::system();
    let watch = Stopwatch::start();
    let mut claim = connection.prepare(ours!("claim"))?;
    let mut settle = connection.prepare(match history {
        true => ours!("settle_done"),
        false => ours!("settle_done_unkept"),
    })?;
    let mut rows = Rows::new(per_commit);
    let mut ids: Vec<i64> = Vec::new();
    let mut left = jobs;
    while left > 0 {
        let batch = i64::try_from(rows.next().min(left))?;
        let now = clock.now().as_millisecond();
        begin(&connection)?;
        ids.clear();
        let mut claimed =
            claim.query(params![QUEUE, KIND, false, 0, now, batch, "limit", TOKEN])?;
        while let Some(row) = claimed.next()? {
            ids.push(row.get(0)?);
        }
        drop(claimed);
        let list: Vec<String> = ids
            .iter()
            .map(|id| format!("[{id},{TOKEN},{now}]"))
            .collect();
        let list = format!("[{}]", list.join(","));
        let mut settled = match history {
            true => settle.query(params![list, now])?,
            false => settle.query(params![list])?,
        };
        let mut ended = 0;
        while settled.next()?.is_some() {
            ended += 1;
        }
        drop(settled);
        ensure!(ended == ids.len(), "a row was not settled");
        commit(&connection)?;
        ensure!(!ids.is_empty(), "nothing was claimed");
        left -= ids.len();
    }
    Ok(watch.rate(jobs))
}

fn begin(connection: &Connection) -> Result<()> {
    Ok(connection
        .prepare_cached("BEGIN IMMEDIATE")?
        .execute([])
        .map(|_| ())?)
}

fn commit(connection: &Connection) -> Result<()> {
    Ok(connection
        .prepare_cached("COMMIT")?
        .execute([])
        .map(|_| ())?)
}

/// Whole numbers whose average is the given one.
struct Rows {
    average: f64,
    owed: f64,
}

impl Rows {
    fn new(average: f64) -> Self {
        let owed = 0.0;
        Self { average, owed }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "rows of one transaction"
    )]
    fn next(&mut self) -> usize {
        self.owed += self.average;
        let rows = (self.owed as usize).max(1);
        self.owed -= rows as f64;
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_have_the_average_size_that_was_asked_for() {
        let mut rows = Rows::new(2.25);
        let taken: usize = (0..400).map(|_| rows.next()).sum();
        assert_eq!(taken, 900);
        assert_eq!(Rows::new(0.3).next(), 1);
    }
}
