//! Draining a backlog of no-op jobs: with history, without, and with a key each.

use anyhow::Result;

use super::raw::Ending;
use super::{Size, ours, raw, textbook};
use crate::server::Server;
use crate::{Bound, Measurement, Progress};

#[derive(Default)]
struct Runs {
    ours: Vec<f64>,
    limit: Vec<f64>,
}

/// What is drained, and what is expected of it.
const LOADS: [(&str, Ending, Option<f64>); 3] = [
    ("drain", Ending::Kept, Some(0.6)),
    ("drain_without_history", Ending::Unkept, Some(0.6)),
    ("drain_with_keys", Ending::Keyed, None),
];

pub(super) async fn measure(
    size: &Size,
    server: &Server,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    let jobs = size.backlog;
    let mut all: [Runs; LOADS.len()] = Default::default();
    let mut canonical = Vec::new();
    for round in 1..=size.rounds {
        for ((step, ending, _), runs) in LOADS.iter().zip(&mut all) {
            say(&format!(
                "{step} of {jobs}, round {round} of {}",
                size.rounds
            ));
            server.fresh().await?;
            let rowlock = server.open().await?;
            ours::bulk(&rowlock, jobs, *ending == Ending::Keyed).await?;
            raw::fill(server).await?;
            server.checkpoint().await?;
            runs.ours
                .push(ours::drain(&rowlock, jobs, *ending != Ending::Unkept).await?);
            server.checkpoint().await?;
            runs.limit.push(raw::drain(server, jobs, *ending).await?);
        }
        say(&format!(
            "the textbook's queue, round {round} of {}",
            size.rounds
        ));
        server.fresh().await?;
        textbook::create(server).await?;
        canonical.push(textbook::drain(server, jobs, size.patience).await?);
    }
    let measurement = |((step, _, least), runs): (&(&'static str, Ending, Option<f64>), &Runs)| {
        let made = Measurement::new(step, "jobs/s", jobs)
            .ours(&runs.ours)
            .limit(&runs.limit)
            .canonical(&canonical);
        match least {
            Some(least) => made.goal("of_limit", Bound::AtLeast(*least)),
            None => made,
        }
    };
    Ok(LOADS.iter().zip(&all).map(measurement).collect())
}
