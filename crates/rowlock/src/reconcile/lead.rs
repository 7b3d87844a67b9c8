//! Leading: which posts this process holds, and running their ticks when they are due.
//!
//! A post is a row with a token and a counter. Its leader counts on; whoever has seen the same count
//! for a whole lease takes over with a token of its own, by elapsed time alone, so no clock has to be
//! right. A leader that was stopped and wakes up finds every write of its token refused.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;

use super::turn::{Finished, SoFar, Turn, Worker};
use super::{Pair, Questions, Sources};
use crate::claim::Observer;
use crate::clock::{self, Elapsed};
use crate::engine::{Duty, Leading, Post, Posts, Take};
use crate::error::Result;
use crate::job::{Name, Token};
use crate::log;
use crate::run::task::{self, Tasks};
use crate::store::Rowlock;

/// Posts are never looked at more often than this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
/// While there are posts to be had, looks follow each other like this.
const EAGER: Duration = Duration::from_millis(100);
/// After so many failures in a row a post is left to others for a while.
const FAILURES: u32 = 3;
/// After a panic.
const PANIC_PAUSE: Duration = Duration::from_secs(60);
/// How often a leader sees to what its ticks leave behind.
const TIDY_EVERY: Duration = Duration::from_secs(60);
const COVER_EVERY: Duration = Duration::from_secs(600);

/// Leads what it can get hold of, until it is dropped.
pub(crate) struct Scheduler {
    worker: Worker,
    holder: String,
    lease: Duration,
    observer: Observer<Duty, (Option<Token>, i64)>,
    mine: HashMap<Duty, Held>,
    pairs: HashMap<Name, Arc<Pair>>,
    paused: Vec<Name>,
    /// Posts that this process has failed at lately, and until when it leaves them to others.
    shunned: HashMap<Duty, Elapsed>,
    /// Posts to be given up with the next look.
    leaving: Vec<(Duty, Token)>,
    /// What time it was for the engine, and when that was.
    seen: Option<(Timestamp, Elapsed)>,
    tasks: Tasks,
    done: mpsc::UnboundedSender<Finished>,
    finished: mpsc::UnboundedReceiver<Finished>,
}

/// A post that is held.
struct Held {
    token: Token,
    due: Option<Timestamp>,
    cursor: Option<String>,
    so_far: SoFar,
    failures: u32,
    running_since: Option<Elapsed>,
    tidied: Option<Elapsed>,
    covered: Option<Elapsed>,
}

impl Scheduler {
    pub(crate) fn new(
        rowlock: &Rowlock,
        sources: Sources,
        questions: Arc<Questions>,
        holder: String,
        lease: Duration,
    ) -> Self {
        let (done, finished) = mpsc::unbounded_channel();
        Self {
            worker: Worker {
                lead: rowlock.lead(),
                schedule: rowlock.schedule(),
                sources,
                questions,
                clock: rowlock.clock().clone(),
            },
            holder,
            // Sooner than the worker's: whoever takes over has done so within the lease.
            lease: lease * 2 / 3,
            observer: Observer::default(),
            mine: HashMap::new(),
            pairs: HashMap::new(),
            paused: Vec::new(),
            shunned: HashMap::new(),
            leaving: Vec::new(),
            seen: None,
            tasks: Tasks::default(),
            done,
            finished,
        }
    }

    /// Looks, leads and ticks until it is dropped.
    pub(crate) async fn run(&mut self) {
        loop {
            let began = self.worker.clock.elapsed();
            let usual = self.lease / Observer::SAMPLES_PER_LEASE;
            let pause = match self.look().await {
                Ok(true) => EAGER.min(usual),
                // Somebody may declare something one day.
                Ok(false) if self.pairs.is_empty() && self.mine.is_empty() => usual * 3 / 2,
                Ok(false) => usual,
                Err(why) => {
                    log::warn!(%why, "can't look at the posts of leaders");
                    usual
                }
            };
            let look_at = began + pause.max(SHORTEST_PAUSE);
            loop {
                self.start_due();
                let now = self.worker.clock.elapsed();
                if now >= look_at {
                    break;
                }
                let wait = (look_at - now).min(self.until_due().unwrap_or(Duration::MAX));
                let clock = self.worker.clock.clone();
                tokio::select! {
                    Some(finished) = self.finished.recv() => self.finish(finished),
                    () = clock.sleep(wait) => {}
                }
            }
        }
    }

    /// Takes what nobody leads and runs what is due once.
    pub(crate) async fn pass(&mut self) {
        loop {
            match self.look().await {
                Ok(true) => {}
                Ok(false) => break,
                Err(why) => {
                    log::warn!(%why, "ticks that are due wait for another process");
                    return;
                }
            }
        }
        self.start_due();
        while self.mine.values().any(|held| held.running_since.is_some()) {
            if let Some(finished) = self.finished.recv().await {
                self.finish(finished);
            }
        }
        // What ticks leave behind is seen to before the worker ends.
        self.tasks.join().await;
    }

    /// Gives the posts up, so that others needn't wait.
    pub(crate) async fn leave(&mut self) {
        self.tasks = Tasks::default();
        let leave: Vec<_> = self
            .mine
            .drain()
            .map(|(duty, held)| (duty, held.token))
            .collect();
        if leave.is_empty() {
            return;
        }
        let leading = Leading {
            leave,
            ..Leading::default()
        };
        if let Err(why) = self.worker.lead.lead(leading).await {
            log::debug!(%why, "posts were not given up, others wait for the lease");
        }
    }

    /// Renews what is held and takes what is to be had. Whether there may be more of it.
    async fn look(&mut self) -> Result<bool> {
        self.tasks.tidy();
        self.drop_stuck();
        let posts = self.ask(Vec::new()).await?;
        self.read_pairs(&posts).await?;
        let take = self.wanted(&posts)?;
        if take.is_empty() {
            return Ok(false);
        }
        let tokens: Vec<Token> = take.iter().map(|each| each.token).collect();
        let posts = self.ask(take).await?;
        crash_point!("lead.taken");
        for post in posts.posts {
            if let Some(token) = post.token.filter(|token| tokens.contains(token)) {
                log::info!(post = %Shown(&post.duty), "leads");
                let held = Held {
                    token,
                    due: post.due_at,
                    cursor: post.cursor,
                    so_far: SoFar::default(),
                    failures: 0,
                    running_since: None,
                    tidied: None,
                    covered: None,
                };
                self.mine.insert(post.duty, held);
            }
        }
        Ok(true)
    }

    async fn ask(&mut self, take: Vec<Take>) -> Result<Posts> {
        let keep = self
            .mine
            .iter()
            .map(|(duty, held)| (duty.clone(), held.token))
            .collect();
        let leading = Leading {
            holder: self.holder.clone(),
            keep,
            take,
            leave: self.leaving.clone(),
        };
        let posts = self.worker.lead.lead(leading).await?;
        self.leaving.clear();
        self.seen = Some((posts.now, self.worker.clock.elapsed()));
        let ours = |duty: &Duty, token| {
            let same = |post: &Post| post.duty == *duty && post.token == Some(token);
            posts.posts.iter().any(same)
        };
        self.mine.retain(|duty, held| {
            let still = ours(duty, held.token);
            if !still {
                log::warn!(post = %Shown(duty), "another process leads now");
            }
            still
        });
        for post in &posts.posts {
            // A pair that was changed is due at once and begins anew.
            if let Some(held) = self.mine.get_mut(&post.duty)
                && held.running_since.is_none()
                && post.duty != Duty::Cron
            {
                held.due = post.due_at;
                held.cursor.clone_from(&post.cursor);
            }
        }
        Ok(posts)
    }

    /// A tick that doesn't end would keep its post for ever: others shall have it.
    fn drop_stuck(&mut self) {
        let now = self.worker.clock.elapsed();
        let lease = self.lease;
        let pairs = &self.pairs;
        self.mine.retain(|duty, held| {
            let allowed = match duty {
                Duty::Pair(name, _) => pairs.get(name).map_or(lease, |pair| pair.timeout * 2),
                Duty::Cron => lease,
            };
            let ran = held.running_since.map(|since| now.saturating_sub(since));
            let stuck = ran.is_some_and(|ran| ran > allowed + lease);
            if stuck {
                log::error!(post = %Shown(duty), "a tick doesn't end, its post is left to others");
            }
            !stuck
        });
    }

    async fn read_pairs(&mut self, posts: &Posts) -> Result<()> {
        // Without a pair's post there is no pair: the last one may just have been removed.
        let rows = match posts.posts.iter().any(|post| post.duty != Duty::Cron) {
            true => self.worker.schedule.pairs().await?,
            false => Vec::new(),
        };
        let stopped = rows.iter().filter(|row| row.switch.is_some());
        self.paused = stopped.map(|row| row.pair.name.clone()).collect();
        let pairs: Vec<Pair> = rows.into_iter().map(|row| row.pair).collect();
        self.pairs = pairs
            .iter()
            .map(|pair| (pair.name.clone(), Arc::new(pair.clone())))
            .collect();
        self.worker.questions.know(pairs);
        Ok(())
    }

    /// Posts that are empty or whose leader stood still; of a pair's empty shards one at a time, so
    /// that other processes get theirs.
    fn wanted(&mut self, posts: &Posts) -> Result<Vec<Take>> {
        let others: Vec<_> = posts
            .posts
            .iter()
            .filter(|post| !self.mine.contains_key(&post.duty))
            .map(|post| (post.duty.clone(), (post.token, post.beat), self.lease))
            .collect();
        let now = self.worker.clock.elapsed();
        let silent = self.observer.sample((now, now), &others);
        let mut take = Vec::new();
        let mut taken = Vec::new();
        for (duty, seen, _) in others {
            let vacant = seen.0.is_none();
            if !(vacant || silent.contains(&duty)) || !self.can_lead(&duty) {
                continue;
            }
            if self.shunned.get(&duty).is_some_and(|until| now < *until) {
                continue;
            }
            if let Duty::Pair(name, _) = &duty
                && vacant
            {
                if taken.contains(name) {
                    continue;
                }
                taken.push(name.clone());
            }
            let token = Token::random()?;
            take.push(Take { duty, seen, token });
        }
        Ok(take)
    }

    fn can_lead(&self, duty: &Duty) -> bool {
        match duty {
            Duty::Cron => true,
            Duty::Pair(name, _) => {
                let pair = self.pairs.get(name);
                pair.is_some_and(|pair| self.worker.sources.of(pair).is_some())
            }
        }
    }

    /// What time it is for the engine.
    fn now(&self) -> Option<Timestamp> {
        let (now, at) = self.seen?;
        Some(clock::add(
            now,
            self.worker.clock.elapsed().saturating_sub(at),
        ))
    }

    fn is_stopped(&self, duty: &Duty) -> bool {
        match duty {
            Duty::Cron => false,
            Duty::Pair(name, _) => self.paused.contains(name) || !self.pairs.contains_key(name),
        }
    }

    fn until_due(&self) -> Option<Duration> {
        let now = self.now()?;
        self.mine
            .iter()
            .filter(|(duty, held)| held.running_since.is_none() && !self.is_stopped(duty))
            .filter_map(|(_, held)| held.due)
            .map(|due| Duration::try_from(now.duration_until(due)).unwrap_or_default())
            .min()
    }

    fn start_due(&mut self) {
        let Some(now) = self.now() else { return };
        let elapsed = self.worker.clock.elapsed();
        let stopped: Vec<Duty> = self
            .mine
            .keys()
            .filter(|duty| self.is_stopped(duty))
            .cloned()
            .collect();
        for (duty, held) in &mut self.mine {
            let due = held.due.is_none_or(|due| due <= now);
            if !due || held.running_since.is_some() || stopped.contains(duty) {
                continue;
            }
            held.running_since = Some(elapsed);
            let (worker, done, token) = (self.worker.clone(), self.done.clone(), held.token);
            let again = |last: &mut Option<Elapsed>, every: Duration| {
                let due = last.is_none_or(|at| elapsed.saturating_sub(at) >= every);
                if due {
                    *last = Some(elapsed);
                }
                due
            };
            match duty {
                Duty::Cron => self.tasks.start("rowlock-cron", async move {
                    let finished = task::catch(worker.cron(token, now)).await;
                    let finished = finished.unwrap_or_else(|panic| {
                        log::error!(panic, "firing crons panicked");
                        Finished::broken(Duty::Cron, token, clock::add(now, PANIC_PAUSE))
                    });
                    // Without a listener the worker has gone.
                    let _ = done.send(finished);
                }),
                Duty::Pair(name, shard) => {
                    let Some(pair) = self.pairs.get(name).cloned() else {
                        continue;
                    };
                    let turn = Turn {
                        pair,
                        shard: *shard,
                        token,
                        cursor: held.cursor.clone(),
                        so_far: held.so_far.clone(),
                        now,
                        tidy: again(&mut held.tidied, TIDY_EVERY),
                        cover: *shard == 0 && again(&mut held.covered, COVER_EVERY),
                    };
                    let duty = duty.clone();
                    self.tasks.start("rowlock-tick", async move {
                        let finished = task::catch(worker.turn(&turn)).await;
                        let finished = finished.unwrap_or_else(|panic| {
                            log::error!(post = %Shown(&duty), panic, "a tick panicked");
                            Finished::broken(duty, token, clock::add(now, PANIC_PAUSE))
                        });
                        let well = !finished.failed && !finished.lost && finished.cursor.is_none();
                        let _ = done.send(finished);
                        if well {
                            worker.look_after(&turn).await;
                        }
                    });
                }
            }
        }
    }

    fn finish(&mut self, finished: Finished) {
        if let Some(held) = self.mine.get_mut(&finished.duty)
            && held.token == finished.token
        {
            if finished.lost {
                self.mine.remove(&finished.duty);
                log::warn!(post = %Shown(&finished.duty), "another process leads now");
                return;
            }
            held.running_since = None;
            held.due = finished.due;
            held.cursor = finished.cursor;
            held.so_far = finished.so_far;
            held.failures = match finished.failed {
                true => held.failures + 1,
                false => 0,
            };
            if held.failures >= FAILURES {
                // Perhaps it is only this process that can't: another one may try.
                let until = self.worker.clock.elapsed() + self.lease * 2;
                self.shunned.insert(finished.duty.clone(), until);
                self.leaving.push((finished.duty.clone(), finished.token));
                self.mine.remove(&finished.duty);
            }
        }
    }
}

struct Shown<'a>(&'a Duty);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Duty::Cron => f.write_str("crons"),
            Duty::Pair(name, 0) => write!(f, "pair {name}"),
            Duty::Pair(name, shard) => write!(f, "pair {name} shard {shard}"),
        }
    }
}
