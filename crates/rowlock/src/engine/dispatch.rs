//! Whoever hands out jobs: a store itself, or a dispatcher that a drain fills.

use std::time::Duration;

use async_trait::async_trait;

use super::{Capabilities, Wakeups};
use crate::claim::{Claim, Claimed, Heartbeat, WorkerId};
use crate::error::Result;
use crate::job::{JobId, Token};
use crate::settle::{Settled, Settlement};

/// All that a worker needs: it joins, claims, beats, settles and leaves.
#[async_trait]
pub trait Dispatch: Send + Sync + 'static {
    /// What this one can't do, or does differently.
    fn capabilities(&self) -> Capabilities;

    /// Announces a worker; its lease begins.
    async fn join(&self, worker: &WorkerId, lease: Duration) -> Result<()>;

    /// Renews the lease and releases rows whose token isn't among those held.
    ///
    /// `LeaseLost` when the worker was given up in the meantime: everything it holds is lost.
    async fn heartbeat(&self, worker: &WorkerId, held: Vec<Token>) -> Result<Heartbeat>;

    /// Takes due jobs under a fresh token.
    async fn claim(&self, claim: Claim) -> Result<Claimed>;

    /// Records that a suspect job begins, so that it pays if it brings its process down.
    async fn start_suspect(&self, worker: &WorkerId, id: JobId, token: Token) -> Result<()>;

    /// Applies verdicts; each one is accepted, or refused because the claim was lost.
    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Settled>>;

    /// A worker goes; what it still holds is released.
    async fn leave(&self, worker: &WorkerId) -> Result<()>;

    /// A worker was given up, by others or by itself: this process remembers nothing of it any more. The store isn't
    /// asked: what the worker held there is given back when its lease is over.
    fn forget(&self, _worker: &WorkerId) {}

    /// Rings when there may be something new to claim.
    fn wakeups(&self) -> Wakeups;
}
