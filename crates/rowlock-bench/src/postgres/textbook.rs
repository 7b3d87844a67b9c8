//! The canonical queue: a table with a partial index, rows locked with SKIP LOCKED and deleted when done.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::PAYLOAD;
use super::connections::{at_once, insert_each};
use crate::server::Server;
use crate::stopwatch::{Stopwatch, as_f64};

/// Its workers.
const CONNECTIONS: usize = 4;
/// How many jobs a claim takes; the best counts.
const SIZES: [i64; 3] = [1, 10, 100];

pub(super) async fn create(server: &Server) -> Result<()> {
    server.each(include_str!("sql/textbook.sql")).await
}

/// One row a transaction, on so many connections.
pub(super) async fn enqueue(server: &Server, connections: usize, jobs: usize) -> Result<f64> {
    let text = server.put(include_str!("sql/textbook_enqueue.sql"));
    insert_each(server, connections, jobs, &text, "textbook").await
}

pub(super) async fn fill(server: &Server, jobs: usize) -> Result<()> {
    let session = server.session().await?;
    let text = server.put(include_str!("sql/textbook_fill.sql"));
    let jobs = i64::try_from(jobs)?;
    session.client.execute(&text, &[&PAYLOAD, &jobs]).await?;
    server.each("VACUUM ANALYZE bench.textbook").await
}

/// Its best rate until the backlog is done or the time is over, each size with a new backlog.
pub(super) async fn drain(server: &Server, backlog: usize, patience: Duration) -> Result<f64> {
    Ok(best(server, backlog, patience).await?.0)
}

/// How many jobs a claim should take.
pub(super) async fn best_size(server: &Server, backlog: usize, patience: Duration) -> Result<i64> {
    Ok(best(server, backlog, patience).await?.1)
}

async fn best(server: &Server, backlog: usize, patience: Duration) -> Result<(f64, i64)> {
    let mut best = (0.0_f64, 0);
    for size in SIZES {
        server.each("TRUNCATE bench.textbook").await?;
        fill(server, backlog).await?;
        let (done, took) = run(server, size, patience).await?;
        let rate = rate(done, took)?;
        if rate > best.0 {
            best = (rate, size);
        }
    }
    Ok(best)
}

/// Its rate with so many in a claim behind so many jobs that have gone through, whose rows are dead. What it does adds to
/// those, so it is measured over short backlogs, each behind exactly as many, until it has run for so long.
pub(super) async fn rate_behind(
    server: &Server,
    dead: usize,
    backlog: usize,
    size: i64,
    patience: Duration,
) -> Result<f64> {
    let (mut done, mut took) = (0, Duration::ZERO);
    while took < patience {
        server.each("TRUNCATE bench.textbook").await?;
        fill(server, dead).await?;
        server.each("DELETE FROM bench.textbook").await?;
        fill(server, backlog).await?;
        let (some, time) = run(server, size, patience.saturating_sub(took)).await?;
        done += some;
        took += time;
    }
    rate(done, took)
}

fn rate(done: usize, took: Duration) -> Result<f64> {
    ensure!(done > 0, "nothing was done");
    Ok(as_f64(done) / took.as_secs_f64())
}

/// Jobs that were done with so many in a claim until the time is over or nothing waits, and how long it took.
async fn run(server: &Server, size: i64, patience: Duration) -> Result<(usize, Duration)> {
    let claim = server.put(include_str!("sql/textbook_claim.sql"));
    let delete = server.put(include_str!("sql/textbook_delete.sql"));
    let (done, watch) = at_once(server, CONNECTIONS, "", |_, session| {
        let (claim, delete) = (claim.clone(), delete.clone());
        async move {
            let client = &session.client;
            let (claim, delete) = (
                client.prepare(&claim).await?,
                client.prepare(&delete).await?,
            );
            let watch = Stopwatch::start();
            let mut done = 0;
            while watch.elapsed() < patience {
                client.batch_execute("BEGIN").await?;
                let rows = client.query(&claim, &[&size]).await?;
                let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
                client.execute(&delete, &[&ids]).await?;
                client.batch_execute("COMMIT").await?;
                if ids.is_empty() {
                    break;
                }
                done += ids.len();
            }
            Ok(done)
        }
    })
    .await?;
    Ok((done, watch.elapsed()))
}
