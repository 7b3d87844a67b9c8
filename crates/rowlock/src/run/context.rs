//! What a handler knows about the attempt it makes.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use crate::claim::ClaimedJob;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::settle::{Complete, CompleteBlocking, Completion};

/// One attempt at a job. It can be used like the [`ClaimedJob`] itself.
#[derive(Debug, Clone)]
pub struct Context {
    job: Arc<ClaimedJob>,
    clock: Clock,
    started_at: Timestamp,
    /// Whether it was completed in a transaction of the handler's, which may or may not be committed.
    completed: Arc<AtomicBool>,
    /// Whether it came by a route: then its row isn't this worker's to complete.
    drained: bool,
}

impl Context {
    pub(super) fn new(
        job: Arc<ClaimedJob>,
        clock: Clock,
        completed: Arc<AtomicBool>,
        drained: bool,
    ) -> Self {
        Self {
            job,
            started_at: clock.now(),
            clock,
            completed,
            drained,
        }
    }

    /// The clock the worker lives by.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn started_at(&self) -> Timestamp {
        self.started_at
    }

    pub(super) fn completed(&self) -> bool {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("settle.uncommitted") {
            return false;
        }
        self.completed.load(Ordering::Relaxed)
    }

    /// Completes the job inside the handler's own transaction: its effect and its end are one commit.
    ///
    /// Commit, then return `Done`. If the transaction isn't committed, the job is tried again.
    ///
    /// # Errors
    /// [`Error::LeaseLost`](crate::Error::LeaseLost) when somebody else has the job now: roll back.
    /// [`Error::Invalid`](crate::Error::Invalid) for a job that came by a route. Otherwise as
    /// [`enqueue`](crate::enqueue).
    pub async fn complete_in(&self, tx: impl Complete) -> Result<()> {
        let completion = self.completion()?;
        // Before the write: the attempt may be dropped in the middle of it.
        let before = self.completed.swap(true, Ordering::Relaxed);
        let done = tx.complete(&completion).await;
        self.after(before, done)
    }

    /// [`complete_in`](Self::complete_in) by a call that blocks.
    ///
    /// # Errors
    /// As [`complete_in`](Self::complete_in); [`Error::Invalid`](crate::Error::Invalid) without an
    /// open transaction.
    pub fn complete_in_blocking(&self, tx: impl CompleteBlocking) -> Result<()> {
        let completion = self.completion()?;
        let before = self.completed.swap(true, Ordering::Relaxed);
        let done = tx.complete_blocking(&completion);
        self.after(before, done)
    }

    fn after(&self, before: bool, done: Result<()>) -> Result<()> {
        if done.is_err() {
            self.completed.store(before, Ordering::Relaxed);
        }
        done
    }

    fn completion(&self) -> Result<Completion> {
        if self.drained {
            return Err(Error::invalid(
                "complete_in needs a worker on the database itself: this job came by a route, and its \
                 row belongs to the drain",
            ));
        }
        Ok(Completion {
            id: self.job.id,
            token: self.job.token,
            started_at: Some(self.started_at),
            now: self.clock.now(),
            segment: self.job.segment,
        })
    }
}

impl Deref for Context {
    type Target = ClaimedJob;
    fn deref(&self) -> &ClaimedJob {
        &self.job
    }
}
