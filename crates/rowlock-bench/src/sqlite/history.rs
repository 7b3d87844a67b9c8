//! Ours against ours: the same loads with a million finished jobs behind.

use std::path::Path;

use anyhow::Result;
use rowlock::Clock;
use rusqlite::params;

use super::{KIND, PAYLOAD, connect, ours};
use crate::measurement::median;
use crate::{Bound, Measurement, Place, Progress, Size};

const GOAL: f64 = 0.8;

/// One load in the two states, and the empty one a second time.
#[derive(Default)]
struct Runs {
    behind: Vec<f64>,
    empty: Vec<f64>,
    again: Vec<f64>,
}

impl Runs {
    fn measurement(&self, step: &'static str, jobs: usize, finished: usize) -> Measurement {
        let (empty, again) = (median(&self.empty), median(&self.again));
        let a_a = (empty / again).min(again / empty);
        let ours = median(&self.behind);
        let mut made = Measurement::new(step, "jobs/s", jobs)
            .ours(&self.behind)
            .with("finished", crate::stopwatch::as_f64(finished))
            .with("without", empty)
            .with("of_without", ours / empty)
            .with("a_a", a_a)
            .goal("of_without", Bound::AtLeast(GOAL));
        made.noisy = a_a < GOAL;
        made.runs.insert("without", self.empty.clone());
        made.runs.insert("without_again", self.again.clone());
        made
    }
}

pub(super) async fn measure(
    size: &Size,
    place: &Place,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    let (jobs, finished) = (size.backlog_behind, size.finished);
    say(&format!("writing {finished} finished jobs"));
    let empty = place.file("empty_backlog.db");
    drop(ours::create(&empty)?);
    let behind = place.file("behind_backlog.db");
    drop(ours::create(&behind)?);
    fill(&behind, finished)?;
    for path in [&empty, &behind] {
        ours::bulk(path, jobs).await?;
    }
    let (mut drain, mut enqueue) = (Runs::default(), Runs::default());
    for round in 1..=size.alternations {
        say(&format!(
            "with {finished} finished jobs behind, round {round} of {}",
            size.alternations
        ));
        for state in 0..3 {
            let of = if state == 0 { &behind } else { &empty };
            let path = place.copy(of, "ours.db")?;
            let staged = ours::enqueue(&path, 16, size.by_some).await?.rate;
            let drained = ours::drain(&path, jobs + size.by_some, true).await?.rate;
            for (runs, rate) in [(&mut enqueue, staged), (&mut drain, drained)] {
                match state {
                    0 => runs.behind.push(rate),
                    1 => runs.empty.push(rate),
                    _ => runs.again.push(rate),
                }
            }
        }
    }
    Ok(vec![
        enqueue.measurement("enqueue_16_behind_history", size.by_some, finished),
        drain.measurement("drain_behind_history", jobs + size.by_some, finished),
    ])
}

/// In bulk: what counts is that they are there.
fn fill(path: &Path, finished: usize) -> Result<()> {
    let connection = connect::open(path)?;
    let count = i64::try_from(finished)?;
    let now = Clock::system().now().as_millisecond();
    connection.execute(
        include_str!("sql/finished.sql"),
        params![count, now, KIND, PAYLOAD],
    )?;
    connection.execute(include_str!("sql/finished_ids.sql"), [count])?;
    Ok(())
}
