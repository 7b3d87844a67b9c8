//! Users' queries: on a thread and a connection of their own, and not for longer than they may take.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, InterruptHandle};
use tokio::sync::oneshot;

use super::connect::OpenFile;
use super::desk::{Desk, Lane, Next};
use crate::clock::Clock;
use crate::error::{Error, Result};

/// How often a statement is told to stop until it does. One that hasn't begun yet doesn't hear it.
const AGAIN: Duration = Duration::from_millis(10);

/// What opens the file, when somebody asks for the first time and after the file was replaced.
pub(super) type Open = Box<dyn Fn() -> Result<(Connection, OpenFile)> + Send>;

/// A thread that reads, and can be told to stop.
pub(super) struct Bounded {
    desk: Desk,
    clock: Clock,
    current: Arc<Mutex<Current>>,
}

/// What runs now, and how it is stopped.
#[derive(Default)]
struct Current {
    interrupt: Option<InterruptHandle>,
    ticket: Option<Arc<()>>,
}

impl Bounded {
    pub(super) fn start(name: &'static str, clock: Clock, open: Open) -> Result<Self> {
        let current = Arc::<Mutex<Current>>::default();
        let theirs = Arc::clone(&current);
        let desk = Desk::start(name, move |inbox| {
            let mut opened: Option<(Connection, OpenFile)> = None;
            while let Next::Group(group) = inbox.next(None) {
                for mut errand in group {
                    if opened
                        .as_ref()
                        .is_some_and(|(_, file)| file.check().is_err())
                    {
                        opened = None;
                    }
                    let ready = match opened.take() {
                        Some(ready) => Ok(ready),
                        None => open(),
                    };
                    let outcome = ready.and_then(|ready| {
                        let (on, _) = opened.insert(ready);
                        lock(&theirs).interrupt = Some(on.get_interrupt_handle());
                        errand.run(on)
                    });
                    errand.answer(outcome);
                }
            }
        })?;
        Ok(Self {
            desk,
            clock,
            current,
        })
    }

    /// Runs `work` on the thread; the limit counts from when it begins.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        limit: Duration,
        mut work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let ticket = Arc::new(());
        let stop = Stop {
            current: Arc::clone(&self.current),
            ticket: Arc::clone(&ticket),
        };
        let (begins, begun) = oneshot::channel();
        let (mut begins, current) = (Some(begins), Arc::clone(&self.current));
        let work = move |on: &Connection| {
            // Whoever asked has gone away.
            if begins.take().is_none_or(|begins| begins.send(()).is_err()) {
                return Err(timed_out(limit));
            }
            lock(&current).ticket = Some(Arc::clone(&ticket));
            let done = work(on);
            lock(&current).ticket = None;
            done
        };
        let mut answer = pin!(self.desk.ask(Lane::Work, 1, false, work));
        tokio::select! {
            biased;
            done = &mut answer => return done,
            _ = begun => {}
        }
        if let Some(done) = self.clock.timeout(limit, &mut answer).await {
            return done;
        }
        let done = stop.until(answer).await;
        done.or_else(|_| Err(timed_out(limit)))
    }
}

/// Stops one piece of work and no other, also when nobody waits for its answer any more.
struct Stop {
    current: Arc<Mutex<Current>>,
    ticket: Arc<()>,
}

impl Stop {
    fn now(&self) {
        let current = lock(&self.current);
        let ours = |running: &Arc<()>| Arc::ptr_eq(running, &self.ticket);
        if current.ticket.as_ref().is_some_and(ours)
            && let Some(interrupt) = &current.interrupt
        {
            interrupt.interrupt();
        }
    }

    async fn until<T>(&self, answer: impl Future<Output = T> + Unpin) -> T {
        let mut answer = answer;
        loop {
            self.now();
            if let Some(done) = Clock::system().timeout(AGAIN, &mut answer).await {
                return done;
            }
        }
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.now();
    }
}

fn lock(current: &Mutex<Current>) -> MutexGuard<'_, Current> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}

fn timed_out(limit: Duration) -> Error {
    let limit = humantime::format_duration(limit);
    Error::invalid(format!("timed out after {limit}"))
}
