//! `rowlock job`: which of its verbs.

use anyhow::Result;
use jiff::Timestamp;
use rowlock::engine::Filter;

use super::job_change::{self, Action};
use super::{job_list, job_show};
use crate::cli::{Job, Which};
use crate::open::Setup;

pub async fn run(setup: &Setup, what: Job, json: bool) -> Result<u8> {
    match what {
        Job::Show { id } => job_show::run(setup, id, json).await,
        Job::List(which) => job_list::run(setup, &which, json).await,
        Job::Retry(change) => job_change::run(setup, Action::Retry, &change, json).await,
        Job::Cancel(change) => job_change::run(setup, Action::Cancel, &change, json).await,
        Job::Delete(change) => job_change::run(setup, Action::Delete, &change, json).await,
    }
}

/// The filter that was typed.
pub fn filter(which: &Which, now: Timestamp, limit: usize) -> Filter {
    Filter {
        state: which.state,
        queue: which.queue.clone(),
        kind: which.kind.clone(),
        key: which.key.clone(),
        tag: which.tag.clone(),
        since: which.since.map(|since| since.at(now)),
        until: which.until.map(|until| until.at(now)),
        after: which.after,
        limit,
    }
}
