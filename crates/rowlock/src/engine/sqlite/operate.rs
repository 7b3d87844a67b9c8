//! What operators read and change.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::error::map;
use super::routes::store_number;
use super::settle::execute;
use super::stage::json;
use super::statements::sql;
use super::{pairs, row};
use crate::claim::WorkerId;
use crate::engine::{Applied, Counts, Drift, ENDED, Filter, QueueRow, Stats, WorkerRow, once};
use crate::error::Result;
use crate::job::{JobId, JobState, Kind, Name, Record};

pub(super) fn job(connection: &Connection, id: JobId) -> Result<Option<Record>> {
    let store = store_number(connection)?;
    sql!("job")
        .on(connection)?
        .query_row([id.0], |row| row::record(row, store))
        .optional()
        .map_err(|why| map(why, "job"))
}

pub(super) fn jobs(connection: &Connection, filter: &Filter) -> Result<Vec<Record>> {
    let store = store_number(connection)?;
    let mut read = sql!("jobs").on(connection)?;
    let rows = read
        .query_map(
            params![
                filter.state.map(JobState::as_str),
                filter.queue.as_ref().map(Name::as_str),
                filter.kind.as_ref().map(Name::as_str),
                filter.key,
                filter.tag.as_ref().map(Name::as_str),
                filter.since.map(Timestamp::as_millisecond),
                filter.until.map(Timestamp::as_millisecond),
                filter.after.map_or(0, |id| id.0),
                most(filter.limit),
            ],
            |row| row::record(row, store),
        )
        .map_err(|why| map(why, "jobs"))?;
    rows.collect::<rusqlite::Result<_>>()
        .map_err(|why| map(why, "jobs"))
}

pub(super) fn running(connection: &Connection, limit: usize) -> Result<Vec<Record>> {
    let store = store_number(connection)?;
    let mut read = sql!("running").on(connection)?;
    let rows = read
        .query_map([most(limit)], |row| row::record(row, store))
        .map_err(|why| map(why, "running"))?;
    rows.collect::<rusqlite::Result<_>>()
        .map_err(|why| map(why, "running"))
}

pub(super) fn ended(connection: &Connection, state: JobState, limit: usize) -> Result<Vec<Record>> {
    let store = store_number(connection)?;
    let mut read = sql!("ended").on(connection)?;
    let values = params![state.as_str(), most(ENDED), most(limit)];
    let rows = read
        .query_map(values, |row| row::record(row, store))
        .map_err(|why| map(why, "ended"))?;
    rows.collect::<rusqlite::Result<_>>()
        .map_err(|why| map(why, "ended"))
}

fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn stats(connection: &Connection, now: Timestamp) -> Result<Stats> {
    // One snapshot, so that a job that ends in between is counted once.
    let snapshot = connection
        .unchecked_transaction()
        .map_err(|why| map(why, "stats"))?;
    let connection: &Connection = &snapshot;
    let mut stats = Stats::default();
    let mut live = sql!("stats_live").on(connection)?;
    let rows = live
        .query_map([now.as_millisecond()], |row| {
            let oldest = row::time(row, 6)?;
            Ok((
                row::name(row, 0)?,
                Counts {
                    pending: row::count(row, 1)?,
                    scheduled: row::count(row, 2)?,
                    retrying: row::count(row, 3)?,
                    held: row::count(row, 4)?,
                    processing: row::count(row, 5)?,
                    oldest_pending_seconds: oldest.map(|at| at.duration_until(now).as_secs_f64()),
                    ..Counts::default()
                },
            ))
        })
        .map_err(|why| map(why, "stats_live"))?;
    for found in rows {
        let (queue, counts) = found.map_err(|why| map(why, "stats_live"))?;
        stats.queues.insert(queue, counts);
    }
    let mut ended = sql!("stats_ended").on(connection)?;
    let rows = ended
        .query_map([], |row| {
            Ok((row::name(row, 0)?, row::state(row, 1)?, row::count(row, 2)?))
        })
        .map_err(|why| map(why, "stats_ended"))?;
    for found in rows {
        let (queue, state, n) = found.map_err(|why| map(why, "stats_ended"))?;
        let counts = stats.queues.entry(queue).or_default();
        match state {
            JobState::Completed => counts.completed = n,
            JobState::Failed => counts.failed = n,
            _ => counts.cancelled = n,
        }
    }
    stats.total = Counts::sum(stats.queues.values());
    Ok(stats)
}

pub(super) fn queues(connection: &Connection, now: Timestamp) -> Result<Vec<QueueRow>> {
    let counted = stats(connection, now)?.queues;
    let mut rows: BTreeMap<Name, QueueRow> = counted
        .into_iter()
        .map(|(queue, counts)| (queue.clone(), queue_row(queue, counts)))
        .collect();
    let mut set = sql!("queues").on(connection)?;
    let found = set
        .query_map([now.as_millisecond()], |row| {
            Ok((row::name(row, 0)?, row.get(1)?, row::text(row, 2)?))
        })
        .map_err(|why| map(why, "queues"))?;
    for setting in found {
        let (queue, paused, reason): (Name, bool, _) = setting.map_err(|why| map(why, "queues"))?;
        let entry = rows
            .entry(queue.clone())
            .or_insert_with(|| queue_row(queue, Counts::default()));
        entry.paused = paused;
        entry.reason = reason;
    }
    Ok(rows.into_values().collect())
}

fn queue_row(queue: Name, counts: Counts) -> QueueRow {
    QueueRow {
        queue,
        paused: false,
        reason: None,
        counts,
    }
}

pub(super) fn kinds(connection: &Connection) -> Result<Vec<Kind>> {
    let mut read = sql!("kinds").on(connection)?;
    let rows = read
        .query_map([], row::kind)
        .map_err(|why| map(why, "kinds"))?;
    rows.collect::<rusqlite::Result<_>>()
        .map_err(|why| map(why, "kinds"))
}

/// Adds kinds without a row; names those whose row differs.
pub(super) fn add_kinds(connection: &Connection, declared: &[Kind]) -> Result<Vec<Drift>> {
    once("kind", declared.iter().map(|kind| &kind.name))?;
    let stored = kinds(connection)?;
    let mut drift = Vec::new();
    for kind in declared {
        match stored.iter().find(|row| row.name == kind.name) {
            None => write_kind(connection, kind)?,
            Some(row) if row != kind => drift.push(Drift {
                kind: kind.name.clone(),
                differences: row.differences(kind),
            }),
            Some(_) => {}
        }
    }
    Ok(drift)
}

pub(super) fn apply(
    connection: &Connection,
    declared: &[Kind],
    now: Timestamp,
) -> Result<Vec<Applied>> {
    once("kind", declared.iter().map(|kind| &kind.name))?;
    let stored = kinds(connection)?;
    let pairs = pairs::pairs(connection, now)?;
    for kind in declared.iter().filter(|kind| !stored.contains(kind)) {
        pairs.iter().try_for_each(|row| row.pair.allows(kind))?;
    }
    let mut done = Vec::with_capacity(declared.len());
    for kind in declared {
        let row = stored.iter().find(|row| row.name == kind.name);
        done.push(match row {
            Some(row) if row == kind => Applied::Unchanged,
            Some(row) => Applied::Changed(row.differences(kind)),
            None => Applied::Added,
        });
        write_kind(connection, kind)?;
    }
    Ok(done)
}

fn write_kind(connection: &Connection, kind: &Kind) -> Result<()> {
    let values = params![
        kind.name.as_str(),
        kind.queue.as_str(),
        kind.priority,
        kind.max_attempts,
        json(&kind.backoff)?,
        row::ms(kind.timeout),
        json(&kind.key)?,
        kind.unique_until.as_str(),
        row::ms(kind.retention.completed),
        row::ms(kind.retention.failed),
        row::ms(kind.retention.cancelled),
    ];
    execute(connection, sql!("kind_write"), values).map(|_| ())
}

/// As far as what one worker holds is counted: a route may hold a million.
const COUNTED: u32 = 10_000;

pub(super) fn workers(connection: &Connection) -> Result<Vec<WorkerRow>> {
    let mut read = sql!("workers").on(connection)?;
    let rows = read
        .query_map([COUNTED], |row| {
            let holds = row::count(row, 3)?;
            Ok(WorkerRow {
                id: WorkerId::stored(row::text(row, 0)?.unwrap_or_default()),
                lease: row::span(row, 1)?.unwrap_or_default(),
                joined_at: row::time(row, 2)?.unwrap_or_default(),
                holds,
                seen_at: row::time(row, 4)?.unwrap_or_default(),
                more: holds >= u64::from(COUNTED),
            })
        })
        .map_err(|why| map(why, "workers"))?;
    rows.collect::<rusqlite::Result<_>>()
        .map_err(|why| map(why, "workers"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::engine::sqlite::{Address, migrate_up};

    #[test]
    fn a_page_of_jobs_is_read_in_order_and_not_sorted() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("x.db").display());
        let address = Address::parse(&url).unwrap();
        migrate_up(&address, &Clock::system()).unwrap();
        let connection = Connection::open(&address.path).unwrap();
        let explain = format!("EXPLAIN QUERY PLAN {}", sql!("jobs").text());
        let mut steps = connection.prepare(&explain).unwrap();
        let steps = steps
            .query_map([Option::<i64>::None; 9], |row| row.get::<_, String>(3))
            .unwrap();
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        assert!(
            steps.iter().any(|step| step.starts_with("MERGE")),
            "{steps:?}"
        );
        assert!(
            !steps.iter().any(|step| step.contains("TEMP B-TREE")),
            "{steps:?}"
        );
    }
}
