//! Threads that own a connection. Callers hand in closures and await the answers.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::run::task::Thread;

/// Which queue a piece of work waits in. Claims and settles keep a share of every transaction, so
/// that producers can't starve workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Work,
    Stage,
}

/// A piece of work that may be run a second time, after a rollback.
pub(super) trait Errand: Send {
    fn run(&mut self, connection: &Connection) -> Result<()>;
    fn answer(self: Box<Self>, outcome: Result<()>);
    /// How many rows it is about; bounds a transaction.
    fn weight(&self) -> usize;
    /// Whether it may have made something claimable.
    fn rings(&self) -> bool;
}

struct Task<F, T> {
    work: F,
    value: Option<T>,
    reply: oneshot::Sender<Result<T>>,
    weight: usize,
    rings: bool,
}

impl<F, T> Errand for Task<F, T>
where
    F: FnMut(&Connection) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> Result<()> {
        self.value = Some((self.work)(connection)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let value = self
            .value
            .ok_or_else(|| Error::Bug("an errand ended without a value".to_owned()));
        // Whoever asked may have gone away; the store is right either way.
        let _ = self.reply.send(outcome.and(value));
    }

    fn weight(&self) -> usize {
        self.weight
    }

    fn rings(&self) -> bool {
        self.rings
    }
}

#[derive(Default)]
struct Waiting {
    work: VecDeque<Box<dyn Errand>>,
    stage: VecDeque<Box<dyn Errand>>,
    watched: bool,
    closed: bool,
}

/// What a thread does next.
pub(super) enum Next {
    /// Run these together.
    Group(Vec<Box<dyn Errand>>),
    /// Nothing came for a while.
    Quiet,
    /// Nothing will come any more.
    Closed,
}

/// Where errands wait for their thread.
#[derive(Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

/// The most rows of each lane in one transaction: other processes get in between two of them.
const ROWS: usize = 1_000;

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks until there is something to do; once watched, not longer than `pause`.
    pub(super) fn next(&self, pause: Option<Duration>) -> Next {
        let mut waiting = self.lock();
        while waiting.work.is_empty() && waiting.stage.is_empty() {
            if waiting.closed {
                return Next::Closed;
            }
            let Some(pause) = pause.filter(|_| waiting.watched) else {
                let woken = self.arrived.wait(waiting);
                waiting = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let woken = self.arrived.wait_timeout(waiting, pause);
            let (back, time) = woken.unwrap_or_else(PoisonError::into_inner);
            waiting = back;
            if time.timed_out() && waiting.work.is_empty() && waiting.stage.is_empty() {
                return Next::Quiet;
            }
        }
        let mut group = take(&mut waiting.work);
        group.append(&mut take(&mut waiting.stage));
        Next::Group(group)
    }

    /// Whether somebody wants to hear of other processes' commits.
    pub(super) fn is_watched(&self) -> bool {
        self.lock().watched
    }

    /// Whether somebody waits.
    pub(super) fn has_more(&self) -> bool {
        let waiting = self.lock();
        !waiting.work.is_empty() || !waiting.stage.is_empty()
    }
}

fn take(lane: &mut VecDeque<Box<dyn Errand>>) -> Vec<Box<dyn Errand>> {
    let (mut rows, mut count) = (0, 0);
    for errand in lane.iter() {
        rows += errand.weight();
        if count > 0 && rows > ROWS {
            break;
        }
        count += 1;
    }
    lane.drain(..count).collect()
}

/// A thread with a connection of its own. Dropping it finishes what waits, then joins.
pub(super) struct Desk {
    inbox: Arc<Inbox>,
    _thread: Closing,
}

/// Closes the inbox before the thread is joined.
struct Closing {
    inbox: Arc<Inbox>,
    _thread: Thread,
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.inbox.lock().closed = true;
        self.inbox.arrived.notify_all();
    }
}

/// Turns everybody away once the thread has ended, be it by a panic: nobody waits for ever.
struct Shutting(Arc<Inbox>);

impl Drop for Shutting {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        waiting.closed = true;
        waiting.work.clear();
        waiting.stage.clear();
    }
}

impl Desk {
    /// Starts the thread; `serve` runs on it until the inbox is closed.
    pub(super) fn start(
        name: &'static str,
        serve: impl FnOnce(&Inbox) + Send + 'static,
    ) -> Result<Self> {
        let inbox = Arc::new(Inbox::default());
        let theirs = Shutting(Arc::clone(&inbox));
        let thread = Thread::start(name, move || serve(&theirs.0))?;
        Ok(Self {
            inbox: Arc::clone(&inbox),
            _thread: Closing {
                inbox,
                _thread: thread,
            },
        })
    }

    /// From now on the thread looks for other processes' commits.
    pub(super) fn watch(&self) {
        self.inbox.lock().watched = true;
        self.inbox.arrived.notify_one();
    }

    /// Runs `work` on the thread and waits for its answer.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        lane: Lane,
        weight: usize,
        rings: bool,
        work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let errand = Box::new(Task {
            work,
            value: None,
            reply,
            weight,
            rings,
        });
        {
            let mut waiting = self.inbox.lock();
            if waiting.closed {
                return Err(gone());
            }
            match lane {
                Lane::Work => waiting.work.push_back(errand),
                Lane::Stage => waiting.stage.push_back(errand),
            }
        }
        self.inbox.arrived.notify_one();
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn gone() -> Error {
    Error::Bug("the database thread is gone: start the process again".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_waits_for_a_thread_that_has_panicked() {
        let desk = Desk::start("rowlock-test", |inbox| {
            let Next::Group(mut group) = inbox.next(None) else {
                return;
            };
            let connection = Connection::open_in_memory().unwrap();
            let _ = group[0].run(&connection);
        });
        let desk = desk.unwrap();
        let panics = |_: &Connection| -> Result<()> { panic!("a bug of ours") };
        let first = desk.ask(Lane::Work, 1, false, panics).await;
        assert!(matches!(first, Err(Error::Bug(_))), "{first:?}");
        let second = desk.ask(Lane::Stage, 1, false, |_| Ok(())).await;
        assert!(matches!(second, Err(Error::Bug(_))), "{second:?}");
    }
}
