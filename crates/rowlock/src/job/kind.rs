//! What an enqueue and a worker must know about a kind of job.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Backoff, Name, spoken};
use crate::error::{Error, Result};

/// How long a unique key stays taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UniqueUntil {
    /// Freed at the claim; a retry doesn't take it again.
    Start,
    /// Freed by any terminal state.
    #[default]
    Finished,
}

impl UniqueUntil {
    /// The word that is stored and written in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Finished => "finished",
        }
    }
}

impl std::str::FromStr for UniqueUntil {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "start" => Ok(Self::Start),
            "finished" => Ok(Self::Finished),
            _ => Err(Error::invalid(format!(
                "{text:?} is not a scope: use start or finished"
            ))),
        }
    }
}

/// How long finished jobs are kept; zero keeps none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Completed jobs.
    #[serde(with = "spoken::duration")]
    pub completed: Duration,
    /// Failed jobs.
    #[serde(with = "spoken::duration")]
    pub failed: Duration,
    /// Cancelled jobs.
    #[serde(with = "spoken::duration")]
    pub cancelled: Duration,
}

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Default for Retention {
    fn default() -> Self {
        Self {
            completed: DAY,
            failed: DAY * 30,
            cancelled: DAY * 7,
        }
    }
}

/// A declaration: one row of the kind table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Kind {
    /// Its name.
    pub name: Name,
    /// Where its jobs wait unless a call says otherwise.
    pub queue: Name,
    /// Higher goes first.
    pub priority: i16,
    /// How many attempts a job may use.
    pub max_attempts: u32,
    /// How long it waits between them.
    pub backoff: Backoff,
    /// How long one attempt may run.
    #[serde(with = "spoken::duration")]
    pub timeout: Duration,
    /// The payload fields that make a job unique; none: not unique.
    pub key: Vec<Name>,
    /// How long the key stays taken.
    pub unique_until: UniqueUntil,
    /// How long finished jobs are kept.
    pub retention: Retention,
}

impl Kind {
    /// The queue of everything that names none.
    pub const DEFAULT_QUEUE: &'static str = "default";
    /// The attempts of everything that names none.
    pub const DEFAULT_MAX_ATTEMPTS: u32 = 5;
    /// The timeout of everything that names none.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15 * 60);

    /// A kind with every default.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the name breaks the rule of [`Name`].
    pub fn new(name: impl Into<String>) -> Result<Self> {
        Ok(Self {
            name: Name::new(name)?,
            queue: Name::new(Self::DEFAULT_QUEUE)?,
            priority: 0,
            max_attempts: Self::DEFAULT_MAX_ATTEMPTS,
            backoff: Backoff::default(),
            timeout: Self::DEFAULT_TIMEOUT,
            key: Vec::new(),
            unique_until: UniqueUntil::default(),
            retention: Retention::default(),
        })
    }
}

impl Kind {
    /// The settings in which `declared` differs from this row, as "setting: row -> declared".
    #[must_use]
    pub fn differences(&self, declared: &Self) -> Vec<String> {
        differences(&spelled(self), &spelled(declared))
    }
}

/// The fields in which a declaration differs from a row, as "field: row -> declared".
pub(crate) fn differences(row: &Value, declared: &Value) -> Vec<String> {
    let none = Map::new();
    let fields = declared.as_object().unwrap_or(&none).iter();
    fields
        .map(|(field, new)| (field, row.get(field).unwrap_or(&Value::Null), new))
        .filter(|(_, old, new)| old != new)
        .map(|(field, old, new)| format!("{field}: {old} -> {new}"))
        .collect()
}

/// A declaration as it is stored and compared.
pub(crate) fn spelled<T: Serialize>(declared: &T) -> Value {
    serde_json::to_value(declared).unwrap_or_default()
}
