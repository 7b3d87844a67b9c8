//! Staging: one job a call by 1, 16 and 256 producers, and in batches.

use anyhow::Result;

use super::ours::{BATCH, Run};
use super::{limit, ours, textbook};
use crate::measurement::median;
use crate::{Bound, Measurement, Place, Progress, Size};

/// The figures of one load, run by run.
#[derive(Default)]
struct Runs {
    ours: Vec<f64>,
    per_commit: Vec<f64>,
    limit: Vec<f64>,
    canonical: Vec<f64>,
}

impl Runs {
    fn add(&mut self, ours: Run, limit: f64, canonical: f64) {
        self.ours.push(ours.rate);
        self.per_commit.push(ours.per_commit);
        self.limit.push(limit);
        self.canonical.push(canonical);
    }

    fn measurement(&self, step: &'static str, jobs: usize) -> Measurement {
        Measurement::new(step, "jobs/s", jobs)
            .ours(&self.ours)
            .limit(&self.limit)
            .canonical(&self.canonical)
            .with("rows_per_commit", median(&self.per_commit))
    }
}

pub(super) async fn measure(
    size: &Size,
    place: &Place,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    let loads = [
        ("enqueue_1", 1, size.by_one, None),
        ("enqueue_16", 16, size.by_some, Some(0.6)),
        ("enqueue_256", 256, size.by_many, Some(0.6)),
    ];
    let mut single = [Runs::default(), Runs::default(), Runs::default()];
    let mut bulk = Runs::default();
    let mut by_one = Vec::new();
    let empty = place.file("empty.db");
    drop(ours::create(&empty)?);
    for round in 1..=size.rounds {
        say(&format!("enqueue, round {round} of {}", size.rounds));
        let (one, canonical) = textbook::enqueue(place, size.by_one)?;
        by_one.push(one);
        for ((_, producers, jobs, _), runs) in loads.iter().zip(&mut single) {
            let path = place.copy(&empty, "ours.db")?;
            let run = ours::enqueue(&path, *producers, *jobs).await?;
            let path = place.copy(&empty, "limit.db")?;
            let limit = limit::enqueue(&path, *jobs, run.per_commit)?;
            runs.add(run, limit, canonical);
        }
        say(&format!("bulk enqueue, round {round} of {}", size.rounds));
        let run = ours::bulk(&place.copy(&empty, "ours.db")?, size.bulk).await?;
        let path = place.copy(&empty, "limit.db")?;
        #[expect(clippy::cast_precision_loss, reason = "a thousand")]
        let limit = limit::enqueue(&path, size.bulk, BATCH as f64)?;
        let path = place.file("textbook.db");
        place.remove(&path);
        textbook::create(&path, 0)?;
        bulk.add(run, limit, textbook::bulk(&path, size.bulk, BATCH)?);
    }
    let mut all = Vec::new();
    for ((step, _, jobs, of_limit), runs) in loads.iter().zip(&single) {
        let made = runs.measurement(step, *jobs);
        all.push(match of_limit {
            Some(least) => made.goal("of_limit", Bound::AtLeast(*least)),
            None => made.with("canonical_by_one", median(&by_one)),
        });
    }
    all.push(bulk.measurement("enqueue_bulk", size.bulk));
    Ok(all)
}
