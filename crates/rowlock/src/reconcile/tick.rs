//! A tick: the rows that need work are walked by key, in batches, and each gets its job.

use std::sync::Arc;
use std::time::Duration;

use super::{Cadence, Pair, Sources};
use crate::clock::Clock;
use crate::engine::{Batch, From, Lead, PairRow, SAMPLE, Source, TickEnd, Ticked};
use crate::error::{Error, Result};
use crate::job::{Calendar, Token, random_share};
use crate::log;
use crate::store::Rowlock;

/// One tick of a shard.
pub(super) struct Tick<'a> {
    pub(super) lead: &'a dyn Lead,
    pub(super) source: &'a Arc<dyn Source>,
    pub(super) clock: &'a Clock,
    pub(super) pair: &'a Pair,
    pub(super) shard: u16,
    pub(super) token: Option<Token>,
    pub(super) dry: bool,
}

/// How far a tick came.
pub(super) struct Walked {
    pub(super) sum: Ticked,
    /// Where the next one goes on, if there was no time for all.
    pub(super) cursor: Option<String>,
}

impl Tick<'_> {
    /// Walks from `cursor` on, until the last row or until the tick's time is over.
    pub(super) async fn walk(
        &self,
        mut cursor: Option<String>,
        mut progress: impl FnMut(&Ticked),
    ) -> Result<Walked> {
        let began = self.clock.elapsed();
        let mut sum = Ticked::default();
        let mut limit = self.pair.batch;
        loop {
            let ticked = self.batch(cursor.clone(), limit, self.dry).await?;
            if ticked.blocked && limit > 1 {
                // Somewhere in here is a key that an open transaction has: the others needn't wait.
                limit = (limit / 2).max(1);
                continue;
            }
            let ticked = match ticked.blocked {
                true => self.pass_over(cursor.clone()).await?,
                false => ticked,
            };
            limit = (limit * 2).min(self.pair.batch);
            add(&mut sum, &ticked);
            progress(&sum);
            crash_point!("tick.between");
            if !ticked.more {
                let cursor = None;
                return Ok(Walked { sum, cursor });
            }
            if ticked.cursor.is_none() || ticked.cursor == cursor {
                return Err(Error::Bug(format!(
                    "the tick of {} doesn't move on",
                    self.pair.name
                )));
            }
            cursor = ticked.cursor;
            let over = self.clock.elapsed().saturating_sub(began) >= self.pair.timeout;
            if over && !self.dry {
                return Ok(Walked { sum, cursor });
            }
        }
    }

    /// Steps over the one key that is blocked: whoever has it either commits its job, or the next
    /// tick finds the row again.
    async fn pass_over(&self, cursor: Option<String>) -> Result<Ticked> {
        let seen = self.batch(cursor, 1, true).await?;
        if seen.blocked {
            return Err(Error::Unavailable(
                "somebody has locked a table of its query".to_owned(),
            ));
        }
        log::debug!(pair = %self.pair.name, "left a key to whoever is enqueuing it");
        Ok(Ticked {
            live: seen.found,
            enqueued: 0,
            lost: 0,
            ..seen
        })
    }

    async fn batch(&self, cursor: Option<String>, limit: usize, dry: bool) -> Result<Ticked> {
        let from = match self.pair.source {
            None => From::Here { cursor, limit },
            Some(_) => From::Lines(
                self.source
                    .derive(self.pair, self.shard, cursor.as_deref(), limit)
                    .await?,
            ),
        };
        self.lead
            .tick(Batch {
                pair: self.pair.clone(),
                shard: self.shard,
                token: self.token,
                from,
                seed: random_share(),
                dry,
            })
            .await
    }
}

fn add(sum: &mut Ticked, ticked: &Ticked) {
    sum.found += ticked.found;
    sum.enqueued += ticked.enqueued;
    sum.lost += ticked.lost;
    sum.live += ticked.live;
    sum.held_back += ticked.held_back;
    sum.rejected += ticked.rejected;
    sum.without_key += ticked.without_key;
    sum.repeated += ticked.repeated;
    sum.broken = sum.broken.take().or_else(|| ticked.broken.clone());
    sum.sample.extend_from_slice(&ticked.sample);
    sum.sample.truncate(SAMPLE);
}

/// Rows that can't be told apart make a tick a failure, although the others got their jobs.
pub(super) fn judge(pair: &Pair, sum: Ticked) -> Result<Ticked, String> {
    let key = || {
        let fields: Vec<&str> = pair.key.iter().map(AsRef::as_ref).collect();
        fields.join(", ")
    };
    match (sum.without_key, sum.repeated) {
        (0, 0) => match sum.broken {
            Some(why) => Err(why),
            None => Ok(sum),
        },
        (0, rows) => Err(format!(
            "{rows} of {} rows repeat a key ({}): make the query return each once",
            sum.found,
            key()
        )),
        (rows, _) => Err(format!(
            "{rows} of {} rows have no key ({} is NULL): leave them out of the query",
            sum.found,
            key()
        )),
    }
}

/// Runs a whole tick of every shard now, beside whoever leads, and notes how it went unless it is
/// `dry`. `progress` hears the sum so far.
///
/// # Errors
/// [`Error::Invalid`] in the database's words when the query fails, or when rows have no key of
/// their own; whatever the store answers.
pub async fn tick_by_hand(
    rowlock: &Rowlock,
    pair: &Pair,
    dry: bool,
    mut progress: impl FnMut(&Ticked),
) -> Result<Ticked> {
    let lead = rowlock.lead();
    let sources = Sources::new(&*lead, std::slice::from_ref(pair))?;
    let source = sources
        .of(pair)
        .ok_or_else(|| Error::Bug(format!("pair {} has no source", pair.name)))?;
    let mut sum = Ticked::default();
    for shard in 0..pair.shards {
        let tick = Tick {
            lead: &*lead,
            source,
            clock: rowlock.clock(),
            pair,
            shard,
            token: None,
            dry,
        };
        let before = sum.clone();
        let began = rowlock.clock().elapsed();
        let mut walked = Ticked::default();
        let mut cursor = None;
        let outcome = loop {
            let step = tick.walk(cursor, |so_far| {
                let mut all = before.clone();
                add(&mut all, &walked);
                add(&mut all, so_far);
                progress(&all);
            });
            match step.await {
                Ok(step) => {
                    add(&mut walked, &step.sum);
                    cursor = step.cursor;
                    if cursor.is_none() {
                        break judge(pair, walked);
                    }
                }
                Err(Error::Invalid(why)) => break Err(why),
                Err(why) => return Err(why),
            }
        };
        if !dry {
            let took = rowlock.clock().elapsed().saturating_sub(began);
            lead.tick_end(TickEnd {
                pair: pair.name.clone(),
                shard,
                token: None,
                outcome: outcome.clone(),
                took,
                cursor: None,
                due_at: None,
            })
            .await?;
        }
        add(&mut sum, &outcome.map_err(Error::Invalid)?);
    }
    Ok(sum)
}

/// How late ticks may be before somebody should ask why.
const SLACK: Duration = Duration::from_secs(30);
const LONGEST_SLACK: Duration = Duration::from_secs(20 * 60);

/// How long a pair has gone without a successful tick beyond what its cadence explains; nothing when
/// all is well, or when a switch has stopped it.
#[must_use]
pub fn stale(row: &PairRow) -> Option<Duration> {
    if row.switch.is_some() {
        return None;
    }
    let patience = match &row.pair.cadence {
        Cadence::Every(every) => *every + (*every * 2).clamp(SLACK, LONGEST_SLACK),
        Cadence::Cron { cron, tz } => {
            let calendar = Calendar::new(cron, tz).ok()?;
            // Two ticks may pass: the first may be under way.
            let last = row.last_success.unwrap_or_default();
            let second = calendar.after(calendar.after(last)?)?;
            Duration::try_from(last.duration_until(second)).ok()? + SLACK
        }
    };
    row.age.checked_sub(patience)
}
