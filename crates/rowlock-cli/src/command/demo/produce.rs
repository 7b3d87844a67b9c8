//! The producer: writes down what it was told before it goes on.

use anyhow::Result;
use rowlock::verify::{Answer, Told};
use rowlock::{NewJob, Rowlock};
use serde_json::json;

use super::home::{Home, KIND};
use crate::cli::Crash;

/// How many jobs are staged in one transaction.
const BATCH: u64 = 500;

/// Most jobs come first and in batches; some are kept, so that there is work as long as there are
/// faults, and enqueues in the middle of them.
pub struct Producer {
    rowlock: Rowlock,
    told: Told,
    job: NewJob,
    left: u64,
    kept: u64,
}

impl Producer {
    pub fn new(home: &Home, rowlock: Rowlock, how: &Crash) -> Result<Self> {
        let nap = format!("{}ms", home.nap.as_millis());
        Ok(Self {
            rowlock,
            told: Told::open(home.told())?,
            job: NewJob::new(KIND)?.payload_of(&json!({ "for": nap }))?,
            left: how.jobs,
            kept: how.jobs / 10,
        })
    }

    /// All but those that are kept.
    pub async fn most(&mut self) -> Result<()> {
        while self.left > self.kept {
            self.some(BATCH.min(self.left - self.kept)).await?;
        }
        Ok(())
    }

    /// Up to so many of those that were kept; whether there were any.
    pub async fn some(&mut self, jobs: u64) -> Result<bool> {
        let jobs = jobs.min(self.left);
        if jobs == 0 {
            return Ok(false);
        }
        let batch = vec![self.job.clone(); usize::try_from(jobs).unwrap_or_default()];
        let answers = self.rowlock.enqueue_many(batch).await;
        let now = self.rowlock.clock().now();
        let lines: Vec<_> = match &answers {
            Ok(answers) => answers
                .iter()
                .map(|answer| Answer::enqueue(now, &self.job, Some(answer)))
                .collect(),
            Err(_) => vec![Answer::enqueue(now, &self.job, None)],
        };
        self.told.write(&lines)?;
        answers?;
        self.left -= jobs;
        Ok(true)
    }

    /// What is left.
    pub async fn rest(&mut self) -> Result<()> {
        while self.some(BATCH).await? {}
        Ok(())
    }
}
