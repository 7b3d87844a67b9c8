//! A leader's turn: one tick of a shard, or one look at the crons, and what is noted about it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::tick::{Tick, Walked, judge};
use super::{Cadence, Pair, Questions, Sources};
use crate::clock::{self, Clock};
use crate::engine::{Duty, Lead, Schedule, TickEnd, Ticked};
use crate::error::{Error, Result};
use crate::event;
use crate::job::{Calendar, Token};
use crate::log;

/// How many held-back keys are looked at in one go.
const TIDY_KEYS: usize = 500;

/// What a tick needs; each runs as a task of its own.
#[derive(Clone)]
pub(super) struct Worker {
    pub(super) lead: Arc<dyn Lead>,
    pub(super) schedule: Arc<dyn Schedule>,
    pub(super) sources: Sources,
    pub(super) questions: Arc<Questions>,
    pub(super) clock: Clock,
}

/// How a turn went.
pub(super) struct Finished {
    pub(super) duty: Duty,
    pub(super) token: Token,
    pub(super) due: Option<Timestamp>,
    pub(super) cursor: Option<String>,
    /// What the parts of a tick that overran have come to so far.
    pub(super) so_far: SoFar,
    pub(super) failed: bool,
    pub(super) lost: bool,
}

impl Finished {
    /// How a turn went that came to no end of its own.
    pub(super) fn broken(duty: Duty, token: Token, due: Timestamp) -> Self {
        Self {
            duty,
            token,
            due: Some(due),
            cursor: None,
            so_far: SoFar::default(),
            failed: true,
            lost: false,
        }
    }
}

/// A tick that overruns goes on in the next: these are its parts together.
#[derive(Debug, Clone, Default)]
pub(super) struct SoFar {
    found: u64,
    enqueued: u64,
    error: Option<String>,
}

/// One tick of one shard.
pub(super) struct Turn {
    pub(super) pair: Arc<Pair>,
    pub(super) shard: u16,
    pub(super) token: Token,
    pub(super) cursor: Option<String>,
    pub(super) so_far: SoFar,
    /// The engine's time when it was due.
    pub(super) now: Timestamp,
    pub(super) tidy: bool,
    pub(super) cover: bool,
}

impl Worker {
    pub(super) async fn turn(&self, turn: &Turn) -> Finished {
        let pair = &*turn.pair;
        let began = self.clock.elapsed();
        let walked = self.walk(turn).await;
        let took = self.clock.elapsed().saturating_sub(began);
        let mut finished = Finished {
            duty: Duty::Pair(pair.name.clone(), turn.shard),
            token: turn.token,
            due: Some(next(pair, turn.now)),
            cursor: None,
            so_far: turn.so_far.clone(),
            failed: false,
            lost: false,
        };
        let part = match walked {
            Ok(walked) => {
                if walked.cursor.is_some() {
                    // It goes on at once.
                    finished.due = Some(turn.now);
                }
                finished.cursor = walked.cursor;
                judge(pair, walked.sum)
            }
            Err(Error::LeaseLost) => {
                finished.lost = true;
                return finished;
            }
            Err(why) => Err(why.to_string()),
        };
        event::ticked(&pair.name, &part, took);
        let outcome = finished.so_far.take(part, finished.cursor.is_some());
        finished.failed = outcome.is_err();
        if let Err(why) = &outcome {
            log::error!(pair = %pair.name, why, "a tick failed");
        }
        let end = TickEnd {
            pair: pair.name.clone(),
            shard: turn.shard,
            token: Some(turn.token),
            outcome,
            took,
            cursor: finished.cursor.clone(),
            due_at: finished.due,
        };
        match self.lead.tick_end(end).await {
            Ok(()) => {}
            Err(Error::LeaseLost) => finished.lost = true,
            Err(why) => log::warn!(pair = %pair.name, %why, "can't note how a tick went"),
        }
        if finished.cursor.is_none() {
            finished.so_far = SoFar::default();
        }
        finished
    }

    async fn walk(&self, turn: &Turn) -> Result<Walked> {
        let pair = &*turn.pair;
        let source = self
            .sources
            .of(pair)
            .ok_or_else(|| Error::invalid("this process doesn't know the address of its source"))?;
        let tick = Tick {
            lead: &*self.lead,
            source,
            clock: &self.clock,
            pair,
            shard: turn.shard,
            token: Some(turn.token),
            dry: false,
        };
        tick.walk(turn.cursor.clone(), |_| {}).await
    }

    /// Forgets keys whose rows want nothing any more, and looks for states that nobody claims.
    pub(super) async fn look_after(&self, turn: &Turn) {
        if turn.tidy
            && turn.shard == 0
            && let Err(why) = self.forget_settled_keys(&turn.pair).await
        {
            log::debug!(pair = %turn.pair.name, %why, "held-back keys were not looked through");
        }
        if turn.cover && turn.pair.states.is_some() {
            let covered = async {
                let Some(source) = self.sources.of(&turn.pair) else {
                    return Ok(());
                };
                let found = source.examine(&turn.pair).await?;
                let states = [found.unclaimed, found.missed].concat();
                self.lead.uncovered(&turn.pair.name, states).await
            };
            if let Err(why) = covered.await {
                log::warn!(pair = %turn.pair.name, %why, "can't tell which states are covered");
            }
        }
    }

    async fn forget_settled_keys(&self, pair: &Pair) -> Result<()> {
        let Some(source) = self.sources.of(pair) else {
            return Ok(());
        };
        let mut after: Option<String> = None;
        loop {
            let rows = self
                .schedule
                .held_back(&pair.name, after.as_deref(), TIDY_KEYS)
                .await?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            after = Some(last.key.clone());
            // A long key is known by its hash only, which nobody can be asked about.
            let keys: Vec<String> = rows
                .into_iter()
                .filter(|row| row.key.starts_with('['))
                .map(|row| row.key)
                .collect();
            let wanted = source.ask(pair, &keys).await?;
            let both = keys.into_iter().zip(wanted);
            let gone: Vec<String> = both
                .filter_map(|(key, wanted)| (!wanted).then_some(key))
                .collect();
            if !gone.is_empty() {
                self.schedule.lift(&pair.name, Some(gone)).await?;
            }
        }
    }

    pub(super) async fn cron(&self, token: Token, now: Timestamp) -> Finished {
        let fired = super::cron::fire_due(&*self.schedule, &*self.lead, token).await;
        let (due, lost) = match fired {
            Ok(wait) => (wait.unwrap_or(CRON_LOOK), false),
            Err(Error::LeaseLost) => (CRON_LOOK, true),
            Err(why) => {
                log::error!(%why, "crons wait");
                (crate::SECOND, false)
            }
        };
        Finished {
            duty: Duty::Cron,
            token,
            // A cron that is declared meanwhile is seen soon.
            due: Some(clock::add(now, due.min(CRON_LOOK))),
            cursor: None,
            so_far: SoFar::default(),
            failed: false,
            lost,
        }
    }
}

impl SoFar {
    /// Takes in another part; the outcome of the whole so far.
    fn take(
        &mut self,
        part: std::result::Result<Ticked, String>,
        more: bool,
    ) -> std::result::Result<Ticked, String> {
        match part {
            Ok(mut ticked) => {
                self.found += ticked.found;
                self.enqueued += ticked.enqueued;
                ticked.found = self.found;
                ticked.enqueued = self.enqueued;
                match (&self.error, more) {
                    // What was wrong in an earlier part is wrong with the whole.
                    (Some(why), false) => Err(why.clone()),
                    _ => Ok(ticked),
                }
            }
            Err(why) => {
                self.error = Some(why.clone());
                Err(why)
            }
        }
    }
}

/// How often crons are read, so that one that was declared or resumed meanwhile is noticed.
const CRON_LOOK: Duration = Duration::from_secs(5);

/// When the next tick is due.
fn next(pair: &Pair, now: Timestamp) -> Timestamp {
    match &pair.cadence {
        Cadence::Every(every) => clock::add(now, *every),
        Cadence::Cron { cron, tz } => Calendar::new(cron, tz)
            .ok()
            .and_then(|calendar| calendar.after(now))
            .unwrap_or_else(|| clock::add(now, crate::MINUTE)),
    }
}
