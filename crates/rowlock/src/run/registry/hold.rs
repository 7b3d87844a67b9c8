//! Holds that end with their holders: a claim's on its tokens, a slot's on its job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Registry;
use crate::claim::ClaimedJob;
use crate::job::{JobId, Token};

/// A claim under way: its token is ours until this is dropped, and then only by the jobs it brought.
#[derive(Debug)]
pub(in crate::run) struct Asked {
    registry: Arc<Registry>,
    tokens: Vec<Token>,
}

impl Asked {
    pub(super) fn new(registry: Arc<Registry>, tokens: Vec<Token>) -> Self {
        Self { registry, tokens }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("claim.lets_go") {
            return;
        }
        let mut state = self.registry.state();
        for token in &self.tokens {
            state.asked.remove(token);
        }
    }
}

/// A slot's hold on the job that it runs. A slot that ends without a report, as by a panic, leaves the job to the shift.
#[derive(Debug)]
pub(in crate::run) struct Hold<'a> {
    registry: &'a Registry,
    claim: Option<(JobId, Token)>,
    /// Set when the slot was replaced already, after a lost lease.
    replaced: &'a AtomicBool,
}

impl<'a> Hold<'a> {
    pub(in crate::run) fn new(registry: &'a Registry, replaced: &'a AtomicBool) -> Self {
        Self {
            registry,
            claim: None,
            replaced,
        }
    }

    pub(in crate::run) fn take(&mut self, job: &ClaimedJob) {
        self.claim = Some((job.id, job.token));
    }

    pub(in crate::run) fn reported(&mut self) {
        self.claim = None;
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("slot.leaves_its_job") {
            return;
        }
        if let Some((id, token)) = self.claim
            && !self.registry.orphan(id, token)
        {
            self.replaced.store(true, Ordering::Relaxed);
        }
    }
}
