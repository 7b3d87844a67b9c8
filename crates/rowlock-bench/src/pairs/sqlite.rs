//! In a file: the rows and the jobs side by side.

use std::path::Path;

use anyhow::{Result, ensure};
use rowlock::engine::sqlite::{Address, migrate_up};
use rowlock::{Clock, Rowlock};
use rusqlite::{Connection, params};

use super::{BATCH, KIND, Rounds, Size};
use crate::stopwatch::Stopwatch;
use crate::{Measurement, Place, Progress};

pub(super) async fn run(size: Size, place: &Place, say: Progress<'_>) -> Result<Vec<Measurement>> {
    let rows = place.file("rows.db");
    say(&format!("writing {} rows", size.rows));
    fill(&rows, size.rows)?;
    let mut rounds = Rounds::default();
    let query = super::QUERY.replace("bench.", "");
    for round in 1..=size.rounds {
        say(&format!("round {round} of {}", size.rounds));
        let path = place.copy(&rows, "ours.db")?;
        let url = format!("sqlite:{}", path.display());
        let rowlock = Rowlock::open(&url)?;
        rounds.ours(&rowlock, size.rows, &query).await?;
        open(&path)?.execute(include_str!("sql/sqlite_settled.sql"), [])?;
        rounds.idle(&rowlock, &query).await?;
        drop(rowlock);
        let path = place.copy(&rows, "plain.db")?;
        rounds.plain.push(plain(&path, size.rows)?);
    }
    Ok(rounds.measurements("pairs_sqlite", size.rows))
}

fn open(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536",
    )?;
    Ok(connection)
}

fn fill(path: &Path, rows: usize) -> Result<()> {
    let address = Address::parse(&format!("sqlite:{}", path.display()))?;
    migrate_up(&address, &Clock::system())?;
    let connection = open(path)?;
    connection.execute_batch(include_str!("sql/sqlite_rows.sql"))?;
    connection.execute(include_str!("sql/sqlite_fill.sql"), [i64::try_from(rows)?])?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

/// Plain statements, as somebody would write them who wants a job for each row and nothing else.
fn plain(path: &Path, rows: usize) -> Result<f64> {
    let connection = open(path)?;
    connection.execute_batch(include_str!("sql/sqlite_plain_table.sql"))?;
    let mut insert = connection.prepare(include_str!("sql/sqlite_plain.sql"))?;
    let watch = Stopwatch::start();
    let (mut last, mut all) = (i64::MIN, 0);
    loop {
        let now = Clock::system().now().as_millisecond();
        let made = insert.execute(params![KIND, now, last, i64::try_from(BATCH)?])?;
        all += made;
        if made < BATCH {
            break;
        }
        last = connection.query_row(include_str!("sql/sqlite_plain_last.sql"), [], |row| {
            row.get(0)
        })?;
    }
    ensure!(all == rows, "{all} of {rows} rows were taken");
    Ok(watch.elapsed().as_secs_f64())
}
