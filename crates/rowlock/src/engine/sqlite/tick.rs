//! Turns rows that need work into jobs, in short transactions.

use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Statement, params};

use super::error::map;
use super::posts;
use super::row;
use super::rows::{self, Found, Part};
use super::statements::sql;
use super::{Lane, Sqlite};
use crate::engine::{Batch, Duty, From, Line, Lines, SAMPLE, Ticked};
use crate::error::Result;
use crate::job::Payload;
use crate::reconcile::Pair;

/// The most jobs of one transaction, so that others get in between.
const TOGETHER: usize = 5_000;
/// Jobs of one statement, when there are as many.
const GROUP: usize = 50;
/// Values that all jobs of a statement share, and those that each has for itself.
const SHARED: usize = 6;
const OWN: usize = 3;
/// Spreads evenly whatever the number of jobs: the golden ratio's fraction.
const STEP: f64 = 0.618_033_988_749_894_9;

impl Sqlite {
    pub(super) async fn tick_batch(&self, batch: Batch) -> Result<Ticked> {
        let Batch {
            pair,
            shard,
            token,
            from,
            seed,
            dry,
        } = batch;
        let now = self.clock.now();
        let pair = Arc::new(pair);
        let fence = token.map(|token| (Duty::Pair(pair.name.clone(), shard), token));
        let found = self.rows_of(&pair, shard, from, now).await?;
        let mut ticked = counted(&found);
        let lines = Arc::new(found.lines.lines);
        for start in (0..lines.len()).step_by(TOGETHER) {
            let end = (start + TOGETHER).min(lines.len());
            let jobs = Jobs {
                pair: Arc::clone(&pair),
                lines: Arc::clone(&lines),
                part: start..end,
                now,
                seed,
                first: ticked.enqueued,
            };
            let done = if dry {
                self.read(move |on| jobs.count(on)).await?
            } else {
                let fence = fence.clone();
                let stage = move |on: &Connection| {
                    posts::check(on, fence.as_ref())?;
                    jobs.stage(on)
                };
                self.writer
                    .ask(Lane::Stage, end - start, true, stage)
                    .await?
            };
            if !dry {
                crash_point!("tick.staged");
            }
            add(&mut ticked, done);
        }
        if lines.is_empty() && !dry {
            // Who leads no more must hear of it also when there was nothing to do.
            self.read(move |on| posts::check(on, fence.as_ref()))
                .await?;
        }
        Ok(ticked)
    }

    async fn rows_of(
        &self,
        pair: &Arc<Pair>,
        shard: u16,
        from: From,
        now: Timestamp,
    ) -> Result<Found> {
        match from {
            From::Lines(lines) => Ok(checked(lines)),
            From::Here { cursor, limit } => {
                // Whoever asks for none would ask for ever.
                let limit = limit.max(1);
                let asked = Arc::clone(pair);
                let part = Part {
                    shard,
                    cursor,
                    limit,
                };
                let look =
                    move |on: &Connection| rows::here(on, &asked, &part, now.as_millisecond());
                self.tables.batches.ask(pair.timeout, look).await
            }
        }
    }
}

/// Rows that came from another database, where nobody has looked at the rules.
fn checked(mut lines: Lines) -> Found {
    let all = std::mem::take(&mut lines.lines);
    for line in all {
        match Payload::parse(&line.payload) {
            Ok(payload) => lines.lines.push(Line {
                key: line.key,
                payload: payload.as_str().to_owned(),
            }),
            Err(why) => {
                let why = rows::unfit(&line.key, &why);
                lines.broken.get_or_insert(why);
            }
        }
    }
    Found {
        lines,
        ..Found::default()
    }
}

/// What is known before anything is staged.
fn counted(found: &Found) -> Ticked {
    Ticked {
        found: found.lines.found,
        live: found.live,
        held_back: found.held_back,
        without_key: found.lines.without_key,
        repeated: found.lines.repeated,
        cursor: found.lines.cursor.clone(),
        more: found.lines.more,
        broken: found.lines.broken.clone(),
        ..Ticked::default()
    }
}

fn add(all: &mut Ticked, part: Ticked) {
    all.enqueued += part.enqueued;
    all.lost += part.lost;
    all.live += part.live;
    all.held_back += part.held_back;
    all.rejected += part.rejected;
    let room = SAMPLE.saturating_sub(all.sample.len());
    all.sample.extend(part.sample.into_iter().take(room));
}

/// How the kind and the switches want a job to be stored.
struct Terms {
    queue: String,
    priority: i64,
    max_attempts: i64,
    unique_until: String,
    kind_rejects: bool,
    queue_rejects: bool,
}

/// A part of a batch that is staged together.
struct Jobs {
    pair: Arc<Pair>,
    lines: Arc<Vec<Line>>,
    part: std::ops::Range<usize>,
    now: Timestamp,
    seed: f64,
    first: u64,
}

/// What is known of a key.
enum Known {
    Nothing,
    Something,
    HeldBack,
}

impl Jobs {
    fn lines(&self) -> &[Line] {
        self.lines.get(self.part.clone()).unwrap_or_default()
    }

    fn terms(&self, connection: &Connection) -> Result<Terms> {
        let kind = self.pair.kind.as_str();
        let queue = self.pair.queue.as_ref().map(AsRef::<str>::as_ref);
        let terms = sql!("tick_terms")
            .on(connection)?
            .query_row(params![kind, queue, self.now.as_millisecond()], |row| {
                Ok(Terms {
                    queue: row::text(row, 0)?.unwrap_or_default(),
                    priority: row.get(1)?,
                    max_attempts: row.get(2)?,
                    unique_until: row::text(row, 3)?.unwrap_or_default(),
                    kind_rejects: row.get(4)?,
                    queue_rejects: row.get(5)?,
                })
            })
            .optional()
            .map_err(|why| map(why, "tick_terms"))?;
        terms.ok_or_else(|| super::pairs::no_kind(&self.pair.kind))
    }

    fn stage(&self, connection: &Connection) -> Result<Ticked> {
        let terms = self.terms(connection)?;
        if terms.kind_rejects || terms.queue_rejects {
            return self.reject(connection, &terms);
        }
        let mut ticked = Ticked::default();
        let mut keys = Keys::new(connection, self)?;
        let mut lines = self.lines();
        if keys.one.is_none() {
            // Nothing is known of any key: most ticks.
            let mut insert = self.prepared(connection, &terms, GROUP)?;
            let groups = lines.chunks_exact(GROUP);
            lines = groups.remainder();
            for group in groups {
                let made = self.insert(&mut insert, ticked.enqueued, group)?;
                ticked.enqueued += made;
                ticked.live += GROUP as u64 - made;
            }
            ticked.lost = if self.pair.direct { ticked.enqueued } else { 0 };
        }
        let mut insert = self.prepared(connection, &terms, 1)?;
        for line in lines {
            let known = keys.look(&line.key)?;
            if matches!(known, Known::HeldBack) {
                match self.is_live(connection, line)? {
                    true => ticked.live += 1,
                    false => ticked.held_back += 1,
                }
                continue;
            }
            let line = std::slice::from_ref(line);
            if self.insert(&mut insert, ticked.enqueued, line)? > 0 {
                ticked.enqueued += 1;
                let lost = self.pair.direct && matches!(known, Known::Nothing);
                ticked.lost += u64::from(lost);
            } else {
                ticked.live += 1;
            }
        }
        Ok(ticked)
    }

    /// Binds what is the same for all of them.
    fn prepared<'a>(
        &self,
        connection: &'a Connection,
        terms: &Terms,
        rows: usize,
    ) -> Result<rusqlite::CachedStatement<'a>> {
        let text = super::query::fill(sql!("tick_stage"), &[("rows", &values(rows))]);
        let prepared = connection.prepare_cached(&text);
        let mut insert = prepared.map_err(|why| map(why, "tick_stage"))?;
        let priority = self.pair.priority.map_or(terms.priority, i64::from);
        let mut bind = || {
            insert.raw_bind_parameter(1, self.pair.kind.as_str())?;
            insert.raw_bind_parameter(2, &terms.queue)?;
            insert.raw_bind_parameter(3, priority)?;
            insert.raw_bind_parameter(4, terms.max_attempts)?;
            insert.raw_bind_parameter(5, self.now.as_millisecond())?;
            insert.raw_bind_parameter(6, &terms.unique_until)
        };
        bind().map_err(|why| map(why, "tick_stage"))?;
        Ok(insert)
    }

    /// Stores as many lines as the statement takes; how many of them were new.
    fn insert(&self, insert: &mut Statement<'_>, before: u64, lines: &[Line]) -> Result<u64> {
        let mut run = || {
            let mut at = SHARED;
            for (n, line) in (self.first + before..).zip(lines) {
                insert.raw_bind_parameter(at + 1, self.due(n))?;
                insert.raw_bind_parameter(at + 2, line.key.as_str())?;
                insert.raw_bind_parameter(at + 3, line.payload.as_str())?;
                at += OWN;
            }
            insert.raw_execute()
        };
        let made = run().map_err(|why| map(why, "tick_stage"))?;
        Ok(made as u64)
    }

    fn is_live(&self, connection: &Connection, line: &Line) -> Result<bool> {
        sql!("tick_live")
            .on(connection)?
            .query_row(params![self.pair.kind.as_str(), line.key], |row| row.get(0))
            .map_err(|why| map(why, "tick_live"))
    }

    /// When the n-th job of the batch is due.
    fn due(&self, n: u64) -> i64 {
        let window = self.pair.jitter.as_millis() as f64;
        let share = (self.seed + n as f64 * STEP).fract();
        self.now
            .as_millisecond()
            .saturating_add((window * share) as i64)
    }

    fn reject(&self, connection: &Connection, terms: &Terms) -> Result<Ticked> {
        let counts = self.count(connection)?;
        let n = counts.rejected;
        let count = |statement, name: &str| {
            let values = params![name, i64::try_from(n).unwrap_or(i64::MAX)];
            super::settle::execute(connection, statement, values)
        };
        match terms.kind_rejects {
            true => count(sql!("tick_rejected_kind"), self.pair.kind.as_str())?,
            false => count(sql!("tick_rejected_queue"), &terms.queue)?,
        };
        Ok(counts)
    }

    /// What staging would do.
    fn count(&self, connection: &Connection) -> Result<Ticked> {
        let terms = self.terms(connection)?;
        let rejects = terms.kind_rejects || terms.queue_rejects;
        let mut ticked = Ticked::default();
        let mut keys = Keys::new(connection, self)?;
        for line in self.lines() {
            let known = keys.look(&line.key)?;
            match known {
                _ if self.is_live(connection, line)? => ticked.live += 1,
                Known::HeldBack => ticked.held_back += 1,
                _ if rejects => ticked.rejected += 1,
                _ => {
                    ticked.enqueued += 1;
                    let lost = self.pair.direct && matches!(known, Known::Nothing);
                    ticked.lost += u64::from(lost);
                    if ticked.sample.len() < SAMPLE {
                        ticked.sample.push(line.key.clone());
                    }
                }
            }
        }
        Ok(ticked)
    }
}

/// So many rows as a list of values.
fn values(rows: usize) -> String {
    let row = |n: usize| {
        let at = SHARED + n * OWN;
        let (due, key, payload) = (at + 1, at + 2, at + 3);
        format!("(?1, ?2, ?3, 'pending', ?4, ?{due}, ?5, ?{key}, ?6, 1, ?{payload})")
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

/// Looks keys up, if there is anything to look up.
struct Keys<'a> {
    one: Option<rusqlite::CachedStatement<'a>>,
    pair: &'a str,
    now: i64,
}

impl<'a> Keys<'a> {
    fn new(connection: &'a Connection, jobs: &'a Jobs) -> Result<Self> {
        let pair = jobs.pair.name.as_str();
        let any: bool = sql!("tick_keys")
            .on(connection)?
            .query_row([pair], |row| row.get(0))
            .map_err(|why| map(why, "tick_keys"))?;
        let one = any.then(|| sql!("tick_key").on(connection)).transpose()?;
        Ok(Self {
            one,
            pair,
            now: jobs.now.as_millisecond(),
        })
    }

    fn look(&mut self, key: &str) -> Result<Known> {
        let Some(one) = &mut self.one else {
            return Ok(Known::Nothing);
        };
        let held = one
            .query_row(params![self.pair, key, self.now], |row| row.get(0))
            .optional()
            .map_err(|why| map(why, "tick_key"))?;
        Ok(match held {
            None => Known::Nothing,
            Some(false) => Known::Something,
            Some(true) => Known::HeldBack,
        })
    }
}
