//! What waits and shouldn't: jobs of kinds that nobody has declared, and jobs that nobody takes. From lane to lane, and
//! no further into one than [`HEAD`] jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::error::map;
use super::health::all;
use super::statements::{Sql, sql};
use super::{lane, row};
use crate::engine::health::HEAD;
use crate::engine::{AtLeast, Unhandled};
use crate::error::Result;
use crate::job::Name;

/// Jobs may be due for so long before somebody asks who takes them.
const LATE: Duration = Duration::from_secs(60);
/// So many running jobs are looked at.
const RUNNING: u32 = 10_000;

#[derive(Default)]
pub(super) struct Waiting {
    pub(super) unknown: BTreeMap<Name, AtLeast>,
    pub(super) unhandled: Vec<Unhandled>,
}

/// Kinds and queues that have a row, and whether workers may take from them.
#[derive(Default)]
struct Known {
    kinds: BTreeMap<Name, bool>,
    queues: BTreeMap<Name, bool>,
}

impl Known {
    fn read(connection: &Connection, now: Timestamp) -> Result<Self> {
        let mut known = Self::default();
        let now = [now.as_millisecond()];
        for (of, name, goes) in all(connection, sql!("health_known"), now, |row| {
            let of = row::text(row, 0)?.unwrap_or_default();
            Ok((of, row::name(row, 1)?, row.get(2)?))
        })? {
            match of.as_str() {
                "kind" => known.kinds.insert(name, goes),
                _ => known.queues.insert(name, goes),
            };
        }
        Ok(known)
    }

    /// Whether a worker may take a job of a kind that has a row.
    fn goes(&self, queue: &Name, kind: &Name) -> bool {
        self.kinds.get(kind) == Some(&true) && self.queues.get(queue) != Some(&false)
    }
}

pub(super) fn waiting(connection: &Connection, now: Timestamp) -> Result<Waiting> {
    // One snapshot, so that a job that is taken in between runs.
    let snapshot = connection
        .unchecked_transaction()
        .map_err(|why| map(why, "health_known"))?;
    let connection: &Connection = &snapshot;
    let known = Known::read(connection, now)?;
    let mut found = Waiting::default();
    let mut due: BTreeMap<Name, (AtLeast, Duration)> = BTreeMap::new();
    for queue in lane::queues(connection)? {
        for kind in lane::kinds(connection, &queue)? {
            if !known.kinds.contains_key(&kind) {
                let (jobs, _) = count(connection, sql!("glance_lane"), (&queue, &kind), now)?;
                add(found.unknown.entry(kind).or_default(), jobs);
            } else if known.goes(&queue, &kind) {
                let (jobs, oldest) = count(connection, sql!("route_unsent"), (&queue, &kind), now)?;
                let (all, first) = due.entry(kind).or_default();
                add(all, jobs);
                *first = oldest.max(*first);
            }
        }
    }
    due.retain(|_, (_, oldest)| *oldest > LATE);
    if !due.is_empty() {
        let running = running(connection, &known)?;
        due.retain(|kind, _| !running.contains(kind));
    }
    let unhandled = |(kind, (jobs, oldest))| Unhandled { kind, jobs, oldest };
    found.unhandled = due.into_iter().map(unhandled).collect();
    Ok(found)
}

fn add(all: &mut AtLeast, more: AtLeast) {
    (all.n, all.more) = (all.n + more.n, all.more || more.more);
}

/// The jobs of a queue and kind that a statement counts, lane by lane, and for how long the first of them has been due.
fn count(
    connection: &Connection,
    sql: Sql,
    (queue, kind): (&Name, &Name),
    now: Timestamp,
) -> Result<(AtLeast, Duration)> {
    let mut statement = sql.on(connection)?;
    let (mut jobs, mut oldest) = (AtLeast::default(), Duration::ZERO);
    for suspect in [false, true] {
        let mut below = i64::MAX;
        while let Some((priority, due)) = lane::head(connection, queue, kind, suspect, below)? {
            below = priority;
            let waited = now.duration_since(due);
            oldest = oldest.max(Duration::try_from(waited).unwrap_or_default());
            let (queue, kind, now) = (queue.as_str(), kind.as_str(), now.as_millisecond());
            let values = params![queue, kind, suspect, priority, now, HEAD];
            let n = statement
                .query_row(values, |row| row::count(row, 0))
                .map_err(|why| map(why, sql.name))?;
            let more = n >= u64::from(HEAD);
            add(&mut jobs, AtLeast { n, more });
        }
    }
    Ok((jobs, oldest))
}

/// The kinds that run where workers may take from.
fn running(connection: &Connection, known: &Known) -> Result<BTreeSet<Name>> {
    let found = all(connection, sql!("health_running"), [RUNNING], |row| {
        Ok((row::name(row, 0)?, row::name(row, 1)?))
    })?;
    let going = found
        .into_iter()
        .filter(|(kind, queue)| known.goes(queue, kind));
    Ok(going.map(|(kind, _)| kind).collect())
}
