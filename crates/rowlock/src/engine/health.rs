//! What a checkup of the store finds.

use jiff::Timestamp;
use serde::Serialize;

use crate::job::Name;

/// The store's condition. Whether it is good enough is for the reader to say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Health {
    /// What is broken in the file itself; if anything is, the rest was not looked at.
    pub damage: Vec<String>,
    /// Tables, indexes, views and triggers that are missing or differ from those we made.
    pub drift: Vec<String>,
    /// Committed pages that are still in the log only, because somebody reads an old state.
    pub log_backlog: u64,
    /// Pending jobs of kinds that have no row, by kind.
    pub unknown_kinds: Vec<(Name, u64)>,
    /// Switches that are on.
    pub switches: Vec<Switch>,
}

/// What a switch is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A kind.
    Kind,
    /// A queue.
    Queue,
}

/// A switch that is on.
#[derive(Debug, Clone, PartialEq)]
pub struct Switch {
    /// Of a kind or of a queue.
    pub target: Target,
    /// Which one.
    pub name: Name,
    /// `reject`, `hold` or `pause`.
    pub mode: String,
    /// Why, if somebody said.
    pub reason: Option<String>,
    /// Until when; if not for good.
    pub until: Option<Timestamp>,
}
