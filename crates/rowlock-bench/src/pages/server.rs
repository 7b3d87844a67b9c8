//! Over a server.

use std::time::Duration;

use anyhow::{Result, ensure};
use rowlock::Clock;

use super::{PAGES, Size, furnish, open};
use crate::dashboard::{Client, Served, compare, fill};
use crate::server::Server;
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Bound, Measurement, Progress};

/// Rows of large tables that may be read in a second while a page is open: to count a million that wait with every checkup would be
/// more than three times as many.
const GOAL: f64 = 10_000.0;
/// Sessions end so soon after their process.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn measure(
    size: &Size,
    large: &Server,
    small: &Server,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    for (server, rows) in [(large, size.server), (small, size.small)] {
        fill(server, rows, say).await?;
        let text = include_str!("sql/routed.sql");
        let routed = rows.1.div_ceil(10).to_string();
        server.each(&text.replace("100000", &routed)).await?;
        furnish(&server.open().await?, &server.put("bench.thing")).await?;
        server.checkpoint().await?;
    }
    let before = read(large, size).await?;
    let turns = size.turns(size.server);
    let mut all = {
        let looks = PAGES.map(|(step, _, path)| (step, path));
        let served = [Served::start(large)?, Served::start(small)?];
        let mut clients = served.each_ref().map(|at| Client::new(&at.address, ""));
        compare(&looks, &mut clients, turns, say).await?
    };
    let (mut after, mut watched, mut rows) = (read(large, size).await?, Vec::new(), Vec::new());
    for places in [&open::PLACES[..7], &open::PLACES[7..]] {
        let before = after.rows;
        let part = open::watch(size, large, places, say).await?;
        after = read(large, size).await?;
        let time = size.open.as_secs_f64() * as_f64(places.len());
        rows.push(as_f64(after.rows.saturating_sub(before)) / time);
        watched.push(part);
    }
    all.push(open::judged(&watched));
    let scans = as_f64(after.scans.saturating_sub(before.scans));
    all.push(
        Measurement::new("large_tables_read", "scans", turns.rows)
            .ours(&[scans])
            .goal("ours", Bound::AtMost(0.0)),
    );
    all.push(
        Measurement::new("rows_read", "rows/s", turns.rows)
            .ours(&[rows[0].max(rows[1])])
            .with("health", rows[1])
            .with("others", rows[0])
            .goal("ours", Bound::AtMost(GOAL)),
    );
    Ok(all)
}

/// What was read of large tables, by anybody.
struct Read {
    /// How often one was read as a whole.
    scans: usize,
    /// Rows and entries of indexes.
    rows: usize,
}

/// Sessions say what they have read when they end, at the latest: nobody is asked before all of them have.
async fn read(server: &Server, size: &Size) -> Result<Read> {
    let session = server.session().await?;
    let (clock, watch) = (Clock::system(), Stopwatch::start());
    loop {
        let text = include_str!("sql/others.sql");
        let others = session.client.query_one(text, &[&server.schema]).await?;
        if others.get::<_, i64>(0) == 0 {
            break;
        }
        ensure!(
            watch.elapsed() < PATIENCE,
            "sessions of {} don't end",
            server.schema
        );
        clock.sleep(Duration::from_millis(50)).await;
    }
    let large = i64::try_from(size.server.1 / 2)?;
    let text = include_str!("sql/scans.sql");
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&server.schema, &large];
    let row = session.client.query_one(text, &values).await?;
    let number = |at: usize| usize::try_from(row.get::<_, i64>(at));
    Ok(Read {
        scans: number(0)?,
        rows: number(1)?,
    })
}
