//! How long, and how fast.

use std::time::Duration;

use rowlock::Clock;

/// Started when it is made.
pub(crate) struct Stopwatch(Duration);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        now().saturating_sub(self.0)
    }

    /// So many a second since the start.
    pub(crate) fn rate(&self, jobs: usize) -> f64 {
        as_f64(jobs) / self.elapsed().as_secs_f64().max(1e-9)
    }
}

/// Since the machine started: on Linux the same for every process.
pub(crate) fn now() -> Duration {
    Clock::system().elapsed()
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub(crate) fn as_f64(count: usize) -> f64 {
    count as f64
}
