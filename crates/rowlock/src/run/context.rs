//! What a handler knows about the attempt it makes.

use std::ops::Deref;
use std::sync::Arc;

use crate::claim::ClaimedJob;
use crate::clock::Clock;

/// One attempt at a job. It can be used like the [`ClaimedJob`] itself.
#[derive(Debug, Clone)]
pub struct Context {
    job: Arc<ClaimedJob>,
    clock: Clock,
}

impl Context {
    pub(super) fn new(job: Arc<ClaimedJob>, clock: Clock) -> Self {
        Self { job, clock }
    }

    /// The clock the worker lives by.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
}

impl Deref for Context {
    type Target = ClaimedJob;
    fn deref(&self) -> &ClaimedJob {
        &self.job
    }
}
