//! The faults: half of them kill a worker, half stop it until others have taken over, and wake it.
//!
//! A fault counts only if the worker had begun a job and not ended it, by its log and by the store,
//! after the signal had done its work. One that doesn't count is tried again.

use std::time::Duration;

use anyhow::Result;
use indicatif::ProgressBar;
use rowlock::clock::Elapsed;
use rowlock::{JobState, Record, Rowlock};
use rustix::process::Signal;

use super::dice::Dice;
use super::home::Home;
use super::produce::Producer;
use super::tail::{Attempt, Tail};
use super::workers::{Fate, Worker};
use super::{LOOK, STUCK};
use crate::cli::Crash;
use crate::{exit, show};

/// The time between two faults.
const SHORTEST: Duration = Duration::from_millis(80);
const LONGEST: Duration = Duration::from_millis(180);
/// Whoever can't write for so long is kept from it by the process that we have just stopped.
const LOCKED: Duration = Duration::from_millis(400);
/// How long a stopped worker waits for others to be at its jobs.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many workers there are.
const WORKERS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill,
    Stop,
}

/// What was done, and what came of it.
#[derive(Debug, Default)]
pub struct Toll {
    pub kills: u32,
    pub stops: u32,
    /// Answers of workers that had been given up, and that were accepted all the same.
    pub late_accepted: u64,
}

pub struct Faults<'a> {
    home: &'a Home,
    rowlock: Rowlock,
    dice: Dice,
    bar: ProgressBar,
    tail: Tail,
    workers: Vec<Worker>,
    /// What is to come, the next one last.
    plan: Vec<Fault>,
    next_at: Elapsed,
    /// When something went forward last.
    moved_at: Elapsed,
    toll: Toll,
}

impl<'a> Faults<'a> {
    pub fn new(
        home: &'a Home,
        rowlock: Rowlock,
        mut dice: Dice,
        how: &Crash,
        bar: ProgressBar,
    ) -> Result<Self> {
        let fault = |n| match n % 2 {
            0 => Fault::Kill,
            _ => Fault::Stop,
        };
        let mut plan: Vec<_> = (0..how.kills).map(fault).collect();
        dice.shuffle(&mut plan);
        let now = rowlock.clock().elapsed();
        Ok(Self {
            tail: Tail::open(&home.ran())?,
            next_at: now + dice.between(SHORTEST, LONGEST),
            moved_at: now,
            workers: (0..WORKERS)
                .map(|_| Worker::start(home))
                .collect::<Result<_>>()?,
            toll: Toll::default(),
            home,
            rowlock,
            dice,
            bar,
            plan,
        })
    }

    /// Until every fault has counted.
    pub async fn all(&mut self, producer: &mut Producer) -> Result<()> {
        while !self.plan.is_empty() || self.is_waiting() {
            self.look().await?;
            let now = self.now();
            if !self.plan.is_empty() && now >= self.next_at {
                self.next_at = now + self.dice.between(SHORTEST, LONGEST);
                match self.victim() {
                    // In the middle of all this somebody enqueues.
                    Some(victim) => {
                        producer.some(1).await?;
                        self.strike(victim).await?;
                    }
                    // It may have claimed, and may not have begun yet.
                    None => {
                        let more = producer.some(4).await?;
                        if !more && super::left(&self.rowlock).await? == 0 {
                            return Err(self.too_few());
                        }
                    }
                }
            }
            if self.now().saturating_sub(self.moved_at) > STUCK {
                return Err(self.stuck());
            }
            self.rowlock.clock().sleep(LOOK).await;
        }
        Ok(())
    }

    /// Lets the workers end, so that their last lines are written.
    pub async fn finish(mut self) -> Result<Toll> {
        for worker in &self.workers {
            worker.signal(Signal::TERM)?;
        }
        let since = self.now();
        for worker in &mut self.workers {
            while !worker.has_ended()? {
                if self.rowlock.clock().elapsed().saturating_sub(since) > STUCK {
                    let text = format!("a worker doesn't end{}", worker.last_words());
                    return Err(exit::with(exit::FAILED, text));
                }
                self.rowlock.clock().sleep(LOOK).await;
            }
        }
        Ok(self.toll)
    }

    fn too_few(&self) -> anyhow::Error {
        let left = self.plan.len();
        exit::with(
            exit::FAILED,
            format!("{left} faults found no running job: give it more --jobs"),
        )
    }

    /// There is work, and yet nothing comes of it.
    fn stuck(&self) -> anyhow::Error {
        let stopped = |worker: &&Worker| matches!(worker.fate, Fate::Stopped { .. });
        let stopped = self.workers.iter().filter(stopped).count();
        let woken = |worker: &&Worker| matches!(worker.fate, Fate::Woken { .. });
        let woken = self.workers.iter().filter(woken).count();
        exit::with(
            exit::FAILED,
            format!(
                "nothing has happened for {}: {} faults are to come, {stopped} stopped workers wait to be \
                 given up and {woken} woken ones for their answers{}",
                show::span(STUCK),
                self.plan.len(),
                self.last_words(),
            ),
        )
    }

    /// What the workers said last, as the end of a sentence.
    pub fn last_words(&self) -> String {
        self.workers.iter().map(Worker::last_words).collect()
    }

    fn now(&self) -> Elapsed {
        self.rowlock.clock().elapsed()
    }

    fn is_waiting(&self) -> bool {
        let busy = |worker: &Worker| !matches!(worker.fate, Fate::Works);
        self.workers.iter().any(busy)
    }

    /// A working process that is in the middle of a job.
    fn victim(&mut self) -> Option<usize> {
        let can = |(at, worker): (usize, &Worker)| {
            let works = matches!(worker.fate, Fate::Works);
            (works && !self.tail.open_of(worker.id()).is_empty()).then_some(at)
        };
        let can: Vec<usize> = self.workers.iter().enumerate().filter_map(can).collect();
        match can.is_empty() {
            true => None,
            false => Some(can[self.dice.below(can.len())]),
        }
    }

    async fn strike(&mut self, victim: usize) -> Result<()> {
        let Some(fault) = self.plan.last().copied() else {
            return Ok(());
        };
        match fault {
            Fault::Kill => self.kill(victim).await?,
            Fault::Stop => self.stop(victim).await?,
        }
        while self.working() < WORKERS {
            self.workers.push(Worker::start(self.home)?);
        }
        Ok(())
    }

    fn working(&self) -> usize {
        let works = |worker: &&Worker| matches!(worker.fate, Fate::Works);
        self.workers.iter().filter(works).count()
    }

    async fn kill(&mut self, victim: usize) -> Result<()> {
        let mut worker = self.workers.swap_remove(victim);
        worker.signal(Signal::KILL)?;
        while !worker.has_ended()? {
            self.rowlock.clock().sleep(LOOK / 5).await;
        }
        if self.held_by(worker.id()).await?.is_some() {
            self.toll.kills += 1;
            self.counted();
        }
        Ok(())
    }

    async fn stop(&mut self, victim: usize) -> Result<()> {
        let clock = self.rowlock.clock().clone();
        self.workers[victim].signal(Signal::STOP)?;
        while !self.workers[victim].has_stopped()? {
            self.workers[victim].must_live()?;
            clock.sleep(LOOK / 5).await;
        }
        let held = self.held_by(self.workers[victim].id()).await?;
        // A process that stands still in the middle of a commit keeps everybody from writing, and
        // nobody can take over. That is a fault too, but not the one that is wanted here.
        let engine = self.rowlock.engine();
        let free = clock.timeout(LOCKED, engine.prune(1)).await.is_some();
        let worker = &mut self.workers[victim];
        match held {
            Some((name, held)) if free => {
                worker.fate = Fate::Stopped {
                    name,
                    held,
                    given_up: None,
                };
            }
            _ => worker.signal(Signal::CONT)?,
        }
        if let Fate::Stopped { .. } = worker.fate {
            self.toll.stops += 1;
            self.counted();
        }
        Ok(())
    }

    fn counted(&mut self) {
        self.plan.pop();
        self.bar.inc(1);
        self.moved_at = self.now();
    }

    /// What a process that does nothing any more had begun and not ended: by its log, and in the
    /// store, for the line may be missing of what was committed.
    async fn held_by(&mut self, process: u32) -> Result<Option<(String, Vec<Attempt>)>> {
        self.tail.read()?;
        let mut held = None::<(String, Vec<Attempt>)>;
        for (attempt, worker) in self.tail.open_of(process) {
            let job = self.rowlock.operate().job(attempt.0).await?;
            if job.is_some_and(|job| is_held(&job, &worker)) {
                held.get_or_insert((worker, Vec::new())).1.push(attempt);
            }
        }
        Ok(held)
    }

    /// Which of the stopped are to be woken: their jobs were given to others, and best of all one of
    /// these is at it right now. A late answer does the most harm then.
    ///
    /// A server finishes what a worker had sent before it was stopped: that answer isn't late.
    async fn ripe(&mut self, now: Elapsed) -> Result<Vec<bool>> {
        let mut ripe = vec![false; self.workers.len()];
        let operate = self.rowlock.operate();
        for (worker, ripe) in self.workers.iter_mut().zip(&mut ripe) {
            let Fate::Stopped {
                name,
                held,
                given_up,
            } = &mut worker.fate
            else {
                continue;
            };
            if given_up.is_none() {
                let mut still_held = Vec::new();
                for attempt in held.iter() {
                    let job = operate.job(attempt.0).await?;
                    if job.is_some_and(|job| is_held(&job, name)) {
                        still_held.push(*attempt);
                    }
                }
                let living = operate.workers().await?;
                if living.iter().any(|each| each.id.as_str() == name) {
                    // Nobody has taken the others away: it has ended them itself.
                    *held = still_held;
                    continue;
                }
            }
            let since = *given_up.get_or_insert(now);
            *ripe = now.saturating_sub(since) > PATIENCE;
            for (id, _) in held {
                let job = operate.job(*id).await?;
                *ripe |= job.is_some_and(|job| job.state == JobState::Processing);
            }
        }
        Ok(ripe)
    }

    /// A stop after which nothing was held any more hit nothing, and is to come again.
    fn missed(&mut self) {
        self.toll.stops -= 1;
        self.plan.push(Fault::Stop);
        self.bar.dec(1);
    }

    /// Wakes those that were given up, and lets those go that have given their late answers.
    async fn look(&mut self) -> Result<()> {
        self.tail.read()?;
        let now = self.now();
        let ripe = self.ripe(now).await?;
        let mut moved = false;
        let mut late_accepted = 0;
        let mut missed = 0;
        for (worker, ripe) in self.workers.iter_mut().zip(ripe) {
            worker.fate = match std::mem::replace(&mut worker.fate, Fate::Leaves) {
                Fate::Works => {
                    worker.must_live()?;
                    Fate::Works
                }
                Fate::Stopped { held, .. } if ripe => {
                    worker.signal(Signal::CONT)?;
                    moved = true;
                    Fate::Woken { held }
                }
                Fate::Stopped { held, .. } if held.is_empty() => {
                    worker.signal(Signal::CONT)?;
                    worker.signal(Signal::TERM)?;
                    missed += 1;
                    Fate::Leaves
                }
                stopped @ Fate::Stopped { .. } => stopped,
                Fate::Woken { held } => {
                    let ends: Vec<bool> =
                        held.iter().filter_map(|at| self.tail.end_of(at)).collect();
                    if ends.len() == held.len() {
                        late_accepted += ends.iter().filter(|accepted| **accepted).count() as u64;
                        worker.signal(Signal::TERM)?;
                        moved = true;
                        Fate::Leaves
                    } else {
                        worker.must_live()?;
                        Fate::Woken { held }
                    }
                }
                Fate::Leaves => Fate::Leaves,
            };
        }
        self.toll.late_accepted += late_accepted;
        for _ in 0..missed {
            self.missed();
        }
        if moved {
            self.moved_at = now;
        }
        let mut at = 0;
        while at < self.workers.len() {
            let leaves = matches!(self.workers[at].fate, Fate::Leaves);
            match leaves && self.workers[at].has_ended()? {
                true => drop(self.workers.swap_remove(at)),
                false => at += 1,
            }
        }
        Ok(())
    }
}

/// Whether a worker has a job.
fn is_held(job: &Record, worker: &str) -> bool {
    job.state == JobState::Processing && job.locked_by.as_deref() == Some(worker)
}
