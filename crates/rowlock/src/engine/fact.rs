//! What the store holds of a job, as a checker reads it: as it is, not as it should be.

use jiff::Timestamp;

use crate::job::{JobId, JobState, Token};

/// One row of a job. A job that is both live and in the history has two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The job.
    pub id: JobId,
    /// Whether it stands among the live jobs, or in the history.
    pub live: bool,
    /// Its state; nothing when the stored word is none.
    pub state: Option<JobState>,
    /// How many attempts were charged.
    pub attempt: i64,
    /// How many it may use.
    pub max_attempts: i64,
    /// The fence of the claim that has it.
    pub token: Option<Token>,
    /// The worker that has it.
    pub locked_by: Option<String>,
    /// Whether a live job's time has come, by the clock that the engine goes by.
    pub due: bool,
}

/// Everything in which a store contradicts itself as a whole, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Integrity {
    /// What is wrong with the store itself.
    pub store: Vec<String>,
    /// Ticks of crons that have run twice; nothing when they couldn't be looked at.
    pub ticks: Option<Vec<String>>,
}

impl Integrity {
    /// Whether all was looked at and nothing found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.store.is_empty() && self.ticks.as_ref().is_some_and(Vec::is_empty)
    }
}

/// A tick that stands `n` times, or a job that `n` ticks have made.
pub(super) fn tick_twice(
    name: &str,
    tick: Option<Timestamp>,
    job: Option<JobId>,
    n: i64,
) -> String {
    match (tick, job) {
        (Some(tick), _) => format!("cron {name} has fired its tick of {tick} {n} times"),
        (None, Some(job)) => format!("job {job} stands for {n} ticks of cron {name}"),
        (None, None) => format!("cron {name} has {n} ticks without a time"),
    }
}
