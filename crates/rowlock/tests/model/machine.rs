//! The state machine in memory, as plainly as docs/journey.md tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use rowlock::claim::{Heartbeat, WorkerId};
use rowlock::clock;
use rowlock::job::Token;
use rowlock::settle::Settled;
use rowlock::{JobId, JobState};

use super::operation::{FLEETING, Word};
use super::silence::Silence;
use crate::conformance::world::LEASE;

#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub kind: &'static str,
    pub queue: &'static str,
    pub priority: i16,
    pub state: JobState,
    pub attempt: u32,
    pub max_attempts: u32,
    pub due: Timestamp,
    pub key: Option<&'static str>,
    pub key_until_start: bool,
    pub has_key: bool,
    pub suspect: bool,
    pub cancel_asked: bool,
    pub holder: Option<(WorkerId, Token)>,
    /// The attempts that ended in an error.
    pub errors: Vec<u32>,
    pub ended_at: Option<Timestamp>,
}

/// What an operator is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    Done,
    /// The holder has been asked to stop.
    Asked,
    /// The job's state has no such move, or its key is taken.
    Conflict,
    Missing,
}

/// What an expiry found, as far as it is counted.
#[derive(Debug, Default, PartialEq)]
pub struct Buried {
    pub workers: Vec<WorkerId>,
    pub returned: usize,
    pub ended: usize,
}

#[derive(Debug, Default)]
pub struct Machine {
    pub now: Timestamp,
    pub jobs: BTreeMap<JobId, Job>,
    /// The living, each with the suspect whose start it has recorded.
    pub workers: BTreeMap<WorkerId, Option<(JobId, Token)>>,
    pub paused: BTreeSet<&'static str>,
    silence: Silence,
}

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Machine {
    pub fn begin(now: Timestamp) -> Self {
        Self {
            now,
            ..Self::default()
        }
    }

    /// Who has the key among the living.
    pub fn key_holder(&self, kind: &str, key: &str) -> Option<JobId> {
        let has = |job: &Job| job.has_key && job.kind == kind && job.key == Some(key);
        let found = self.jobs.iter().find(|(_, job)| has(job));
        found.map(|(id, _)| *id)
    }

    pub fn join(&mut self, worker: &WorkerId) {
        self.workers.insert(worker.clone(), None);
    }

    /// Moves a due job into a worker's hands.
    pub fn claim(&mut self, id: JobId, worker: &WorkerId, token: Token) {
        let job = self.jobs.get_mut(&id).unwrap();
        job.state = JobState::Processing;
        job.attempt += 1;
        job.holder = Some((worker.clone(), token));
        job.has_key &= !job.key_until_start;
    }

    fn holds(&self, id: JobId, token: Token) -> bool {
        let holder = self.jobs.get(&id).and_then(|job| job.holder.as_ref());
        holder.is_some_and(|(_, current)| *current == token)
    }

    /// Only the holder of the current claim settles a job.
    pub fn settle(&mut self, id: JobId, token: Token, word: Word) -> Settled {
        if !self.holds(id, token) {
            return Settled::LeaseLost;
        }
        let job = &self.jobs[&id];
        let last = job.attempt >= job.max_attempts;
        match word {
            Word::Done | Word::NotNeeded => self.end(id, JobState::Completed, false),
            Word::Cancelled => self.end(id, JobState::Cancelled, false),
            Word::Fail => self.end(id, JobState::Failed, true),
            Word::Retry(_) if last => self.end(id, JobState::Failed, true),
            Word::Retry(after) => {
                let wait = after.map_or(backoff(job.attempt), Duration::from_secs);
                self.again(id, Some(wait), Charge::Paid, Some(false));
            }
            Word::Snooze(seconds) => {
                let wait = Duration::from_secs(seconds);
                self.again(id, Some(wait), Charge::GivenBack, Some(false));
            }
            Word::Release => self.again(id, None, Charge::GivenBack, None),
            Word::Sent => {
                self.jobs.remove(&id);
            }
        }
        Settled::Accepted
    }

    fn end(&mut self, id: JobId, state: JobState, with_error: bool) {
        let job = self.jobs.get_mut(&id).unwrap();
        // This kind keeps nothing of what went well.
        if job.kind == FLEETING && state == JobState::Completed {
            self.jobs.remove(&id);
            return;
        }
        if with_error {
            job.errors.push(job.attempt);
        }
        job.state = state;
        job.ended_at = Some(self.now);
        job.holder = None;
        job.has_key = false;
        job.suspect = false;
        job.cancel_asked = false;
    }

    /// Back to pending, unless somebody wants it cancelled: then it ends.
    fn again(&mut self, id: JobId, wait: Option<Duration>, charge: Charge, suspect: Option<bool>) {
        let job = self.jobs.get_mut(&id).unwrap();
        if job.cancel_asked {
            return self.end(id, JobState::Cancelled, charge == Charge::Paid);
        }
        match charge {
            Charge::Paid => job.errors.push(job.attempt),
            Charge::GivenBack => job.attempt -= 1,
        }
        job.state = JobState::Pending;
        job.holder = None;
        job.suspect = suspect.unwrap_or(job.suspect);
        if let Some(wait) = wait {
            job.due = clock::add(self.now, wait);
        }
    }

    fn held_by(&self, worker: &WorkerId) -> Vec<(JobId, Token)> {
        let mine = |(id, job): (&JobId, &Job)| {
            let (holder, token) = job.holder.as_ref()?;
            (holder == worker).then_some((*id, *token))
        };
        self.jobs.iter().filter_map(mine).collect()
    }

    /// `None`: the worker was given up.
    pub fn heartbeat(&mut self, worker: &WorkerId, held: &[Token]) -> Option<Heartbeat> {
        if !self.workers.contains_key(worker) {
            return None;
        }
        self.silence.beat(worker);
        let mut answer = Heartbeat::default();
        for (id, token) in self.held_by(worker) {
            let job = &self.jobs[&id];
            if !held.contains(&token) {
                self.again(id, None, Charge::GivenBack, None);
                answer.released += 1;
            } else if job.cancel_asked {
                answer.cancel_requested.push(id);
            } else if self.paused.contains(job.queue) {
                answer.stopped.push(id);
            }
        }
        Some(answer)
    }

    /// Whether the start of a suspect could be recorded.
    pub fn start_suspect(&mut self, worker: &WorkerId, id: JobId, token: Token) -> bool {
        let ours = self.held_by(worker).contains(&(id, token));
        if ours {
            self.workers.insert(worker.clone(), Some((id, token)));
        }
        ours
    }

    pub fn leave(&mut self, worker: &WorkerId) {
        for (id, _) in self.held_by(worker) {
            self.again(id, None, Charge::GivenBack, None);
        }
        self.workers.remove(worker);
    }

    /// The observer looks; a worker that was silent in every sample of a whole lease is dead.
    pub fn sample(&mut self, elapsed: Duration) -> Buried {
        let dead = self.silence.sample(elapsed, self.workers.keys(), LEASE);
        let mut buried = Buried::default();
        for worker in dead {
            let begun = self.workers.remove(&worker).flatten();
            for (id, token) in self.held_by(&worker) {
                let pays = begun == Some((id, token));
                self.bury(id, pays);
                match self.jobs[&id].state {
                    JobState::Pending => buried.returned += 1,
                    _ => buried.ended += 1,
                }
            }
            buried.workers.push(worker);
        }
        buried
    }

    /// Only a suspect that had begun pays for the death of its process.
    fn bury(&mut self, id: JobId, pays: bool) {
        let job = &self.jobs[&id];
        match pays {
            _ if job.cancel_asked => self.end(id, JobState::Cancelled, false),
            false => self.again(id, None, Charge::GivenBack, Some(true)),
            true if job.attempt >= job.max_attempts => self.end(id, JobState::Failed, true),
            true => {
                let wait = backoff(job.attempt);
                self.again(id, Some(wait), Charge::Paid, Some(true));
            }
        }
    }

    pub fn cancel(&mut self, id: JobId) -> Answer {
        match self.jobs.get_mut(&id) {
            None => Answer::Missing,
            Some(job) if job.state == JobState::Processing => {
                job.cancel_asked = true;
                Answer::Asked
            }
            Some(job) if job.state == JobState::Pending => {
                self.end(id, JobState::Cancelled, false);
                Answer::Done
            }
            Some(_) => Answer::Conflict,
        }
    }

    pub fn redrive(&mut self, id: JobId) -> Answer {
        let Some(job) = self.jobs.get(&id) else {
            return Answer::Missing;
        };
        let taken = job.key.and_then(|key| self.key_holder(job.kind, key));
        if !job.state.is_terminal() || taken.is_some() {
            return Answer::Conflict;
        }
        let now = self.now;
        let job = self.jobs.get_mut(&id).unwrap();
        job.state = JobState::Pending;
        job.attempt = 0;
        job.due = now;
        job.ended_at = None;
        job.has_key = job.key.is_some();
        Answer::Done
    }

    pub fn delete(&mut self, id: JobId) -> Answer {
        match self.jobs.get(&id).map(|job| job.state) {
            None => Answer::Missing,
            Some(JobState::Processing) => Answer::Conflict,
            Some(_) => {
                self.jobs.remove(&id);
                Answer::Done
            }
        }
    }

    /// Ended jobs whose time is over, with when it was over.
    pub fn over(&self) -> BTreeMap<JobId, Timestamp> {
        let until = |job: &Job| {
            let kept = match job.state {
                JobState::Completed => DAY,
                JobState::Failed => DAY * 30,
                _ => DAY * 7,
            };
            let until = clock::add(job.ended_at?, kept);
            (until <= self.now).then_some(until)
        };
        let over = |(id, job): (&JobId, &Job)| Some((*id, until(job)?));
        self.jobs.iter().filter_map(over).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Charge {
    /// The attempt counts, and its error is kept.
    Paid,
    GivenBack,
}

/// The default policy, without its random part.
fn backoff(attempt: u32) -> Duration {
    Duration::from_secs(30) * attempt
}
