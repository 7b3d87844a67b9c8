//! The thread that drives every connection of an engine or a sink: whatever runtime the application
//! has, and whatever blocks it, answers arrive.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::error::{Error, Result};
use crate::run::task::{Tasks, Thread};

/// Work that is started on the thread.
type Start = Box<dyn FnOnce(&mut Tasks) + Send>;

/// The thread; it ends with its last handle.
#[derive(Debug, Clone)]
pub(crate) struct Io(Arc<Running>);

#[derive(Debug)]
struct Running {
    inbox: Option<mpsc::UnboundedSender<Start>>,
    _thread: Thread,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Before the thread is joined.
        drop(self.inbox.take());
    }
}

/// Starts further tasks on the same thread.
#[derive(Debug, Clone)]
pub(crate) struct Starter(mpsc::WeakUnboundedSender<Start>);

impl Starter {
    pub(crate) fn start(
        &self,
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        if let Some(inbox) = self.0.upgrade() {
            // The thread reads as long as a sender is there.
            let _ = inbox.send(Box::new(move |tasks| tasks.start(name, work)));
        }
    }
}

impl Io {
    pub(crate) fn start(name: &'static str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|why| Error::Unavailable(format!("can't start the connections: {why}")))?;
        let (inbox, mut starts) = mpsc::unbounded_channel::<Start>();
        let thread = Thread::start(name, move || {
            runtime.block_on(async move {
                let mut tasks = Tasks::default();
                while let Some(start) = starts.recv().await {
                    tasks.tidy();
                    start(&mut tasks);
                }
                // Dropped with the runtime: whoever waits for an answer hears that nobody answers.
            });
        })?;
        Ok(Self(Arc::new(Running {
            inbox: Some(inbox),
            _thread: thread,
        })))
    }

    /// Runs `work` on the thread and waits for its answer.
    pub(crate) async fn run<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(Starter) -> F,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let gone = || Error::Unavailable("the store is being closed".to_owned());
        let inbox = self.0.inbox.as_ref().ok_or_else(gone)?;
        let future = work(Starter(inbox.downgrade()));
        let start: Start = Box::new(move |tasks| {
            tasks.start(name, async move {
                // Whoever asked may have gone away.
                let _ = reply.send(future.await);
            });
        });
        inbox.send(start).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }

    /// For tasks that live as long as the engine.
    pub(crate) fn starter(&self) -> Result<Starter> {
        let inbox = self.0.inbox.as_ref();
        inbox
            .map(|inbox| Starter(inbox.downgrade()))
            .ok_or_else(|| Error::Unavailable("the store is being closed".to_owned()))
    }
}
