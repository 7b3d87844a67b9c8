//! What a drain needs of the place that jobs are sent to.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use crate::claim::{ClaimedJob, WorkerId};
use crate::engine::{Recalled, SentJob};
use crate::error::Result;
use crate::job::{JobId, Name, Token};
use crate::settle::Settlement;

/// Where drained jobs go. Every call may be made again after an error; none waits for longer than it
/// was told, or than a few seconds.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Whether it says what became of a job. One that doesn't has delivered a job once it has it.
    fn reports_back(&self) -> bool;

    /// Makes sure that it can be used, and that no other store uses the same place. Whether it may not
    /// hold what it held: it is new, has lost something, or has begun anew. Called before anything else, after
    /// every error, and every now and then.
    async fn open(&self, store: u64) -> Result<bool>;

    /// Sends jobs, each with the token it was claimed under; a job that it holds already under another
    /// token is replaced. Nothing of it may arrive after `within`, even if the answer is an error.
    async fn push(&self, jobs: &[ClaimedJob], within: Duration) -> Result<Pushed>;

    /// What it holds of these jobs, under exactly these tokens.
    async fn holds(&self, jobs: &[(JobId, Token)]) -> Result<Vec<Hold>>;

    /// Jobs that wait to be taken, some at a time: begins at 0, and has told all of them when the answer
    /// is 0 again.
    async fn waiting(&self, from: u64) -> Result<(u64, Vec<(JobId, Token)>)>;

    /// Jobs whose worker died with them; a suspect is one that had begun.
    async fn bereft(&self, most: usize) -> Result<Vec<SentJob>>;

    /// Whether this process should fetch [`reports`](Self::reports) for the next `lease`: it saves
    /// others the work, and nothing depends on it.
    async fn is_my_turn(&self, lease: Duration) -> Result<bool>;

    /// What its workers have said, oldest first; waits up to `wait` for the first one. The same reports
    /// come again until they are forgotten.
    async fn reports(&self, most: usize, wait: Duration) -> Result<Vec<Report>>;

    /// Forgets jobs under these tokens, and what was said about them: the store knows.
    async fn forget(&self, jobs: &[(JobId, Token)]) -> Result<()>;

    /// Those that nobody has taken yet are reported as released or cancelled; the workers of the others
    /// hear of it with their next heartbeat.
    async fn recall(&self, jobs: &[Recalled]) -> Result<()>;

    /// How full it is.
    async fn fill(&self) -> Result<Fill>;

    /// Keeps count of jobs that it had lost and that are sent again, for whoever asks how full it is. It may
    /// lose that number too: nothing depends on it.
    async fn count_lost(&self, jobs: usize) -> Result<()> {
        let _ = jobs;
        Ok(())
    }
}

/// The answer to a push.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pushed {
    /// How many jobs wait there now to be taken, these included, and how many verdicts to be fetched.
    pub ready: usize,
    /// Jobs that can't be sent at all, and why: they fail, the others are there.
    pub refused: Vec<(JobId, String)>,
}

/// What a sink knows of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It waits, runs, or its verdict has not been fetched.
    Held,
    /// Not, or not under this token.
    Gone,
    /// A worker had taken it and died.
    Bereft,
    /// It has the job for good, and won't say what becomes of it.
    Delivered,
}

/// What a worker said about a job.
#[derive(Debug, Clone)]
pub struct Report {
    /// The verdict, under the token the job was sent with.
    pub settlement: Settlement,
    /// The token that the worker itself had taken it under.
    pub taken: Token,
    /// The worker.
    pub worker: WorkerId,
    /// The attempt's number.
    pub attempt: u32,
    /// Its kind.
    pub kind: Name,
    /// Its unique key.
    pub unique_key: Option<String>,
}

/// How full a sink is. Numbers it can't tell are zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Fill {
    /// Jobs that nobody has taken.
    pub ready: u64,
    /// Jobs that workers have.
    pub taken: u64,
    /// Verdicts that nobody has fetched.
    pub reports: u64,
    /// Workers that live.
    pub workers: u64,
    /// Jobs that were ever sent to it, each time counted.
    pub pushed: u64,
    /// Jobs that it had lost and that were sent again, since it has its memory.
    pub resent: u64,
}
