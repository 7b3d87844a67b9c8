//! Looks that stay cheap however much the store holds: for pages and programs that ask all the time.
//!
//! The history has an index on the number only, so a page of jobs is a walk by number that ends after
//! [`LOOK`] rows, and says where to go on. Live jobs are counted up to [`MOST`] a queue.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;

use super::{Counts, Filter, WorkerRow};
use crate::error::Result;
use crate::job::{JobId, Name, Record};

/// How many rows one page looks at, at most.
pub const LOOK: usize = 1_000;
/// A page ends after so many bytes of payloads, and has one job at least: a whole page is kept in memory.
pub const BYTES: usize = 4 * 1024 * 1024;
/// As far as live jobs of a queue are counted.
pub const MOST: u64 = 10_000;

/// A page of jobs.
#[derive(Debug, Clone)]
pub struct Page {
    /// Those that match, in the order of the walk.
    pub jobs: Vec<Record>,
    /// Where the next page begins; nothing when the walk is over. A page may be short, or empty, and
    /// still not be the last one.
    pub next: Option<JobId>,
}

impl Page {
    /// What came of a look: the jobs that match, as far as they have room; how many do, one more than wanted if
    /// there are; the last number that was looked at, and whether the look ended before the store did.
    pub(crate) fn of(
        mut jobs: Vec<Record>,
        (wanted, matches): (usize, usize),
        last: Option<JobId>,
        cut: bool,
    ) -> Self {
        jobs.truncate(wanted);
        let next = match matches > jobs.len() {
            true => jobs.last().map(|job| job.id),
            false => last.filter(|_| cut),
        };
        Self { jobs, next }
    }
}

/// Counts of a queue, or of all.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Capped {
    /// The counts. Ended jobs are counted exactly.
    #[serde(flatten)]
    pub counts: Counts,
    /// Whether there are more live jobs than were counted.
    pub capped: bool,
}

impl Capped {
    /// Cuts what is over the limit.
    pub(crate) fn cut(mut self) -> Self {
        let counts = &mut self.counts;
        self.capped |= counts.pending > MOST || counts.processing > MOST;
        for part in [
            &mut counts.pending,
            &mut counts.scheduled,
            &mut counts.retrying,
            &mut counts.held,
            &mut counts.processing,
        ] {
            *part = (*part).min(MOST);
        }
        self
    }
}

/// Counts by queue, without a sum: that of capped numbers would be none.
pub type Glance = BTreeMap<Name, Capped>;

/// A job that has ended, and how long its last attempt took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// When it ended, by the clock of the store.
    pub finished_at: Timestamp,
    /// How long it ran.
    pub took: Duration,
}

/// What stays cheap.
#[async_trait]
pub trait Browse: Send + Sync + 'static {
    /// Jobs by filter, by rising number after `filter.after`, or with `newest` by falling number before
    /// it. No more than [`LOOK`] rows are looked at, and a page ends after [`BYTES`] of payloads.
    async fn browse(&self, filter: Filter, newest: bool) -> Result<Page>;

    /// Live jobs by queue, counted up to [`MOST`], and ended ones exactly.
    async fn glance(&self) -> Result<Glance>;

    /// Jobs in somebody's hands, the one that began first on top, among those at the head of each lane, up to
    /// [`BYTES`] of payloads.
    async fn in_hand(&self, limit: usize) -> Result<Vec<Record>>;

    /// Workers that have joined and not left, with what they hold of that.
    async fn hands(&self) -> Result<Vec<WorkerRow>>;

    /// How long jobs ran, among the `limit` newest of those that have ended: a sample, not a count. Jobs
    /// that were cancelled, or never began, are left out.
    async fn runs(&self, limit: usize) -> Result<Vec<Run>>;
}
