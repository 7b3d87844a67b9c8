//! Staging: one job a transaction on 1 and 16 connections, and in batches.

use anyhow::Result;

use super::{Size, ours, raw, textbook};
use crate::server::Server;
use crate::{Bound, Measurement, Progress};

#[derive(Default)]
struct Runs {
    ours: Vec<f64>,
    limit: Vec<f64>,
    canonical: Vec<f64>,
}

impl Runs {
    fn measurement(&self, step: &'static str, jobs: usize) -> Measurement {
        let made = Measurement::new(step, "jobs/s", jobs)
            .ours(&self.ours)
            .limit(&self.limit);
        match self.canonical.is_empty() {
            true => made,
            false => made.canonical(&self.canonical),
        }
    }
}

pub(super) async fn measure(
    size: &Size,
    server: &Server,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    let (mut one, mut some, mut bulk) = (Runs::default(), Runs::default(), Runs::default());
    for round in 1..=size.rounds {
        say(&format!("enqueue, round {round} of {}", size.rounds));
        for (runs, connections, jobs) in [(&mut one, 1, size.by_one), (&mut some, 16, size.by_some)]
        {
            server.fresh().await?;
            textbook::create(server).await?;
            server.checkpoint().await?;
            runs.ours
                .push(ours::enqueue(server, connections, jobs).await?);
            runs.limit
                .push(raw::enqueue(server, connections, jobs).await?);
            runs.canonical
                .push(textbook::enqueue(server, connections, jobs).await?);
        }
        say(&format!("bulk enqueue, round {round} of {}", size.rounds));
        server.fresh().await?;
        server.checkpoint().await?;
        let rowlock = server.open().await?;
        bulk.ours
            .push(ours::bulk(&rowlock, size.bulk, false).await?);
        server.checkpoint().await?;
        bulk.limit.push(raw::copy(server, size.bulk).await?);
    }
    Ok(vec![
        one.measurement("enqueue_1", size.by_one),
        some.measurement("enqueue_16", size.by_some)
            .goal("of_limit", Bound::AtLeast(0.7)),
        bulk.measurement("enqueue_bulk", size.bulk)
            .goal("of_limit", Bound::AtLeast(0.6)),
    ])
}
