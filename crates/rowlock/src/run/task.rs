//! The one place where tasks and threads begin: named, their panics logged, joined at the end.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::task::Poll;

use tokio::task::JoinSet;

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

/// Turns a panic of `work` into its message.
///
/// # Errors
/// The panic's message.
pub async fn catch<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|cx| {
        // After a panic the future is only dropped, so nobody sees a half-changed state.
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(words(&*panic))),
        }
    })
    .await
}

fn words(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
