//! Completing in the handler's own transaction, through rusqlite. Every other driver has the same
//! cases in crates/rowlock-adapters.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rowlock::claim::WorkerId;
use rowlock::clock::Clock;
use rowlock::job::{Backoff, Record};
use rowlock::run::{Options, Stopper, Tally};
use rowlock::verify::{Ran, RanLog, check};
use rowlock::{Context, Error, Handler, JobState, Kind, NewJob, Outcome, Worker};
use rusqlite::Connection;

use super::home::File;
use crate::conformance::world::Home;

fn ran(home: &File) -> std::path::PathBuf {
    home.address().path.with_extension("ran")
}

/// How its attempts ended, by the worker's own log.
fn endings(home: &File) -> Vec<(String, bool)> {
    let log = std::fs::read_to_string(ran(home)).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let ends = lines.filter(|line: &serde_json::Value| line["event"] == "end");
    ends.map(|line| {
        let outcome = line["outcome"].as_str().unwrap().to_owned();
        (outcome, line["accepted"].as_bool().unwrap())
    })
    .collect()
}

/// Runs one job with `handler` until nothing is due.
fn run(home: &File, handler: impl Handler) -> (Tally, Record) {
    let mut kind = Kind::new("note").unwrap();
    kind.backoff = Backoff::Fixed {
        base: Duration::ZERO,
        jitter: 0.0,
    };
    let options = Options {
        once: true,
        ran: Some(Ran::open(ran(home)).unwrap()),
        ..Options::default()
    };
    let rowlock = home.open(Clock::system());
    let worker = Worker::new(rowlock.clone(), ())
        .options(options)
        .handle_kind(kind, handler);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let job = NewJob::new("note").unwrap();
        let id = rowlock.enqueue(&job).await.unwrap().id.unwrap();
        let stopper = Stopper::default();
        let tally = worker.run_until(stopper.stop()).await.unwrap();
        let job = rowlock.operate().job(id).await.unwrap().unwrap();
        (tally, job)
    })
}

fn noted(connection: &Connection) -> i64 {
    connection
        .query_row("SELECT count(*) FROM notes", [], |row| row.get(0))
        .unwrap()
}

fn application(home: &File) -> Connection {
    let connection = home.connect();
    connection
        .execute_batch("CREATE TABLE IF NOT EXISTS notes (text TEXT)")
        .unwrap();
    connection
}

/// One note in a transaction with the job's end; whether to commit it.
fn note(path: &std::path::Path, cx: &Context, commit: bool) -> Result<(), Error> {
    let mut connection = Connection::open(path).unwrap();
    let tx = connection.transaction().unwrap();
    tx.execute("INSERT INTO notes VALUES ('noted')", [])
        .unwrap();
    cx.complete_in_blocking(&tx)?;
    match commit {
        true => tx.commit().unwrap(),
        false => tx.rollback().unwrap(),
    }
    Ok(())
}

pub fn an_effect_that_was_rolled_back_is_tried_again() {
    let home = File::new();
    let connection = application(&home);
    let path = home.address().path;
    let attempts = AtomicUsize::new(0);
    let (tally, job) = run(&home, move |cx: Context| {
        let second = attempts.fetch_add(1, Ordering::Relaxed) == 1;
        note(&path, &cx, second).unwrap();
        async { Outcome::Done }
    });
    assert_eq!((tally.settled, tally.lost), (2, 0));
    assert_eq!((job.state, job.attempt), (JobState::Completed, 2));
    let ends = [
        ("retry".to_owned(), true),
        ("completed_in".to_owned(), true),
    ];
    assert_eq!(endings(&home), ends);
    let log = RanLog::read(ran(&home)).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let rowlock = home.open(Clock::system());
    let report = runtime.block_on(check(rowlock.operate(), None, Some(&log)));
    let report = report.unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(noted(&connection), 1);
}

pub fn a_late_completion_is_refused() {
    let home = File::new();
    let connection = application(&home);
    let path = home.address().path;
    let rival = WorkerId::random("rival").unwrap();
    let rowlock = home.open(Clock::system());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let lease = Options::default().lease;
    runtime
        .block_on(rowlock.engine().join(&rival, lease))
        .unwrap();
    let (tally, job) = run(&home, move |cx: Context| {
        let taken = format!("UPDATE rowlock_job SET token = token - 1, locked_by = '{rival}'");
        let other = Connection::open(&path).unwrap();
        other.execute_batch(&taken).unwrap();
        let late = note(&path, &cx, true);
        let outcome = match late {
            Err(Error::LeaseLost) => Outcome::Done,
            other => Outcome::Fail(format!("{other:?}")),
        };
        async { outcome }
    });
    assert_eq!((tally.settled, tally.lost), (0, 1));
    assert_eq!(job.state, JobState::Processing);
    assert_eq!(endings(&home), [("done".to_owned(), false)]);
    assert_eq!(noted(&connection), 0);
}
