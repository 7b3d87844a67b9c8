//! Handlers: what runs a job.

use std::future::Future;

use async_trait::async_trait;

use super::Context;
use crate::settle::Outcome;

/// Runs jobs of one kind. It may be dropped at any await: at a timeout, a cancel, or a lost lease.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Runs one attempt. A panic counts as a failed attempt.
    async fn run(&self, cx: &Context) -> Outcome;

    /// Waits for what dropped attempts have left behind. A worker that ends calls it last.
    async fn close(&self) {}
}

#[async_trait]
impl<F, Fut> Handler for F
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Outcome> + Send,
{
    async fn run(&self, cx: &Context) -> Outcome {
        self(cx.clone()).await
    }
}
