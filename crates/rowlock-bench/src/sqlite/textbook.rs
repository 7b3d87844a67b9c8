//! The canonical queue: one table with text ids and a row at a time, as textbooks teach it. Here
//! with prepared statements, kept connections, and the same settings as ours.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rowlock::run::task::Thread;
use rusqlite::{Connection, OptionalExtension, params};

use super::connect::open;
use super::{KIND, PAYLOAD};
use crate::Place;
use crate::stopwatch::Stopwatch;

const ENQUEUE: &str = include_str!("sql/textbook_enqueue.sql");
const DEQUEUE: &str = include_str!("sql/textbook_dequeue.sql");
const COMPLETE: &str = include_str!("sql/textbook_complete.sql");

/// A new queue with so many jobs waiting.
pub(super) fn create(path: &Path, jobs: usize) -> Result<()> {
    let connection = open(path)?;
    connection.execute_batch(include_str!("sql/textbook.sql"))?;
    insert(&connection, jobs, 1_000)
}

/// The same queue with the index that it lacks.
pub(super) fn add_index(path: &Path) -> Result<()> {
    Ok(open(path)?.execute_batch(include_str!("sql/textbook_index.sql"))?)
}

/// Jobs in transactions of `batch`.
pub(super) fn bulk(path: &Path, jobs: usize, batch: usize) -> Result<f64> {
    let connection = open(path)?;
    let watch = Stopwatch::start();
    insert(&connection, jobs, batch)?;
    Ok(watch.rate(jobs))
}

fn insert(connection: &Connection, jobs: usize, batch: usize) -> Result<()> {
    let mut statement = connection.prepare(ENQUEUE)?;
    for start in (0..jobs).step_by(batch) {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for _ in start..jobs.min(start + batch) {
            statement.execute(params![uuid()?, KIND, PAYLOAD])?;
        }
        connection.execute_batch("COMMIT")?;
    }
    Ok(())
}

/// One job a commit: by one producer, and by one or by sixteen, whichever is faster.
pub(super) fn enqueue(place: &Place, jobs: usize) -> Result<(f64, f64)> {
    let run = |producers: usize| {
        let path = place.file("textbook.db");
        place.remove(&path);
        create(&path, 0)?;
        let share = jobs.div_ceil(producers);
        let watch = Stopwatch::start();
        let made = together(&path, producers, move |connection, _| {
            insert(connection, share, 1).map(|()| share)
        })?;
        anyhow::Ok(watch.rate(made))
    };
    let by_one = run(1)?;
    Ok((by_one, run(16)?.max(by_one)))
}

/// Jobs taken and completed one by one until the time is over, by one worker or by sixteen,
/// whichever is faster.
pub(super) fn drain(place: &Place, full: &Path, patience: Duration) -> Result<f64> {
    best(|workers| {
        let path = place.copy(full, "textbook.db")?;
        let watch = Stopwatch::start();
        let done = together(&path, workers, move |connection, name| {
            let mut dequeue = connection.prepare(DEQUEUE)?;
            let mut complete = connection.prepare(COMPLETE)?;
            let (mut done, watch) = (0, Stopwatch::start());
            while watch.elapsed() < patience {
                let id: Option<String> = dequeue.query_row([&name], |row| row.get(0)).optional()?;
                let Some(id) = id else { break };
                ensure!(complete.execute([id])? == 1, "a job was not completed");
                done += 1;
            }
            Ok(done)
        })?;
        ensure!(done > 0, "the textbook's queue did nothing");
        Ok(watch.rate(done))
    })
}

fn best(run: impl Fn(usize) -> Result<f64>) -> Result<f64> {
    Ok(run(1)?.max(run(16)?))
}

/// Runs `work` on so many threads, each with a connection of its own; the sum of their answers.
fn together(
    path: &Path,
    threads: usize,
    work: impl Fn(&Connection, String) -> Result<usize> + Copy + Send + 'static,
) -> Result<usize> {
    let (answers, all) = channel();
    let mut running = Vec::new();
    for n in 0..threads {
        let (path, answers): (PathBuf, _) = (path.to_owned(), answers.clone());
        running.push(Thread::start("textbook", move || {
            let answer = open(&path).and_then(|on| work(&on, format!("worker-{n}")));
            // The receiver waits for every thread.
            let _ = answers.send(answer);
        })?);
    }
    drop(answers);
    let mut sum = 0;
    for answer in all {
        sum += answer.context("the textbook's queue failed")?;
    }
    Ok(sum)
}

/// A random id of version 4, as text.
fn uuid() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).context("no randomness")?;
    let n = u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{n:032x}");
    let (a, b, c, d, e) = (
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    );
    Ok(format!("{a}-{b}-{c}-{d}-{e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_of_version_4() {
        let id = uuid().unwrap();
        assert_eq!(id.len(), 36, "{id}");
        assert_eq!(&id[14..15], "4", "{id}");
        assert!("89ab".contains(&id[19..20]), "{id}");
        assert_ne!(id, uuid().unwrap());
    }
}
