//! How much is measured.

use std::time::Duration;

/// The sizes of every load.
#[derive(Debug, Clone)]
pub struct Size {
    /// How often ours, limit and canonical take turns.
    pub rounds: usize,
    /// How often two states of ours take turns.
    pub alternations: usize,
    /// Jobs enqueued by one producer.
    pub by_one: usize,
    /// Jobs enqueued by 16 producers.
    pub by_some: usize,
    /// Jobs enqueued by 256 producers.
    pub by_many: usize,
    /// Jobs enqueued in batches.
    pub bulk: usize,
    /// Jobs waiting before a drain.
    pub backlog: usize,
    /// How long the canonical queue may drain.
    pub patience: Duration,
    /// Finished jobs behind.
    pub finished: usize,
    /// Jobs waiting before a drain with finished jobs behind.
    pub backlog_behind: usize,
    /// Jobs whose start is timed, at a hundred a second.
    pub starts: usize,
    /// The same, at five a second.
    pub rare_starts: usize,
    /// How long an idle worker is watched.
    pub idle: Duration,
}

impl Size {
    /// For figures.
    #[must_use]
    pub fn full() -> Self {
        Self {
            rounds: 3,
            alternations: 5,
            by_one: 1_000,
            by_some: 20_000,
            by_many: 60_000,
            bulk: 100_000,
            backlog: 200_000,
            patience: Duration::from_secs(3),
            finished: 1_000_000,
            backlog_behind: 100_000,
            starts: 500,
            rare_starts: 50,
            idle: Duration::from_secs(10),
        }
    }

    /// For shape and counts: its times mean nothing.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            rounds: 1,
            alternations: 1,
            by_one: 16,
            by_some: 64,
            by_many: 256,
            bulk: 2_000,
            backlog: 500,
            patience: Duration::from_millis(50),
            finished: 1_000,
            backlog_behind: 200,
            starts: 10,
            rare_starts: 2,
            idle: Duration::from_millis(100),
        }
    }
}
