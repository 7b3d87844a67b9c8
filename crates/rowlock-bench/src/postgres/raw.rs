//! The limit: the least that has to be written, by prepared statements in a bare loop, in one table with the
//! columns and indexes of ours. Nothing is asked of lanes, switches, leases or other segments.

use std::fmt::Write as _;
use std::io::Cursor;
use std::pin::pin;
use std::time::SystemTime;

use anyhow::{Result, ensure};
use futures_util::SinkExt;
use rowlock::Clock;
use tokio_postgres::CopyInSink;
use tokio_postgres::types::ToSql;

use super::connections::{at_once, ensure_rows, insert_each};
use super::place::Spot;
use super::{BATCH, KIND, PAYLOAD};
use crate::server::Server;
use crate::stopwatch::Stopwatch;

/// Claims and verdicts of ours go by two.
const CONNECTIONS: usize = 2;

/// What is written of a job that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Kept,
    Unkept,
    Keyed,
}

/// The rows that ours has staged, in the bare table.
pub(super) async fn fill(server: &Server) -> Result<()> {
    server.each(include_str!("sql/raw.sql")).await?;
    server.each(include_str!("sql/raw_fill.sql")).await
}

/// One row a transaction, on so many connections.
pub(super) async fn enqueue(server: &Server, connections: usize, jobs: usize) -> Result<f64> {
    server.each(include_str!("sql/raw.sql")).await?;
    let text = server.put(include_str!("sql/raw_enqueue.sql"));
    insert_each(server, connections, jobs, &text, "raw").await
}

/// Claims and ends everything that waits.
pub(super) async fn drain(server: &Server, jobs: usize, ending: Ending) -> Result<f64> {
    let claim = server.put(include_str!("sql/raw_claim.sql"));
    let end = server.put(match ending {
        Ending::Kept => include_str!("sql/raw_done.sql"),
        Ending::Unkept => include_str!("sql/raw_done_unkept.sql"),
        Ending::Keyed => include_str!("sql/raw_done_keyed.sql"),
    });
    let settings = include_str!("sql/raw_settings.sql");
    let (done, watch) = at_once(server, CONNECTIONS, settings, |n, session| {
        let (claim, end) = (claim.clone(), end.clone());
        async move {
            let client = &session.client;
            let (claim, end) = (client.prepare(&claim).await?, client.prepare(&end).await?);
            let (token, batch) = (i64::try_from(n)? + 1, i64::try_from(BATCH)?);
            let mut after = (SystemTime::UNIX_EPOCH, 0_i64);
            let mut done = 0;
            loop {
                let values: [&(dyn ToSql + Sync); 4] = [&token, &batch, &after.0, &after.1];
                let rows = client.query(&claim, &values).await?;
                if rows.is_empty() {
                    return Ok(done);
                }
                let places: Vec<Spot> = rows.iter().map(|row| row.get(0)).collect();
                let last = rows.iter().map(|row| (row.get(2), row.get(1))).max();
                after = last.unwrap_or(after);
                client.execute(&end, &[&places, &token]).await?;
                done += places.len();
            }
        }
    })
    .await?;
    let rate = watch.rate(jobs);
    ensure!(done == jobs, "{done} of {jobs} rows were ended");
    Ok(rate)
}

/// Rows by COPY, in batches of the same size as ours.
pub(super) async fn copy(server: &Server, jobs: usize) -> Result<f64> {
    server.each(include_str!("sql/raw.sql")).await?;
    let session = server.session().await?;
    let text = server.put(include_str!("sql/raw_copy.sql"));
    let clock = Clock::system();
    let watch = Stopwatch::start();
    for start in (0..jobs).step_by(BATCH) {
        let now = clock.now();
        let mut lines = String::new();
        for id in start..(start + BATCH).min(jobs) {
            // Writing to a text can't fail.
            let _ = writeln!(
                lines,
                "{id}\t{now}\t{now}\t{now}\t0\t20\t0\tf\tf\tf\tf\tdefault\t{KIND}\t{PAYLOAD}"
            );
        }
        let sink: CopyInSink<Cursor<Vec<u8>>> = session.client.copy_in(&text).await?;
        let mut sink = pin!(sink);
        sink.send(Cursor::new(lines.into_bytes())).await?;
        sink.finish().await?;
    }
    let rate = watch.rate(jobs);
    ensure_rows(server, "raw", jobs).await?;
    Ok(rate)
}
