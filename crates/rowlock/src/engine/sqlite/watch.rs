//! Wake-up across processes: another connection's commit changes `data_version`.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use crate::engine::Bell;
use crate::error::Result;
use crate::run::task::Thread;

/// Looks often after a change and less and less often when nothing happens.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(25);

/// A thread that rings the bell when somebody else has committed.
pub(super) struct Watch {
    stop: Arc<Stop>,
    _thread: Thread,
}

#[derive(Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self
            .stop
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.changed.notify_all();
    }
}

impl Watch {
    pub(super) fn start(connection: Connection, bell: Bell) -> Result<Self> {
        let stop = Arc::new(Stop::default());
        let theirs = Arc::clone(&stop);
        let thread = Thread::start("rowlock-watch", move || {
            watch(&connection, &bell, &theirs);
        })?;
        Ok(Self {
            stop,
            _thread: thread,
        })
    }
}

fn watch(connection: &Connection, bell: &Bell, stop: &Stop) {
    let mut latest = version(connection);
    let mut wait = SHORTEST;
    loop {
        let asked = stop.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, _) = stop
            .changed
            .wait_timeout_while(asked, wait, |asked| !*asked)
            .unwrap_or_else(PoisonError::into_inner);
        if *asked {
            return;
        }
        drop(asked);
        let now = version(connection);
        if now == latest {
            wait = (wait * 2).min(LONGEST);
        } else {
            latest = now;
            wait = SHORTEST;
            bell.ring();
        }
    }
}

/// A failed look counts as no change: the claim that follows a poll will meet the same error.
fn version(connection: &Connection) -> Option<i64> {
    connection
        .pragma_query_value(None, "data_version", |row| row.get(0))
        .ok()
}
