//! Ctrl-C while loading: the batch is finished, and the user hears how to go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use rowlock::run::task::Tasks;
use tokio::signal::unix::{SignalKind, signal};

use crate::{exit, out};

/// Whether somebody wants us to stop. Listening ends when this is dropped.
pub struct Interrupt {
    came: Arc<AtomicBool>,
    _listening: Tasks,
}

impl Interrupt {
    /// Begins to listen. A second signal ends the process at once: a commit is whole or not there.
    ///
    /// # Errors
    /// When the system won't tell us of signals.
    pub fn listen() -> Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt()).context("can't wait for SIGINT")?;
        let mut terminate = signal(SignalKind::terminate()).context("can't wait for SIGTERM")?;
        let came = Arc::new(AtomicBool::new(false));
        let mut listening = Tasks::default();
        let told = Arc::clone(&came);
        listening.start("interrupt", async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if told.swap(true, Ordering::Relaxed) {
                    std::process::exit(i32::from(exit::FAILED));
                }
                out::note("stopping after this line (again: at once)");
            }
        });
        Ok(Self {
            came,
            _listening: listening,
        })
    }

    /// Whether a signal came.
    pub fn came(&self) -> bool {
        self.came.load(Ordering::Relaxed)
    }
}
