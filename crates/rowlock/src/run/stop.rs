//! Stopping: asked once, a worker finishes what runs; asked twice, it gives everything back.

use tokio::sync::watch;

use crate::error::{Error, Result};

/// How urgently a worker has been asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Never,
    Once,
    Twice,
}

/// Asks a worker to stop.
#[derive(Debug, Clone)]
pub struct Stopper(watch::Sender<Asked>);

/// What a worker looks at.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<Asked>);

impl Default for Stopper {
    fn default() -> Self {
        Self(watch::channel(Asked::Never).0)
    }
}

impl Stopper {
    /// Asks; a second call means: at once.
    pub fn ask(&self) {
        self.0.send_modify(|asked| {
            *asked = match asked {
                Asked::Never => Asked::Once,
                _ => Asked::Twice,
            };
        });
    }

    /// For the worker.
    #[must_use]
    pub fn stop(&self) -> Stop {
        Stop(self.0.subscribe())
    }
}

impl Stop {
    /// Ends when the worker was asked to stop.
    pub async fn asked(&mut self) {
        self.reaches(Asked::Once).await;
    }

    /// Ends when the worker was asked a second time.
    pub async fn asked_twice(&mut self) {
        self.reaches(Asked::Twice).await;
    }

    async fn reaches(&mut self, level: Asked) {
        if self.0.wait_for(|asked| *asked >= level).await.is_err() {
            // Nobody is left who could ask.
            std::future::pending::<()>().await;
        }
    }
}

/// SIGTERM and Ctrl-C, caught from the moment this exists: make it before saying that you are ready.
#[cfg(unix)]
#[derive(Debug)]
pub struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// From here on these signals no longer end the process by themselves.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the system refuses.
    pub fn listen() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| {
            signal(kind).map_err(|why| Error::Unavailable(format!("can't wait for signals: {why}")))
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Ends at the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Asks the stopper at every signal, for as long as it is polled.
    pub async fn ask(mut self, stopper: &Stopper) -> std::convert::Infallible {
        loop {
            self.next().await;
            stopper.ask();
        }
    }
}
