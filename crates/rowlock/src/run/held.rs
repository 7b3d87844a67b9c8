//! The tokens a worker holds, and the gate that keeps claims and heartbeats apart.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::job::Token;
use crate::settle::Answer;

/// Which claims are ours: asked for and not answered, or with jobs that aren't settled.
///
/// A heartbeat releases rows under any other token. A claim that is sent between the moment this was
/// read and the heartbeat's answer would be released by mistake; so claims are begun, and heartbeats
/// run, only by whoever has the gate.
#[derive(Debug, Default)]
pub(super) struct Held {
    tokens: Mutex<HashMap<Token, usize>>,
    pub(super) gate: tokio::sync::Mutex<()>,
}

impl Held {
    fn tokens<T>(&self, change: impl FnOnce(&mut HashMap<Token, usize>) -> T) -> T {
        change(&mut self.tokens.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A claim is about to be sent.
    pub(super) fn begin(&self, token: Token) {
        self.tokens(|tokens| tokens.insert(token, 1));
    }

    /// A claim was answered with so many jobs; none, or no answer at all, means it isn't ours.
    pub(super) fn answered(&self, token: Token, jobs: usize) {
        self.tokens(|tokens| match jobs {
            0 => tokens.remove(&token),
            _ => tokens.insert(token, jobs),
        });
    }

    /// Jobs were settled, each of its claim.
    pub(super) fn settled(&self, answers: &[Answer]) {
        let same_claim = |(_, one, _): &Answer, (_, next, _): &Answer| one == next;
        self.tokens(|tokens| {
            for of_one in answers.chunk_by(same_claim) {
                let token = of_one[0].1;
                if let Some(left) = tokens.get_mut(&token) {
                    *left = left.saturating_sub(of_one.len());
                    if *left == 0 {
                        tokens.remove(&token);
                    }
                }
            }
        });
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Token> {
        self.tokens(|tokens| tokens.keys().copied().collect())
    }

    /// The lease is lost: nothing is ours any more.
    pub(super) fn clear(&self) {
        self.tokens(HashMap::clear);
    }
}
