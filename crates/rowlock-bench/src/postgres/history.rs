//! Ours against ours: claims and looks with ten million finished jobs behind.

use anyhow::Result;
use rowlock::Rowlock;
use rowlock::engine::Filter;

use super::{Size, claims};
use crate::measurement::median;
use crate::server::Server;
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Measurement, Progress};

const GOAL: f64 = 0.8;
const STEPS: [&str; 3] = [
    "claims_behind_history",
    "stats_behind_history",
    "list_behind_history",
];

pub(super) async fn measure(
    size: &Size,
    behind: &Server,
    empty: &Server,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    say(&format!("writing {} finished jobs", size.finished));
    behind.fresh().await?;
    let text = include_str!("sql/finished.sql");
    behind
        .each(&text.replace("10000000", &size.finished.to_string()))
        .await?;
    empty.fresh().await?;
    let (behind, empty) = (behind.open().await?, empty.open().await?);
    // Behind them, without them, and without them once more.
    let mut runs: [[Vec<f64>; 3]; STEPS.len()] = Default::default();
    for round in 1..=size.alternations {
        say(&format!(
            "with {} finished jobs behind, round {round} of {}",
            size.finished, size.alternations
        ));
        for (state, rowlock) in [&behind, &empty, &empty].into_iter().enumerate() {
            for (step, rate) in rates(rowlock, size.looks).await?.into_iter().enumerate() {
                runs[step][state].push(rate);
            }
        }
    }
    let measurement = |(step, [behind, empty, again]): (&&'static str, &[Vec<f64>; 3])| {
        Measurement::new(step, "calls/s", size.looks)
            .ours(behind)
            .with("finished", as_f64(size.finished))
            .without(empty, again, GOAL)
    };
    Ok(STEPS.iter().zip(&runs).map(measurement).collect())
}

async fn rates(rowlock: &Rowlock, looks: usize) -> Result<[f64; STEPS.len()]> {
    let claim = median(&claims::times(rowlock, looks).await?);
    let operate = rowlock.operate();
    let watch = Stopwatch::start();
    for _ in 0..looks {
        operate.stats().await?;
    }
    let stats = watch.rate(looks);
    let watch = Stopwatch::start();
    for _ in 0..looks {
        let some = Filter {
            limit: 100,
            ..Filter::default()
        };
        operate.jobs(some).await?;
    }
    Ok([1_000.0 / claim, stats, watch.rate(looks)])
}
