//! A leader's turn: one tick of a shard, or one look at the crons, and what is noted about it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::tick::{Tick, Walked, judge};
use super::{Cadence, Pair, Questions, Sources};
use crate::clock::{self, Clock};
use crate::engine::{Duty, Lead, Schedule, TickEnd};
use crate::error::{Error, Result};
use crate::event;
use crate::job::{Calendar, Token};

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
    pub(super) lost: bool,
}

/// One tick of one shard.
pub(super) struct Turn {
    pub(super) pair: Arc<Pair>,
    pub(super) shard: u16,
    pub(super) token: Token,
    pub(super) cursor: Option<String>,
    /// The engine's time when it was due.
    pub(super) now: Timestamp,
    pub(super) tidy: bool,
    pub(super) cover: bool,
}

impl Worker {
    pub(super) async fn turn(&self, turn: Turn) -> Finished {
        let pair = &*turn.pair;
        let began = self.clock.elapsed();
        let walked = self.walk(&turn).await;
        let took = self.clock.elapsed().saturating_sub(began);
        let mut cursor = None;
        let mut lost = false;
        let outcome = match walked {
            Ok(walked) => {
                cursor = walked.cursor;
                judge(pair, walked.sum)
            }
            Err(Error::LeaseLost) => {
                lost = true;
                Err("another process leads now".to_owned())
            }
            Err(why) => Err(why.to_string()),
        };
        // A tick that overran goes on at once.
        let due = match cursor.is_some() {
            true => turn.now,
            false => next(pair, turn.now),
        };
        if !lost {
            event::ticked(&pair.name, &outcome, took);
            if let Err(why) = &outcome {
                tracing::error!(pair = %pair.name, why, "a tick failed");
            }
            let end = TickEnd {
                pair: pair.name.clone(),
                shard: turn.shard,
                token: Some(turn.token),
                outcome,
                took,
                cursor: cursor.clone(),
                due_at: Some(due),
            };
            match self.lead.tick_end(end).await {
                Ok(()) => {}
                Err(Error::LeaseLost) => lost = true,
                Err(why) => {
                    tracing::warn!(pair = %pair.name, %why, "can't note how a tick went");
                }
            }
        }
        if !lost && cursor.is_none() {
            self.look_after(&turn).await;
        }
        Finished {
            duty: Duty::Pair(pair.name.clone(), turn.shard),
            token: turn.token,
            due: Some(due),
            cursor,
            lost,
        }
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
    async fn look_after(&self, turn: &Turn) {
        if turn.tidy
            && turn.shard == 0
            && let Err(why) = self.forget_settled_keys(&turn.pair).await
        {
            tracing::debug!(pair = %turn.pair.name, %why, "held-back keys were not looked through");
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
                tracing::warn!(pair = %turn.pair.name, %why, "can't tell which states are covered");
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
                tracing::error!(%why, "crons wait");
                (crate::SECOND, false)
            }
        };
        Finished {
            duty: Duty::Cron,
            token,
            // A cron that is declared meanwhile is seen soon.
            due: Some(clock::add(now, due.min(CRON_LOOK))),
            cursor: None,
            lost,
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
