//! Switches: what an operator can stop in one statement, and what forgets itself.
//!
//! In: a target and a mode. Out: enqueues that are refused or held, claims and ticks that wait. A
//! switch is a column of the row that every enqueue, claim and tick reads anyway, so it holds for
//! every language, and a crash can't leave half of one.

use jiff::Timestamp;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::job::Name;

/// What a switch is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A kind.
    Kind,
    /// A queue.
    Queue,
    /// A pair.
    Pair,
}

impl Target {
    /// The word before the colon.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Queue => "queue",
            Self::Pair => "pair",
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Enqueues are answered `rejected`, and nothing is stored.
    Reject,
    /// Enqueues are stored, and not claimed.
    Hold,
    /// Nothing is claimed; of a pair: it doesn't tick.
    Pause,
}

impl Mode {
    /// The word that is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Hold => "hold",
            Self::Pause => "pause",
        }
    }
}

impl std::str::FromStr for Mode {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        [Self::Reject, Self::Hold, Self::Pause]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "{text:?} is not a switch: use reject, hold or pause"
                ))
            })
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A switch to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// What it does.
    pub mode: Mode,
    /// Why, if somebody says.
    pub reason: Option<String>,
    /// Who says so.
    pub by: Option<String>,
    /// Until when; if not for good.
    pub until: Option<Timestamp>,
}

impl Setting {
    /// A switch without a reason and without an end.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            reason: None,
            by: None,
            until: None,
        }
    }

    /// Whether it makes sense for the target.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a pair that is to do anything but pause.
    pub fn check(&self, target: Target) -> Result<()> {
        if target == Target::Pair && self.mode != Mode::Pause {
            return Err(Error::invalid(format!(
                "a pair can only be paused: to {} what it enqueues, use kind:NAME or queue:NAME",
                self.mode
            )));
        }
        Ok(())
    }
}

/// A switch that is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Switch {
    /// Of a kind, a queue or a pair.
    pub target: Target,
    /// Which one.
    pub name: Name,
    /// What it does.
    pub mode: Mode,
    /// Why, if somebody said.
    pub reason: Option<String>,
    /// Who, if somebody said.
    pub by: Option<String>,
    /// Until when; if not for good.
    pub until: Option<Timestamp>,
    /// How many enqueues it has refused since it was set.
    pub rejected: u64,
}
