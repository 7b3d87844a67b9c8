//! The one place where tasks and threads begin: named, their panics logged, joined at the end.

use std::any::Any;
use std::future::Future;

use tokio::task::{JoinHandle, JoinSet};

use crate::error::{Error, Result};

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
            tracing::error!(thread = name, panic = words(&*panic), "a thread panicked");
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
                tracing::error!(task = name, panic, "a task panicked");
            }
        });
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

/// Runs work on a task of its own and turns a panic into its message.
///
/// # Errors
/// The panic's message.
pub async fn catch<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, String> {
    #[expect(clippy::disallowed_methods, reason = "joined right here")]
    let task = Aborting(tokio::spawn(work));
    task.await
}

/// Ends the task when nobody waits for it any more.
struct Aborting<T>(JoinHandle<T>);

impl<T> Future for Aborting<T> {
    type Output = Result<T, String>;
    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(cx).map(|joined| {
            joined.map_err(|why| match why.try_into_panic() {
                Ok(panic) => words(&*panic),
                Err(why) => why.to_string(),
            })
        })
    }
}

impl<T> Drop for Aborting<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
