//! Over a server.

use anyhow::Result;

use super::{PAGES, Size, furnish, open};
use crate::dashboard::{Client, Served, compare, fill};
use crate::server::Server;
use crate::stopwatch::as_f64;
use crate::{Bound, Measurement, Progress};

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
    let before = scans(large, size).await?;
    let (health, others): (Vec<_>, Vec<_>) = PAGES
        .map(|(step, _, path)| (step, path))
        .into_iter()
        .partition(|(step, _)| *step == "health");
    let turns = size.turns(size.server);
    let compared = async |looks: &[_]| {
        let served = [Served::start(large)?, Served::start(small)?];
        let mut clients = served.each_ref().map(|at| Client::new(&at.address, ""));
        compare(looks, &mut clients, turns, say).await
    };
    let mut all = compared(&others).await?;
    let mut open = open::watch(size, large, &open::PLACES[..7], say).await?;
    let scans = as_f64(scans(large, size).await?.saturating_sub(before));
    // Only then: a checkup reads what waits, seldom.
    all.extend(compared(&health).await?);
    open.extend(open::watch(size, large, &open::PLACES[7..], say).await?);
    all.push(open::judged(&open));
    all.push(
        Measurement::new("large_tables_read", "scans", turns.rows)
            .ours(&[scans])
            .goal("ours", Bound::AtMost(0.0)),
    );
    Ok(all)
}

/// How often a large table was read as a whole, by anybody.
async fn scans(server: &Server, size: &Size) -> Result<usize> {
    let session = server.session().await?;
    let large = i64::try_from(size.server.1 / 2)?;
    let text = include_str!("sql/scans.sql");
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&server.schema, &large];
    let count: i64 = session.client.query_one(text, &values).await?.get(0);
    Ok(usize::try_from(count)?)
}
