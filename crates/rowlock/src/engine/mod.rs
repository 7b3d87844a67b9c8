//! Engines: where the rows are. The only folder with SQL.
//!
//! [`Engine`] is the journey of a job, and [`Dispatch`] the part of it that a worker sees. [`Operate`]
//! is what people look at and change, [`Browse`] what pages look at all the time, [`Schedule`] is what they declare and stop, [`Lead`] and
//! [`Source`] are what a leader turns into jobs, [`Routes`] is what a drain asks, [`Watch`] what a guard
//! does. Every engine passes the same cases (tests/conformance); what one can't do it says in
//! [`Capabilities`].
//! In: the domain's types. Out: the domain's types and errors; no driver's type leaves this folder.

pub mod browse;
mod dispatch;
mod fact;
mod filter;
mod health;
#[cfg(feature = "postgres")]
pub mod postgres;
mod routes;
mod schedule;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod stats;
mod vitals;
mod wakeups;
mod watch;

pub use browse::Browse;
pub use dispatch::Dispatch;
pub use fact::{Fact, Integrity};
pub use filter::Filter;
pub use health::{AtLeast, Blocker, Health, Holder, Scarce, Shortage, Taker, Uncleaned, Unhandled};
pub(crate) use routes::DIRECT;
pub use routes::{Recalled, RouteRow, Routes, SentJob};
pub use schedule::*;
pub use stats::{Counts, QueueRow, Stats, WorkerRow};
pub use vitals::{ServerVitals, Vitals};
pub use wakeups::{Bell, Wakeups};
pub use watch::Watch;

use async_trait::async_trait;

use crate::claim::Expired;
use crate::error::{Error, Result};
use crate::job::{JobId, JobState, Kind, Name, NewJob, Record};
use crate::stage::Enqueued;

/// What differs between engines. A case asserts the difference instead of skipping it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The engine's name, as in its URL.
    pub name: &'static str,
    /// Whether the server's clock decides when a job is due; otherwise each process's own does.
    pub server_clock: bool,
    /// Whether ended jobs are kept to the end of a day and pruned by whole days.
    pub prunes_by_day: bool,
    /// Whether the holder of a claimed job, as the store knows it, is a route and not its worker. Then
    /// a worker's answer comes to the store later, and its handlers can't complete jobs in a
    /// transaction of their own.
    pub drained: bool,
}

/// What became of a request to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// It was pending and is cancelled now.
    Cancelled,
    /// It runs; its worker has been asked to stop.
    Requested,
}

/// A kind whose stored row differs from a declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The kind.
    pub kind: Name,
    /// The settings that differ, with the stored and the declared value.
    pub differences: Vec<String>,
}

/// What `apply` did with a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// There was no row yet.
    Added,
    /// The row was changed.
    Changed(Vec<String>),
    /// Nothing to do.
    Unchanged,
}

impl Applied {
    /// What writing a declaration means, given the one that is stored.
    pub(crate) fn over(stored: Option<&serde_json::Value>, declared: &serde_json::Value) -> Self {
        let Some(stored) = stored else {
            return Self::Added;
        };
        match crate::job::differences(stored, declared) {
            none if none.is_empty() => Self::Unchanged,
            some => Self::Changed(some),
        }
    }

    /// Whether one of these fields changes.
    #[cfg(feature = "sqlite")]
    pub(crate) fn touches(&self, fields: &[&str]) -> bool {
        let Self::Changed(changes) = self else {
            return false;
        };
        let of = |change: &String| change.split(": ").next().unwrap_or_default().to_owned();
        changes.iter().any(|change| fields.contains(&&*of(change)))
    }
}

/// Refuses a call that declares one name twice: which of the two is meant can't be told.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn once<'a>(what: &str, names: impl Iterator<Item = &'a Name>) -> Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Error::invalid(format!(
                "{what} {name} is declared twice in one call: keep one of them"
            )));
        }
    }
    Ok(())
}

/// How many keys a dry tick names.
pub const SAMPLE: usize = 10;

/// A job's journey: what a worker sees of it, and the rest.
#[async_trait]
pub trait Engine: Dispatch {
    /// Adds the kinds that have no row yet and names those whose row differs.
    async fn add_kinds(&self, kinds: &[Kind]) -> Result<Vec<Drift>>;

    /// Stages jobs in one transaction: all of them or none.
    async fn stage(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>>;

    /// Takes one sample of the heartbeats and gives back what the dead held.
    async fn expire(&self) -> Result<Expired>;

    /// Cancels pending jobs and asks the holders of running ones to stop.
    async fn cancel(&self, ids: Vec<JobId>) -> Result<Vec<Result<Cancel>>>;

    /// Puts ended jobs back to pending, with their errors and without their attempts.
    async fn redrive(&self, ids: Vec<JobId>) -> Result<Vec<Result<()>>>;

    /// Removes jobs that aren't running.
    async fn delete(&self, ids: Vec<JobId>) -> Result<Vec<Result<()>>>;

    /// Removes up to `limit` ended jobs whose time is over; says how many.
    async fn prune(&self, limit: usize) -> Result<usize>;

    /// What this engine alone has to look after, if anything; cheap when there is nothing to do.
    async fn upkeep(&self) -> Result<()> {
        Ok(())
    }
}

/// How far back [`Operate::ended`] looks.
pub const ENDED: usize = 50_000;

/// What operators read and change.
#[async_trait]
pub trait Operate: Send + Sync + 'static {
    /// One job.
    async fn job(&self, id: JobId) -> Result<Option<Record>>;

    /// Jobs by filter, by rising id.
    async fn jobs(&self, filter: Filter) -> Result<Vec<Record>>;

    /// Jobs in somebody's hands, the one that began first on top.
    async fn running(&self, limit: usize) -> Result<Vec<Record>>;

    /// Jobs that ended in this state, by falling id, among the last [`ENDED`] that are kept. It is for
    /// a screen that looks every other second; `jobs` finds every one.
    async fn ended(&self, state: JobState, limit: usize) -> Result<Vec<Record>>;

    /// Counts, in all and by queue.
    async fn stats(&self) -> Result<Stats>;

    /// Every queue that has jobs or settings.
    async fn queues(&self) -> Result<Vec<QueueRow>>;

    /// Every kind that has a row.
    async fn kinds(&self) -> Result<Vec<Kind>>;

    /// Writes kinds as declared.
    async fn apply(&self, kinds: &[Kind]) -> Result<Vec<Applied>>;

    /// Workers that have joined and not left.
    async fn workers(&self) -> Result<Vec<WorkerRow>>;

    /// A checkup. It costs the same however much there is.
    async fn health(&self) -> Result<Health>;

    /// For a checker: what the store holds of each job, by rising id, about `limit` rows at a time.
    /// All rows of a job come together.
    async fn facts(&self, after: Option<JobId>, limit: usize) -> Result<Vec<Fact>>;

    /// For a checker: everything in which the store contradicts itself as a whole.
    async fn integrity(&self) -> Result<Integrity>;
}
