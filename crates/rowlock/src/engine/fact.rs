//! What the store holds of a job, as a checker reads it: as it is, not as it should be.

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
