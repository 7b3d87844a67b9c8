//! The one writer of a process: what waits together is committed together.
//!
//! One fsync then serves everybody who waited, which is what makes `synchronous=FULL` fast. An
//! errand that fails takes nobody along: the group is rolled back and run again with a savepoint
//! around each errand.

use std::time::Duration;

use rusqlite::Connection;

use super::desk::{Errand, Inbox, Next};
use super::error::map;
use super::opened::Opened;
use crate::clock::{Clock, Elapsed};
use crate::engine::Bell;
use crate::error::{Error, Result};

/// Serves the inbox until it is closed, and rings when another process has committed.
pub(super) fn serve(file: &Opened, inbox: &Inbox, bell: &Bell) {
    let connection = file.connection();
    let mut turn = Turn::default();
    let mut watch = Watch::new(connection);
    loop {
        let group = match inbox.next(Some(watch.pause)) {
            Next::Closed => return,
            Next::Quiet => {
                watch.look(connection, inbox, bell);
                continue;
            }
            Next::Group(group) => group,
        };
        let rings = group.iter().any(|errand| errand.rings());
        if commit_together(file, group) && rings {
            bell.ring();
        }
        watch.look(connection, inbox, bell);
        if inbox.has_more() {
            turn.let_others_in();
        } else {
            turn = Turn::default();
        }
    }
}

/// Wake-up across processes: another connection's commit changes this connection's `data_version`,
/// a commit of its own doesn't.
struct Watch {
    latest: Option<i64>,
    pause: Duration,
}

/// It looks often after a change and less and less often when nothing happens.
const SHORTEST_LOOK: Duration = Duration::from_millis(2);
const LONGEST_LOOK: Duration = Duration::from_millis(25);

impl Watch {
    fn new(connection: &Connection) -> Self {
        Self {
            latest: version(connection),
            pause: SHORTEST_LOOK,
        }
    }

    fn look(&mut self, connection: &Connection, inbox: &Inbox, bell: &Bell) {
        if !inbox.is_watched() {
            return;
        }
        match version(connection) {
            // A failed look counts as no change: the next transaction will meet the same error.
            None => {}
            now if now == self.latest => self.pause = (self.pause * 2).min(LONGEST_LOOK),
            now => {
                self.latest = now;
                self.pause = SHORTEST_LOOK;
                bell.ring();
            }
        }
    }
}

fn version(connection: &Connection) -> Option<i64> {
    let read = connection.pragma_query_value(None, "data_version", |row| row.get(0));
    read.ok()
}

/// Whether anything was committed.
fn commit_together(file: &Opened, mut group: Vec<Box<dyn Errand>>) -> bool {
    match in_transaction(file, || run_all(file.connection(), &mut group)) {
        Ok(()) => {
            answer_all(group, &Ok(()));
            true
        }
        // Nothing was run, or nothing can be run: it concerns everybody alike.
        Err(Failure::Store(why)) => {
            answer_all(group, &Err(why));
            false
        }
        Err(Failure::Errand(why)) if group.len() == 1 => {
            answer_all(group, &Err(why));
            false
        }
        Err(Failure::Errand(_)) => commit_apart(file, group),
    }
}

fn commit_apart(file: &Opened, mut group: Vec<Box<dyn Errand>>) -> bool {
    let connection = file.connection();
    let mut outcomes = Vec::with_capacity(group.len());
    let committed = in_transaction(file, || {
        outcomes.clear();
        for errand in &mut group {
            outcomes.push(in_savepoint(connection, errand.as_mut())?);
        }
        Ok(())
    });
    match committed {
        Ok(()) => {
            for (errand, outcome) in group.into_iter().zip(outcomes) {
                errand.answer(outcome);
            }
            true
        }
        Err(Failure::Store(why) | Failure::Errand(why)) => {
            answer_all(group, &Err(why));
            false
        }
    }
}

enum Failure {
    Store(Error),
    Errand(Error),
}

fn in_transaction(
    file: &Opened,
    body: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    file.check().map_err(Failure::Store)?;
    let connection = file.connection();
    let step = |sql: &str| {
        connection
            .execute_batch(sql)
            .map_err(|why| Failure::Store(map(why, "committing")))
    };
    // The lock comes first: a transaction that read before it wrote would fail on a rival's commit.
    #[cfg_attr(
        not(feature = "test-hooks"),
        expect(unused_mut, reason = "for mutants")
    )]
    let mut begin = "BEGIN IMMEDIATE";
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("write.lock_first") {
        begin = "BEGIN DEFERRED";
    }
    step(begin)?;
    let done = body().and_then(|()| step("COMMIT"));
    if done.is_ok() {
        crash_point!("write.committed");
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("commit.check_again") {
            return done;
        }
        // Files that went away during the commit took it along: nothing of it may be acknowledged.
        return file.check().map_err(Failure::Store);
    }
    if !connection.is_autocommit() {
        // Best effort: SQLite has rolled back by itself after most of the errors that get here.
        let _ = connection.execute_batch("ROLLBACK");
    }
    done
}

fn run_all(connection: &Connection, group: &mut [Box<dyn Errand>]) -> Result<(), Failure> {
    for errand in group {
        let outcome = errand.run(connection);
        outcome.map_err(|why| failure(connection, why))?;
    }
    Ok(())
}

/// After some errors (no space, I/O) SQLite has rolled everything back: that concerns everybody.
fn failure(connection: &Connection, why: Error) -> Failure {
    match connection.is_autocommit() {
        true => Failure::Store(why),
        false => Failure::Errand(why),
    }
}

fn in_savepoint(connection: &Connection, errand: &mut dyn Errand) -> Result<Result<()>, Failure> {
    let step = |sql: &str| {
        connection
            .execute_batch(sql)
            .map_err(|why| Failure::Store(map(why, "committing")))
    };
    step("SAVEPOINT errand")?;
    let outcome = errand.run(connection);
    if let Err(why) = &outcome {
        if connection.is_autocommit() {
            return Err(Failure::Store(why.clone()));
        }
        step("ROLLBACK TO errand")?;
    }
    step("RELEASE errand")?;
    Ok(outcome)
}

fn answer_all(group: Vec<Box<dyn Errand>>, outcome: &Result<()>) {
    for errand in group {
        errand.answer(outcome.clone());
    }
}

/// How long this process has had the lock without a pause.
#[derive(Default)]
struct Turn(Option<Elapsed>);

const LONGEST_TURN: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(1);

impl Turn {
    /// SQLite's lock has no queue: without a pause now and then, others would wait for luck.
    fn let_others_in(&mut self) {
        let now = Clock::system().elapsed();
        let since = *self.0.get_or_insert(now);
        if now.saturating_sub(since) >= LONGEST_TURN {
            #[expect(
                clippy::disallowed_methods,
                reason = "a pause for other processes' sake"
            )]
            std::thread::sleep(PAUSE);
            self.0 = None;
        }
    }
}
