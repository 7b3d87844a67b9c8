//! Users' queries: on a thread and a connection of their own, and not for longer than they may take.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::connect;
use super::desk::{Desk, Lane, Next};
use super::opened::Opened;
use crate::clock::Clock;
use crate::error::{Error, Result};

/// What opens the file, when somebody asks for the first time and after the file was replaced.
pub(super) type Open = Box<dyn Fn() -> Result<Opened> + Send>;

/// A thread that reads, and can be told to stop.
pub(super) struct Bounded {
    desk: Desk,
    clock: Clock,
    current: Current,
}

/// Whether what runs now is to stop. SQLite asks for it every few steps, so that a statement that
/// has not begun yet hears it too.
#[derive(Clone, Default)]
struct Current(Arc<Mutex<Arc<AtomicBool>>>);

impl Current {
    fn begin(&self, stop: &Arc<AtomicBool>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(stop);
    }

    fn stops(&self) -> bool {
        let current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        current.load(Ordering::Relaxed)
    }
}

impl Bounded {
    pub(super) fn start(name: &'static str, clock: Clock, open: Open) -> Result<Self> {
        let current = Current::default();
        let theirs = current.clone();
        let desk = Desk::start(name, move |inbox| {
            let mut opened: Option<Opened> = None;
            while let Next::Group(group) = inbox.next(None) {
                for mut errand in group {
                    if opened.as_ref().is_some_and(|file| file.check().is_err()) {
                        opened = None;
                    }
                    let ready = match opened.take() {
                        Some(ready) => Ok(ready),
                        None => open().and_then(|ready| stoppable(ready, &theirs)),
                    };
                    let outcome =
                        ready.and_then(|ready| errand.run(opened.insert(ready).connection()));
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
        let stop = Stop(Arc::default());
        let (begins, begun) = oneshot::channel();
        let (mut begins, current, theirs) =
            (Some(begins), self.current.clone(), Arc::clone(&stop.0));
        let work = move |on: &Connection| {
            current.begin(&theirs);
            // Whoever asked may have gone away.
            if begins.take().is_none_or(|begins| begins.send(()).is_err()) {
                return Err(timed_out(limit));
            }
            work(on)
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
        drop(stop);
        answer.await.map_err(|_| timed_out(limit))
    }
}

fn stoppable(mut opened: Opened, current: &Current) -> Result<Opened> {
    let current = current.clone();
    connect::stop_when(opened.connection_mut(), move || current.stops())?;
    Ok(opened)
}

/// Stops one piece of work and no other, once nobody waits for its answer any more.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn timed_out(limit: Duration) -> Error {
    let limit = humantime::format_duration(limit);
    Error::invalid(format!("timed out after {limit}"))
}
