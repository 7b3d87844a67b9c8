//! Draining a backlog of no-op jobs, with history and without.

use anyhow::Result;

use super::{limit, ours, textbook};
use crate::measurement::median;
use crate::{Bound, Measurement, Place, Progress, Size};

#[derive(Default)]
struct Runs {
    ours: Vec<f64>,
    per_commit: Vec<f64>,
    limit: Vec<f64>,
}

pub(super) async fn measure(
    size: &Size,
    place: &Place,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    let jobs = size.backlog;
    say(&format!("staging {jobs} jobs for the drain"));
    let full = place.file("backlog.db");
    drop(ours::create(&full)?);
    ours::bulk(&full, jobs).await?;
    let canonical_full = place.file("textbook_backlog.db");
    textbook::create(&canonical_full, jobs)?;
    let canonical_indexed = place.copy(&canonical_full, "textbook_indexed.db")?;
    textbook::add_index(&canonical_indexed)?;

    let mut with = [Runs::default(), Runs::default()];
    let (mut canonical, mut indexed) = (Vec::new(), Vec::new());
    for round in 1..=size.rounds {
        say(&format!(
            "drain of {jobs}, round {round} of {}",
            size.rounds
        ));
        for (history, runs) in [true, false].into_iter().zip(&mut with) {
            let path = place.copy(&full, "ours.db")?;
            let run = ours::drain(&path, jobs, history).await?;
            runs.ours.push(run.rate);
            runs.per_commit.push(run.per_commit);
            let path = place.copy(&full, "limit.db")?;
            runs.limit
                .push(limit::drain(&path, jobs, run.per_commit, history)?);
        }
        canonical.push(textbook::drain(place, &canonical_full, size.patience)?);
        indexed.push(textbook::drain(place, &canonical_indexed, size.patience)?);
    }
    let steps = ["drain", "drain_without_history"];
    Ok(steps
        .into_iter()
        .zip(&with)
        .map(|(step, runs)| {
            Measurement::new(step, "jobs/s", jobs)
                .ours(&runs.ours)
                .limit(&runs.limit)
                .canonical(&canonical)
                .with("jobs_per_commit", median(&runs.per_commit))
                .with("canonical_with_index", median(&indexed))
                .goal("of_limit", Bound::AtLeast(0.5))
                .goal("of_canonical", Bound::AtLeast(20.0))
        })
        .collect())
}
