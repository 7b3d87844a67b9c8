//! Handlers: what runs a job.

use std::future::Future;

use async_trait::async_trait;

use crate::claim::ClaimedJob;
use crate::settle::Outcome;

/// Runs jobs of one kind. It may be dropped at any await: at a timeout, a cancel, or a lost lease.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Runs one attempt. A panic counts as a failed attempt.
    async fn run(&self, job: &ClaimedJob) -> Outcome;
}

#[async_trait]
impl<F, Fut> Handler for F
where
    F: Fn(ClaimedJob) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send,
{
    async fn run(&self, job: &ClaimedJob) -> Outcome {
        self(job.clone()).await
    }
}
