//! The one place where tasks and threads begin: named, their panics logged, joined at the end.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinSet;

use super::Pulse;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::event;
use crate::log;

/// The pauses before a task is started again that keeps panicking.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);
/// A task that has run for so long was started again with success.
const STEADY: Duration = Duration::from_secs(10);

/// A named thread that is joined when this is dropped.
#[derive(Debug)]
pub struct Thread(Option<std::thread::JoinHandle<()>>);

impl Thread {
    /// Starts it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the system has no thread to give.
    pub fn start(name: &'static str, work: impl FnOnce() + Send + 'static) -> Result<Self> {
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .map(|handle| Self(Some(handle)))
            .map_err(|why| Error::Unavailable(format!("can't start the thread {name}: {why}")))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        let Some(handle) = self.0.take() else { return };
        let name = handle.thread().name().unwrap_or("?").to_owned();
        if let Err(panic) = handle.join() {
            let panic = words(panic);
            log::error!(thread = name, panic, "a thread panicked");
        }
    }
}

/// Tasks that end together.
#[derive(Debug, Default)]
pub struct Tasks(JoinSet<()>);

impl Tasks {
    /// Starts a task; a panic in it is logged and ends only that task.
    pub fn start(&mut self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(async move {
            if let Err(panic) = catch(work).await {
                log::error!(task = name, panic, "a task panicked");
            }
        });
    }

    /// Starts a task that the process can't do without. One that panics is started again: at once, and if it keeps
    /// panicking after pauses, in which `pulse` says that it is missing.
    pub(crate) fn keep<W>(
        &mut self,
        name: &'static str,
        pulse: &Pulse,
        work: impl FnMut() -> W + Send + 'static,
    ) where
        W: Future<Output = ()> + Send + 'static,
    {
        self.0.spawn(keep(name, pulse.clone(), work));
    }

    /// Waits until all have ended.
    pub async fn join(&mut self) {
        while self.0.join_next().await.is_some() {}
    }

    /// Forgets those that have ended.
    pub fn tidy(&mut self) {
        while self.0.try_join_next().is_some() {}
    }
}

async fn keep<W: Future<Output = ()>>(
    name: &'static str,
    pulse: Pulse,
    mut work: impl FnMut() -> W,
) {
    // Real time, also under a manual clock: it is about this process alone.
    let clock = Clock::system();
    let mut pause = Duration::ZERO;
    loop {
        let began = clock.elapsed();
        let Err(panic) = catch(async { work().await }).await else {
            return;
        };
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("task.started_again") {
            return;
        }
        if clock.elapsed().saturating_sub(began) >= STEADY {
            pause = Duration::ZERO;
        }
        if !pause.is_zero() {
            pulse.lacks(name);
        }
        event::task_panicked(name);
        log::error!(task = name, panic, "a task panicked and is started again");
        if !pause.is_zero() {
            clock.sleep(pause).await;
            pulse.has(name);
        }
        pause = (pause * 2).clamp(SHORTEST, LONGEST);
    }
}

/// Turns a panic of `work` into its message.
///
/// # Errors
/// The panic's message.
pub async fn catch<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|cx| {
        // After a panic the future is only dropped, so nobody sees a half-changed state.
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(words(panic))),
        }
    })
    .await
}

/// A panic's message.
pub(crate) fn words(panic: Box<dyn Any + Send>) -> String {
    let words = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    // What a panic carries may panic when it is dropped, and so on.
    if let Err(worse) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(worse);
    }
    words
}
