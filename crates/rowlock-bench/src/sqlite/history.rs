//! Ours against ours: the same loads with a million finished jobs behind.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rowlock::Clock;
use rusqlite::params;

use super::latency::Start;
use super::{KIND, PAYLOAD, connect, ours};
use crate::stopwatch::as_f64;
use crate::{Measurement, Place, Progress, Size};

const GOAL: f64 = 0.8;

/// The loads, in the order in which [`throughput`] runs them.
const STEPS: [&str; 6] = [
    "enqueue_1_behind_history",
    "enqueue_16_behind_history",
    "enqueue_256_behind_history",
    "enqueue_bulk_behind_history",
    "drain_behind_history",
    "drain_without_history_behind_history",
];

/// Two stores that differ in their history: with jobs that wait, and without.
struct State {
    backlog: PathBuf,
    idle: PathBuf,
}

/// One load in the two states, and the empty one a second time.
#[derive(Default)]
struct Runs {
    behind: Vec<f64>,
    empty: Vec<f64>,
    again: Vec<f64>,
}

impl Runs {
    fn of(&mut self, state: usize) -> &mut Vec<f64> {
        match state {
            0 => &mut self.behind,
            1 => &mut self.empty,
            _ => &mut self.again,
        }
    }

    fn measurement(&self, step: &'static str, jobs: usize, finished: usize) -> Measurement {
        Measurement::new(step, "jobs/s", jobs)
            .ours(&self.behind)
            .with("finished", as_f64(finished))
            .without(&self.empty, &self.again, GOAL)
    }
}

pub(super) async fn measure(
    size: &Size,
    place: &Place,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    let finished = size.finished;
    say(&format!("writing {finished} finished jobs"));
    let behind = state(size, place, "behind", finished).await?;
    let empty = state(size, place, "empty", 0).await?;
    let mut runs: [Runs; STEPS.len()] = Default::default();
    let mut jobs = [0; STEPS.len()];
    for round in 1..=size.alternations {
        say(&format!(
            "with {finished} finished jobs behind, round {round} of {}",
            size.alternations
        ));
        for turn in 0..3 {
            let state = if turn == 0 { &behind } else { &empty };
            let measured = throughput(size, place, state).await?;
            for (n, (handled, rate)) in measured.into_iter().enumerate() {
                jobs[n] = handled;
                runs[n].of(turn).push(rate);
            }
        }
    }
    let mut all: Vec<Measurement> = STEPS
        .iter()
        .zip(&runs)
        .zip(jobs)
        .map(|((step, runs), jobs)| runs.measurement(step, jobs, finished))
        .collect();
    for start in [
        Start::InProcess("start_in_process_behind_history"),
        Start::Across("start_across_processes_behind_history"),
    ] {
        let without = start.measure(size, place, &empty.idle, say).await?.ours;
        let made = start.measure(size, place, &behind.idle, say).await?;
        all.push(
            made.with("finished", as_f64(finished))
                .with("without", without),
        );
    }
    Ok(all)
}

async fn state(size: &Size, place: &Place, name: &str, finished: usize) -> Result<State> {
    let idle = place.file(&format!("{name}.db"));
    drop(ours::create(&idle)?);
    if finished > 0 {
        fill(&idle, finished)?;
    }
    let backlog = place.copy(&idle, &format!("{name}_backlog.db"))?;
    ours::bulk(&backlog, size.backlog_behind).await?;
    Ok(State { backlog, idle })
}

/// Every load once; how many jobs it handled, and how fast.
async fn throughput(
    size: &Size,
    place: &Place,
    state: &State,
) -> Result<[(usize, f64); STEPS.len()]> {
    let path = place.copy(&state.backlog, "ours.db")?;
    let one = ours::enqueue(&path, 1, size.by_one).await?.rate;
    let some = ours::enqueue(&path, 16, size.by_some).await?.rate;
    let many = ours::enqueue(&path, 256, size.by_many).await?.rate;
    let bulk = ours::bulk(&path, size.bulk).await?.rate;
    let all = size.backlog_behind + size.by_one + size.by_some + size.by_many + size.bulk;
    let kept = ours::drain(&path, all, true).await?.rate;
    let path = place.copy(&state.backlog, "ours.db")?;
    let unkept = ours::drain(&path, size.backlog_behind, false).await?.rate;
    Ok([
        (size.by_one, one),
        (size.by_some, some),
        (size.by_many, many),
        (size.bulk, bulk),
        (all, kept),
        (size.backlog_behind, unkept),
    ])
}

/// In bulk: what counts is that they are there.
pub(crate) fn fill(path: &Path, finished: usize) -> Result<()> {
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
