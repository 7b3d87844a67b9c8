//! The bell: something may have become claimable.

use tokio::sync::watch;

/// Rings for every listener of one engine handle.
#[derive(Debug, Clone)]
pub struct Bell(watch::Sender<u64>);

impl Default for Bell {
    fn default() -> Self {
        Self(watch::channel(0).0)
    }
}

impl Bell {
    /// Wakes everybody who listens; whoever listens later has missed nothing it needs.
    pub fn ring(&self) {
        self.0.send_modify(|rings| *rings = rings.wrapping_add(1));
    }

    /// A new listener.
    #[must_use]
    pub fn listen(&self) -> Wakeups {
        Wakeups(self.0.subscribe())
    }
}

/// A listener. Rings between two waits count as one.
#[derive(Debug)]
pub struct Wakeups(watch::Receiver<u64>);

impl Wakeups {
    /// Waits for the next ring.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // The engine is gone: nothing will ring any more.
            std::future::pending::<()>().await;
        }
    }

    /// Forgets rings so far: call it before looking, so that no ring after the look is missed.
    pub fn mark(&mut self) {
        let _ = self.0.borrow_and_update();
    }
}
