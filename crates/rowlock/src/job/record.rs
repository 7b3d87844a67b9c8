//! A stored job, as people and programs read it.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{JobState, Name, Payload};
use crate::error::{Error, Result};

/// A job's number: rising, never used again by the same server. After a failover to a standby that lagged behind, or
/// in a restored copy, a number can stand for another job: [`Record::idempotency_key`] never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub i64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for JobId {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text.parse() {
            Ok(id) if id > 0 => Ok(Self(id)),
            _ => Err(Error::invalid(format!("{text:?} is not a job id"))),
        }
    }
}

/// What kind of trouble an attempt ended in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The handler said so.
    Error,
    /// The handler panicked.
    Panic,
    /// The handler took longer than its timeout.
    Timeout,
    /// The process died, or lost its lease, while it ran the job.
    Lease,
}

/// Why one attempt didn't succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobError {
    /// The attempt's number, from 1 on.
    pub attempt: u32,
    /// When it was noticed.
    pub at: Timestamp,
    /// What kind of trouble.
    pub kind: ErrorKind,
    /// In words.
    pub message: String,
}

impl JobError {
    /// The longest message that is kept, in bytes.
    pub(crate) const LONGEST: usize = 4096;

    /// An error whose message is kept within bounds and free of NUL.
    #[must_use]
    pub fn new(attempt: u32, at: Timestamp, kind: ErrorKind, message: &str) -> Self {
        let mut end = message.len().min(Self::LONGEST);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        Self {
            attempt,
            at,
            kind,
            message: message[..end].replace('\0', "\u{fffd}"),
        }
    }
}

/// A job with all its fields.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Record {
    /// Its number.
    pub id: JobId,
    /// The key of this job and of no other, which its handlers get; none in a store that has lost its own number.
    pub idempotency_key: Option<String>,
    /// What has to be done.
    pub kind: Name,
    /// Where it waits.
    pub queue: Name,
    /// Higher goes first.
    pub priority: i16,
    /// The data.
    pub payload: Payload,
    /// Where it stands.
    pub state: JobState,
    /// How many attempts were charged.
    pub attempt: u32,
    /// How many it may use.
    pub max_attempts: u32,
    /// When it is (or was) due.
    pub scheduled_at: Timestamp,
    /// When it was staged.
    pub created_at: Timestamp,
    /// When its last attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Its unique key, within its kind.
    pub unique_key: Option<String>,
    /// Labels for finding it.
    pub tags: Vec<Name>,
    /// The W3C trace context it was staged in.
    pub trace_context: Option<String>,
    /// What went wrong so far, oldest first.
    pub errors: Vec<JobError>,
    /// The worker that has it.
    pub locked_by: Option<String>,
}
