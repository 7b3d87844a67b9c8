//! Randomness: the fence, and jitter.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The fence: a random 63-bit number that one claim statement carries and every settle must match.
///
/// A counter would not do: an attempt comes back after a release, a sequence after a failover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(i64);

impl Token {
    /// A token that nobody has used.
    ///
    /// # Errors
    /// [`Error::Bug`] when the system has no randomness to give.
    pub fn random() -> Result<Self> {
        let bits = getrandom::u64().map_err(|why| Error::Bug(why.to_string()))?;
        // Zero is left out so that a token is never mistaken for "no token".
        Ok(Self(i64::try_from(bits >> 1).unwrap_or(i64::MAX).max(1)))
    }

    /// The number as the engines store it.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }

    /// What the store holds.
    pub(crate) fn stored(token: i64) -> Self {
        Self(token)
    }
}

/// A random part of `of`, from nothing to all of it. Without randomness: nothing.
#[must_use]
pub fn jitter(of: Duration) -> Duration {
    of.mul_f64(random_share())
}

/// From 0 to 1. Without randomness: 0.
pub(crate) fn random_share() -> f64 {
    f64::from(getrandom::u32().unwrap_or(0)) / f64::from(u32::MAX)
}
