//! Typed handlers: `async fn(job: J, cx: Cx<S>) -> rowlock::Result`.

use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Context, Handler};
use crate::error::Error;
use crate::job::Job;
use crate::settle::{Complete, CompleteBlocking, Outcome};

/// Why a handler couldn't finish: any error at all, turned into its words. It means: try again later.
#[derive(Debug)]
pub struct Failure(String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut words = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            words.push_str(": ");
            words.push_str(&inner.to_string());
            cause = inner.source();
        }
        Self(words)
    }
}

impl Failure {
    /// A failure in words.
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// The words.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a typed handler gets beside its job: the attempt, and the application's own state.
///
/// Fields and methods of the state can be used directly: `cx.cloud.create(...)`.
#[derive(Debug)]
pub struct Cx<S> {
    attempt: Context,
    state: Arc<S>,
}

impl<S> Cx<S> {
    /// The attempt: the job's id, how many attempts it had, its tags.
    #[must_use]
    pub fn attempt(&self) -> &Context {
        &self.attempt
    }

    /// The application's state.
    #[must_use]
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The key of this job and of no other, for the other end of an effect, see
    /// [`ClaimedJob::idempotency_key`](crate::claim::ClaimedJob::idempotency_key).
    ///
    /// # Errors
    /// As there.
    pub fn idempotency_key(&self) -> Result<String, Error> {
        self.attempt.idempotency_key()
    }

    /// Completes the job inside the handler's own transaction, see [`Context::complete_in`].
    ///
    /// # Errors
    /// As [`Context::complete_in`].
    pub async fn complete_in(&self, tx: impl Complete) -> Result<(), Error> {
        self.attempt.complete_in(tx).await
    }

    /// [`complete_in`](Self::complete_in) by a call that blocks.
    ///
    /// # Errors
    /// As [`Context::complete_in_blocking`].
    pub fn complete_in_blocking(&self, tx: impl CompleteBlocking) -> Result<(), Error> {
        self.attempt.complete_in_blocking(tx)
    }
}

impl<S> Deref for Cx<S> {
    type Target = S;
    fn deref(&self) -> &S {
        &self.state
    }
}

/// An async function as a handler.
pub(super) struct Typed<J, S, F> {
    pub(super) run: F,
    pub(super) state: Arc<S>,
    pub(super) job: PhantomData<fn(J)>,
}

#[async_trait]
impl<J, S, F, Fut> Handler for Typed<J, S, F>
where
    J: Job,
    S: Send + Sync + 'static,
    F: Fn(J, Cx<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, Failure>> + Send,
{
    async fn run(&self, cx: &Context) -> Outcome {
        let job = match cx.payload.to::<J>() {
            Ok(job) => job,
            // Another deploy may know the payload: it is tried again, and kept when it never fits.
            Err(why) => return retry(why.to_string()),
        };
        let cx = Cx {
            attempt: cx.clone(),
            state: Arc::clone(&self.state),
        };
        match (self.run)(job, cx).await {
            Ok(outcome) => outcome,
            Err(failure) => retry(failure.0),
        }
    }
}

fn retry(error: String) -> Outcome {
    Outcome::Retry { error, after: None }
}
