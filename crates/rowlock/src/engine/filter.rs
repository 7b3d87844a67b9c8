//! Which jobs an operator means.

use jiff::Timestamp;

use crate::job::{JobId, JobState, Name};

/// A filter; what isn't set doesn't restrict.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// In this state.
    pub state: Option<JobState>,
    /// In this queue.
    pub queue: Option<Name>,
    /// Of this kind.
    pub kind: Option<Name>,
    /// With this unique key.
    pub key: Option<String>,
    /// With this label.
    pub tag: Option<Name>,
    /// Staged at or after.
    pub since: Option<Timestamp>,
    /// Staged before.
    pub until: Option<Timestamp>,
    /// Only ids above this one: where the page before ended.
    pub after: Option<JobId>,
    /// The most to return.
    pub limit: usize,
}
