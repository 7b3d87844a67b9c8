//! One life: every operation goes to the engine and to the machine, and both must say the same.

use std::time::Duration;

use rowlock::claim::{ClaimedJob, WorkerId};
use rowlock::engine::Cancel;
use rowlock::error::Error;
use rowlock::job::{Backoff, Token, UniqueUntil};
use rowlock::settle::{Settlement, Verdict};
use rowlock::stage::{Enqueued, Status};
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{JobId, JobState, Kind, NewJob, Outcome};

use super::machine::{Answer, Buried, Job, Machine};
use super::operation::{FLEETING, Held, KEYS, KINDS, Operation, Order, QUEUES, Say, WORKERS, Word};
use super::picked::{Wish, picked_well};
use crate::conformance::world::{Client, LEASE, Site, World, name, wanted};

/// What both sides answered, if it isn't the same.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, engine: T, model: T) -> Result<(), String> {
    match engine == model {
        true => Ok(()),
        false => Err(format!(
            "{what}\n  the engine says {engine:?}\n  the model says  {model:?}"
        )),
    }
}

/// What a worker was given once, whatever has become of it.
struct Belief {
    worker: WorkerId,
    job: ClaimedJob,
}

pub struct Life {
    pub world: World,
    /// Two processes; the first one is the observer too.
    pub sites: [Site; 2],
    pub client: Box<dyn Client>,
    pub machine: Machine,
    workers: Vec<WorkerId>,
    beliefs: Vec<Belief>,
    /// Every job there ever was.
    staged: Vec<JobId>,
}

impl Life {
    pub async fn begin(world: World) -> Self {
        let sites = [world.open(), world.open()];
        let mut fleeting = Kind::new(FLEETING).unwrap();
        fleeting.retention.completed = Duration::ZERO;
        sites[0].rowlock.operate().apply(&[fleeting]).await.unwrap();
        let mut life = Self {
            client: world.home.client(),
            machine: Machine::begin(world.clock.now()),
            workers: Vec::new(),
            beliefs: Vec::new(),
            staged: Vec::new(),
            world,
            sites,
        };
        for worker in 0..WORKERS {
            let joined = life.join(worker).await;
            life.workers.push(joined);
        }
        life
    }

    fn site(&self, worker: usize) -> &Site {
        &self.sites[worker % 2]
    }

    async fn join(&mut self, worker: usize) -> WorkerId {
        let joined = self.site(worker).join().await;
        self.machine.join(&joined);
        joined
    }

    pub async fn step(&mut self, operation: &Operation) -> Result<(), String> {
        self.machine.now = self.world.clock.now();
        match operation {
            Operation::Stage(orders) => self.stage(orders).await?,
            Operation::Claim {
                worker,
                kinds,
                queue,
                limit,
            } => {
                let wish = Wish {
                    kinds: kinds.iter().map(|kind| KINDS[*kind]).collect(),
                    queue: queue.map(|queue| QUEUES[queue]),
                    limit: *limit,
                    suspect: false,
                };
                self.claim(*worker, &wish).await?;
            }
            Operation::ClaimSuspect { worker, starts } => {
                let before = self.beliefs.len();
                self.claim(*worker, &Wish::suspect()).await?;
                if *starts && self.beliefs.len() > before {
                    self.start_suspect(0).await?;
                }
            }
            Operation::StartSuspect { claim } => self.start_suspect(*claim).await?,
            Operation::Settle(says) => self.settle(says).await?,
            Operation::Heartbeat { worker, held } => self.heartbeat(*worker, *held).await?,
            Operation::Leave { worker } => {
                let engine = self.site(*worker).engine();
                let left = engine.leave(&self.workers[*worker]).await;
                left.map_err(|why| why.to_string())?;
                self.machine.leave(&self.workers[*worker]);
            }
            Operation::Replace { worker } => self.workers[*worker] = self.join(*worker).await,
            Operation::Silence { silent, replaced } => {
                self.silence(silent).await?;
                for worker in silent.iter().filter(|_| *replaced) {
                    self.workers[*worker] = self.join(*worker).await;
                }
            }
            Operation::Sample { after } => {
                self.wait(*after);
                self.sample().await?;
            }
            Operation::Cancel(jobs) => self.cancel(jobs).await?,
            Operation::Redrive(jobs) => {
                let ids = self.ids(jobs);
                let told = self.sites[0].engine().redrive(ids.clone()).await;
                let told = told.map_err(|why| why.to_string())?;
                let told = told.into_iter().map(|each| each.map(|()| Answer::Done));
                let model = ids.iter().map(|id| self.machine.redrive(*id));
                same("redrive", answers(told)?, model.collect())?;
            }
            Operation::Delete(jobs) => {
                let ids = self.ids(jobs);
                let told = self.sites[0].engine().delete(ids.clone()).await;
                let told = told.map_err(|why| why.to_string())?;
                let told = told.into_iter().map(|each| each.map(|()| Answer::Done));
                let model = ids.iter().map(|id| self.machine.delete(*id));
                same("delete", answers(told)?, model.collect())?;
            }
            Operation::Prune { limit } => self.prune(*limit).await?,
            Operation::Pause(queue) => {
                let queue = QUEUES[*queue];
                let pause = Some(Setting::new(Mode::Pause));
                let schedule = self.sites[0].rowlock.schedule();
                let paused = schedule.switch(Target::Queue, &name(queue), pause).await;
                paused.map_err(|why| why.to_string())?;
                self.machine.paused.insert(queue);
            }
            Operation::Resume(queue) => {
                let queue = QUEUES[*queue];
                let schedule = self.sites[0].rowlock.schedule();
                let resumed = schedule.switch(Target::Queue, &name(queue), None).await;
                let resumed = resumed.is_ok();
                same("resume", resumed, self.machine.paused.remove(queue))?;
            }
            Operation::Wait { seconds } => self.wait(*seconds),
        }
        self.compare().await
    }

    fn wait(&mut self, seconds: u64) {
        self.world.advance(Duration::from_secs(seconds));
        self.machine.now = self.world.clock.now();
    }

    /// Jobs, counted back from the newest; with nothing staged yet, one that never was.
    fn ids(&self, jobs: &[usize]) -> Vec<JobId> {
        let back = |n: &usize| {
            let at = self.staged.len().checked_sub(1)?;
            Some(self.staged[at - n % self.staged.len()])
        };
        let id = |n| back(n).unwrap_or(JobId(77));
        jobs.iter().map(id).collect()
    }

    async fn stage(&mut self, orders: &[Order]) -> Result<(), String> {
        let jobs = orders.iter().map(new_job).collect();
        let told = self.sites[1].rowlock.enqueue_many(jobs).await;
        let told = told.map_err(|why| why.to_string())?;
        for (order, answer) in orders.iter().zip(told) {
            let key = order.key.map(|key| KEYS[key]);
            let holder = key.and_then(|key| self.machine.key_holder(KINDS[order.kind], key));
            if let Some(id) = holder {
                let duplicate = Enqueued {
                    id: Some(id),
                    status: Status::Duplicate,
                };
                same("stage", answer, duplicate)?;
                continue;
            }
            same("stage", answer.status, Status::Queued)?;
            let id = answer.id.ok_or("a staged job has an id")?;
            let newest = self.staged.last().copied();
            same("a new id is higher", newest < Some(id), true)?;
            self.staged.push(id);
            let job = self.pending(order);
            self.machine.jobs.insert(id, job);
        }
        Ok(())
    }

    fn pending(&self, order: &Order) -> Job {
        Job {
            kind: KINDS[order.kind],
            queue: QUEUES[order.queue],
            priority: order.priority,
            state: JobState::Pending,
            attempt: 0,
            max_attempts: order.max_attempts,
            due: rowlock::clock::add(self.machine.now, Duration::from_secs(order.delay)),
            key: order.key.map(|key| KEYS[key]),
            key_until_start: order.key_until_start,
            has_key: order.key.is_some(),
            suspect: false,
            cancel_asked: false,
            holder: None,
            errors: Vec::new(),
            ended_at: None,
        }
    }

    async fn claim(&mut self, worker: usize, wish: &Wish) -> Result<(), String> {
        let me = self.workers[worker].clone();
        let mut claim = wanted(&me, &wish.kinds, wish.limit);
        claim.queues = wish.queue.into_iter().map(name).collect();
        claim.suspect = wish.suspect;
        let token = claim.token;
        let told = self.site(worker).engine().claim(claim).await;
        if !self.machine.workers.contains_key(&me) {
            // With nothing due an engine need not look who asks.
            return match told {
                Err(Error::LeaseLost) => Ok(()),
                Ok(claimed) if claimed.jobs.is_empty() => Ok(()),
                other => Err(format!("a worker that was given up claims {other:?}")),
            };
        }
        let claimed = told.map_err(|why| why.to_string())?;
        picked_well(&self.machine, wish, &claimed)?;
        for job in claimed.jobs {
            self.machine.claim(job.id, &me, token);
            let model = &self.machine.jobs[&job.id];
            same("the claim's token", job.token, token)?;
            same("the attempt's number", job.attempt, model.attempt)?;
            self.beliefs.push(Belief {
                worker: me.clone(),
                job,
            });
        }
        Ok(())
    }

    fn belief(&self, back: usize, of_held: bool) -> Option<&Belief> {
        let running = |id| {
            self.machine
                .jobs
                .get(&id)
                .is_some_and(|job| job.holder.is_some())
        };
        let newest = self.beliefs.iter().rev();
        let mut among: Vec<_> = newest
            .filter(|each| !of_held || running(each.job.id))
            .collect();
        let n = back % among.len().max(1);
        (n < among.len()).then(|| among.swap_remove(n))
    }

    async fn start_suspect(&mut self, back: usize) -> Result<(), String> {
        let suspects = self.beliefs.iter().rev().filter(|each| each.job.suspect);
        let Some(Belief { worker, job }) = suspects.clone().nth(back) else {
            return Ok(());
        };
        let engine = self.sites[0].engine();
        let told = engine.start_suspect(worker, job.id, job.token).await;
        let model = self.machine.start_suspect(worker, job.id, job.token);
        same("the start of a suspect", told.is_ok(), model)
    }

    async fn settle(&mut self, says: &[Say]) -> Result<(), String> {
        let mut batch = Vec::new();
        let mut model = Vec::new();
        for say in says {
            let Some(belief) = self.belief(say.claim, say.of_held) else {
                continue;
            };
            let other = say.token_of.and_then(|back| self.belief(back, false));
            let token = other.unwrap_or(belief).job.token;
            let id = belief.job.id;
            // Whoever has the current token knows the attempt that goes with it.
            let is_it = |each: &&Belief| (each.job.id, each.job.token) == (id, token);
            let belief = self.beliefs.iter().find(is_it).unwrap_or(belief);
            let verdict = self.verdict(&belief.job, say.word);
            model.push(self.machine.settle(id, token, say.word));
            batch.push(Settlement {
                id,
                token,
                verdict,
                started_at: None,
            });
        }
        let told = self.sites[0].engine().settle(batch).await;
        same("settle", told.map_err(|why| why.to_string())?, model)
    }

    /// What a worker makes of a handler's word.
    fn verdict(&self, job: &ClaimedJob, word: Word) -> Verdict {
        let outcome = match word {
            Word::Release => return Verdict::Release,
            Word::Sent => return Verdict::Sent,
            Word::Done => Outcome::Done,
            Word::NotNeeded => Outcome::NotNeeded,
            Word::Snooze(seconds) => Outcome::Snooze(Duration::from_secs(seconds)),
            Word::Fail => Outcome::Fail("no".to_owned()),
            Word::Cancelled => Outcome::Cancel,
            Word::Retry(after) => Outcome::Retry {
                error: "boom".to_owned(),
                after: after.map(Duration::from_secs),
            },
        };
        rowlock::settle::verdict(job, outcome, || self.machine.now)
    }

    async fn heartbeat(&mut self, worker: usize, held: Held) -> Result<(), String> {
        let me = self.workers[worker].clone();
        let mine = self.beliefs.iter().filter(|each| each.worker == me);
        let mut tokens: Vec<Token> = mine.map(|each| each.job.token).collect();
        match held {
            Held::All => {}
            Held::AllButTheLast => {
                let last = tokens.last().copied();
                tokens.retain(|token| Some(*token) != last);
            }
            Held::Nothing => tokens.clear(),
        }
        let told = self.site(worker).beat(&me, &tokens).await;
        let told = match told {
            Ok(mut beat) => {
                beat.cancel_requested.sort();
                beat.stopped.sort();
                Some(beat)
            }
            Err(Error::LeaseLost) => None,
            Err(why) => return Err(why.to_string()),
        };
        same("heartbeat", told, self.machine.heartbeat(&me, &tokens))
    }

    async fn silence(&mut self, silent: &[usize]) -> Result<(), String> {
        self.sample().await?;
        for _ in 0..6 {
            self.wait(LEASE.as_secs() / 6);
            for worker in (0..WORKERS).filter(|worker| !silent.contains(worker)) {
                self.heartbeat(worker, Held::All).await?;
            }
            self.sample().await?;
        }
        Ok(())
    }

    async fn sample(&mut self) -> Result<(), String> {
        let told = self.sites[0].engine().expire().await;
        let mut told = told.map_err(|why| why.to_string())?;
        told.workers.sort();
        let told = Buried {
            workers: told.workers,
            returned: told.returned,
            ended: told.ended,
        };
        let model = self.machine.sample(self.world.clock.elapsed());
        same("expire", told, model)
    }

    async fn cancel(&mut self, jobs: &[usize]) -> Result<(), String> {
        let ids = self.ids(jobs);
        let told = self.sites[1].engine().cancel(ids.clone()).await;
        let told = told.map_err(|why| why.to_string())?.into_iter();
        let told = told.map(|each| {
            each.map(|done| match done {
                Cancel::Cancelled => Answer::Done,
                Cancel::Requested => Answer::Asked,
            })
        });
        let model = ids.iter().map(|id| self.machine.cancel(*id));
        same("cancel", answers(told)?, model.collect())
    }

    /// Which of several that ended at once goes first is the engine's business.
    async fn prune(&mut self, limit: usize) -> Result<(), String> {
        let over = self.machine.over();
        let told = self.sites[0].engine().prune(limit).await;
        let told = told.map_err(|why| why.to_string())?;
        let least = over.len().min(limit);
        match self.sites[0].engine().capabilities().prunes_by_day {
            // A day goes as a whole.
            true => same("prune", (least..=over.len()).contains(&told), true)?,
            false => same("prune", told, least)?,
        }
        let mut oldest_left = None;
        for (id, until) in &over {
            let left = self.sites[0].rowlock.operate().job(*id).await;
            if left.map_err(|why| why.to_string())?.is_some() {
                oldest_left = oldest_left.max(Some(std::cmp::Reverse(*until)));
            } else {
                self.machine.jobs.remove(id);
            }
        }
        let gone = over
            .iter()
            .filter(|(id, _)| !self.machine.jobs.contains_key(id));
        same("pruned as told", gone.clone().count(), told)?;
        let newest_gone = gone.map(|(_, until)| *until).max();
        let in_order = match (newest_gone, oldest_left) {
            (Some(gone), Some(left)) => gone <= left.0,
            _ => true,
        };
        same("the oldest are pruned first", in_order, true)
    }
}

fn new_job(order: &Order) -> NewJob {
    let backoff = Backoff::Linear {
        base: Duration::from_secs(30),
        jitter: 0.0,
    };
    let mut job = NewJob::new(KINDS[order.kind]).unwrap();
    job = job.queue(name(QUEUES[order.queue])).backoff(backoff);
    job = job.priority(order.priority);
    job = job.delay(Duration::from_secs(order.delay));
    job = job.max_attempts(order.max_attempts).unwrap();
    if let Some(key) = order.key {
        job = job.unique(KEYS[key]).unwrap();
    }
    job.unique_until(match order.key_until_start {
        true => UniqueUntil::Start,
        false => UniqueUntil::Finished,
    })
}

fn answers(
    told: impl Iterator<Item = rowlock::error::Result<Answer>>,
) -> Result<Vec<Answer>, String> {
    let answer = |each| match each {
        Ok(answer) => Ok(answer),
        Err(Error::NotFound(_)) => Ok(Answer::Missing),
        Err(Error::Conflict { .. }) => Ok(Answer::Conflict),
        Err(why) => Err(why.to_string()),
    };
    told.map(answer).collect()
}
