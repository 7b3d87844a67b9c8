//! After every step: every job, every count, every worker and every key.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rowlock::engine::{Counts, Filter};
use rowlock::{JobId, JobState, NewJob, Record};

use super::life::{Life, same};
use super::machine::{Job, Machine};
use super::operation::{KEYS, KINDS, QUEUES};
use crate::conformance::world::name;

/// What everybody can read of a job.
#[derive(Debug, PartialEq)]
struct Seen {
    kind: String,
    queue: String,
    priority: i16,
    state: JobState,
    attempt: u32,
    max_attempts: u32,
    due: Timestamp,
    key: Option<String>,
    holder: Option<String>,
    errors: Vec<u32>,
    ended_at: Option<Timestamp>,
}

impl From<&Record> for Seen {
    fn from(job: &Record) -> Self {
        Self {
            kind: job.kind.to_string(),
            queue: job.queue.to_string(),
            priority: job.priority,
            state: job.state,
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            due: job.scheduled_at,
            key: job.unique_key.clone(),
            holder: job.locked_by.clone(),
            errors: job.errors.iter().map(|error| error.attempt).collect(),
            ended_at: job.finished_at,
        }
    }
}

impl From<&Job> for Seen {
    fn from(job: &Job) -> Self {
        // The last ten are kept.
        let first = job.errors.len().saturating_sub(10);
        Self {
            kind: job.kind.to_owned(),
            queue: job.queue.to_owned(),
            priority: job.priority,
            state: job.state,
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            due: job.due,
            key: job.key.map(str::to_owned),
            holder: job.holder.as_ref().map(|(worker, _)| worker.to_string()),
            errors: job.errors[first..].to_vec(),
            ended_at: job.ended_at,
        }
    }
}

fn counts<'a>(machine: &Machine, jobs: impl Iterator<Item = &'a Job>) -> Counts {
    let mut counts = Counts::default();
    let mut oldest: Option<Timestamp> = None;
    for job in jobs {
        match job.state {
            JobState::Pending => {
                counts.pending += 1;
                counts.scheduled += u64::from(job.due > machine.now);
                counts.retrying += u64::from(job.attempt > 0);
                if job.due <= machine.now {
                    oldest = Some(oldest.map_or(job.due, |other| other.min(job.due)));
                }
            }
            JobState::Processing => counts.processing += 1,
            JobState::Completed => counts.completed += 1,
            JobState::Failed => counts.failed += 1,
            JobState::Cancelled => counts.cancelled += 1,
        }
    }
    let waited = |due: Timestamp| due.duration_until(machine.now).as_secs_f64();
    counts.oldest_pending_seconds = oldest.map(waited);
    counts
}

impl Life {
    pub async fn compare(&mut self) -> Result<(), String> {
        self.compare_jobs().await?;
        self.compare_counts().await?;
        self.compare_workers().await?;
        self.compare_keys()
    }

    async fn compare_jobs(&self) -> Result<(), String> {
        let all = Filter {
            limit: 10_000,
            ..Filter::default()
        };
        let found = self.sites[1].rowlock.operate().jobs(all).await;
        let found = found.map_err(|why| why.to_string())?;
        let engine: BTreeMap<JobId, Seen> =
            found.iter().map(|job| (job.id, Seen::from(job))).collect();
        let jobs = self.machine.jobs.iter();
        let mut model: BTreeMap<JobId, Seen> = jobs.map(|(id, job)| (*id, job.into())).collect();
        for (id, seen) in engine {
            same(&format!("job {id}"), Some(seen), model.remove(&id))?;
        }
        match model.pop_first() {
            None => Ok(()),
            Some((id, job)) => Err(format!("job {id} is missing: {job:?}")),
        }
    }

    async fn compare_counts(&self) -> Result<(), String> {
        let stats = self.sites[0].rowlock.operate().stats().await;
        let mut stats = stats.map_err(|why| why.to_string())?;
        let all = counts(&self.machine, self.machine.jobs.values());
        same("counts", stats.total, all)?;
        for queue in QUEUES {
            let jobs = self.machine.jobs.values().filter(|job| job.queue == queue);
            let told = stats.queues.remove(&name(queue)).unwrap_or_default();
            same(queue, told, counts(&self.machine, jobs))?;
        }
        Ok(())
    }

    async fn compare_workers(&self) -> Result<(), String> {
        let rows = self.sites[0].rowlock.operate().workers().await;
        let rows = rows.map_err(|why| why.to_string())?.into_iter();
        let engine: BTreeMap<_, _> = rows.map(|row| (row.id, row.holds)).collect();
        let living = self
            .machine
            .workers
            .keys()
            .map(|worker| (worker.clone(), 0));
        let mut model: BTreeMap<_, _> = living.collect();
        for job in self.machine.jobs.values() {
            if let Some((worker, _)) = &job.holder {
                *model.entry(worker.clone()).or_default() += 1;
            }
        }
        same("workers and how much they hold", engine, model)
    }

    /// Asks who has a key by trying to take it, in a transaction that is rolled back.
    fn compare_keys(&mut self) -> Result<(), String> {
        self.client.begin();
        let mut told = Vec::new();
        let mut model = Vec::new();
        for kind in KINDS {
            for key in KEYS {
                let job = NewJob::new(kind).unwrap().unique(key).unwrap();
                let answer = self.client.stage(&job).map_err(|why| why.to_string())?;
                let duplicate = answer.status == rowlock::stage::Status::Duplicate;
                told.push((kind, key, answer.id.filter(|_| duplicate)));
                model.push((kind, key, self.machine.key_holder(kind, key)));
            }
        }
        self.client.rollback();
        same("who has a key", told, model)
    }
}
