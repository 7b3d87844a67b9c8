//! Looks that stay cheap.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::error::map;
use super::health::all;
use super::routes::store_number;
use super::statements::sql;
use super::{Sqlite, lane, operate, row};
use crate::engine::browse::{BYTES, Browse, Capped, Glance, LOOK, MOST, Page, Run};
use crate::engine::{Filter, WorkerRow};
use crate::error::Result;
use crate::job::{JobId, JobState, Name, Record};

#[async_trait]
impl Browse for Sqlite {
    async fn browse(&self, filter: Filter, newest: bool) -> Result<Page> {
        self.read(move |on| browse(on, &filter, newest)).await
    }

    async fn glance(&self) -> Result<Glance> {
        let now = self.clock.now();
        self.read(move |on| glance(on, now)).await
    }

    async fn in_hand(&self, limit: usize) -> Result<Vec<Record>> {
        self.read(move |on| in_hand(on, limit)).await
    }

    async fn hands(&self) -> Result<Vec<WorkerRow>> {
        self.read(operate::workers).await
    }

    async fn runs(&self, limit: usize) -> Result<Vec<Run>> {
        self.read(move |on| runs(on, limit)).await
    }
}

fn runs(connection: &Connection, limit: usize) -> Result<Vec<Run>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = all(connection, sql!("runs"), [limit], |row| {
        Ok((row::time(row, 0)?, row::span(row, 1)?))
    })?;
    let run = |(finished_at, took): (Option<Timestamp>, _)| {
        finished_at
            .zip(took)
            .map(|(finished_at, took)| Run { finished_at, took })
    };
    Ok(found.into_iter().filter_map(run).collect())
}

fn browse(connection: &Connection, filter: &Filter, newest: bool) -> Result<Page> {
    let store = store_number(connection)?;
    let mut read = match newest {
        true => sql!("browse_newest").on(connection)?,
        false => sql!("browse").on(connection)?,
    };
    let start = if newest { i64::MAX } else { i64::MIN };
    let values = params![
        filter.state.map(JobState::as_str),
        filter.queue.as_ref().map(Name::as_str),
        filter.kind.as_ref().map(Name::as_str),
        filter.key,
        filter.tag.as_ref().map(Name::as_str),
        filter.since.map(Timestamp::as_millisecond),
        filter.until.map(Timestamp::as_millisecond),
        filter.after.map_or(start, |id| id.0),
        i64::try_from(LOOK).unwrap_or(i64::MAX),
    ];
    let mut rows = read.query(values).map_err(|why| map(why, "browse"))?;
    let (mut jobs, mut last, mut seen) = (Vec::new(), None, 0);
    let (mut bytes, mut matches) = (0, 0);
    while let Some(found) = rows.next().map_err(|why| map(why, "browse"))? {
        seen += 1;
        let read = || -> rusqlite::Result<Option<Record>> {
            match found.get(17)? {
                true => row::record(found, store).map(Some),
                false => Ok(None),
            }
        };
        if let Some(job) = read().map_err(|why| map(why, "browse"))? {
            matches += 1;
            if bytes >= BYTES || matches > filter.limit {
                break;
            }
            bytes += job.payload.as_str().len();
            jobs.push(job);
        }
        last = Some(JobId(found.get(0).map_err(|why| map(why, "browse"))?));
    }
    Ok(Page::of(jobs, (filter.limit, matches), last, seen >= LOOK))
}

fn in_hand(connection: &Connection, limit: usize) -> Result<Vec<Record>> {
    let store = store_number(connection)?;
    let mut read = sql!("running").on(connection)?;
    let rows = read.query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
        row::record(row, store)
    });
    let (mut jobs, mut bytes) = (Vec::new(), 0);
    for job in rows.map_err(|why| map(why, "running"))? {
        let job = job.map_err(|why| map(why, "running"))?;
        if bytes >= BYTES {
            break;
        }
        bytes += job.payload.as_str().len();
        jobs.push(job);
    }
    Ok(jobs)
}

fn glance(connection: &Connection, now: Timestamp) -> Result<Glance> {
    // One snapshot, so that a job that ends in between is counted once.
    let snapshot = connection
        .unchecked_transaction()
        .map_err(|why| map(why, "glance"))?;
    let connection: &Connection = &snapshot;
    let held: BTreeSet<(String, Name)> = all(
        connection,
        sql!("glance_held"),
        [now.as_millisecond()],
        |row| Ok((row::text(row, 0)?.unwrap_or_default(), row::name(row, 1)?)),
    )?
    .into_iter()
    .collect();
    let is_held = |of: &str, name: &Name| held.contains(&(of.to_owned(), name.clone()));
    let mut glance = Glance::new();
    for queue in lane::queues(connection)? {
        let mut entry = Capped::default();
        for kind in lane::kinds(connection, &queue)? {
            let before = entry.counts.pending;
            count_lanes(connection, &mut entry, (&queue, &kind), now)?;
            if is_held("kind", &kind) || is_held("queue", &queue) {
                entry.counts.held += entry.counts.pending - before;
            }
        }
        glance.insert(queue, entry);
    }
    let look = i64::try_from(MOST).unwrap_or(i64::MAX) + 1;
    let running = all(connection, sql!("glance_running"), [look], |row| {
        Ok((row::name(row, 0)?, row::count(row, 1)?))
    })?;
    // Whoever was beyond the limit could be any queue's.
    let cut = running.iter().map(|(_, n)| n).sum::<u64>() > MOST;
    for (queue, n) in running {
        glance.entry(queue).or_default().counts.processing = n;
    }
    glance.values_mut().for_each(|entry| entry.capped |= cut);
    for (queue, state, n) in all(connection, sql!("stats_ended"), [], |row| {
        Ok((row::name(row, 0)?, row::state(row, 1)?, row::count(row, 2)?))
    })? {
        let counts = &mut glance.entry(queue).or_default().counts;
        match state {
            JobState::Completed => counts.completed = n,
            JobState::Failed => counts.failed = n,
            _ => counts.cancelled = n,
        }
    }
    Ok(glance
        .into_iter()
        .map(|(queue, n)| (queue, n.cut()))
        .collect())
}

/// Adds the pending jobs of a queue and kind, lane by lane.
fn count_lanes(
    connection: &Connection,
    entry: &mut Capped,
    (queue, kind): (&Name, &Name),
    now: Timestamp,
) -> Result<()> {
    let mut count = sql!("glance_lane").on(connection)?;
    for suspect in [false, true] {
        let mut below = i64::MAX;
        while let Some((priority, due)) = lane::head(connection, queue, kind, suspect, below)? {
            below = priority;
            let counts = &mut entry.counts;
            let waited = due.duration_until(now).as_secs_f64();
            if waited >= 0.0 {
                let oldest = counts.oldest_pending_seconds.unwrap_or_default();
                counts.oldest_pending_seconds = Some(oldest.max(waited));
            }
            let room = (MOST + 1).saturating_sub(counts.pending);
            let room = i64::try_from(room).unwrap_or(0);
            let values = params![
                queue.as_str(),
                kind.as_str(),
                suspect,
                priority,
                now.as_millisecond(),
                room
            ];
            let (pending, scheduled, retrying) = count
                .query_row(values, |row| {
                    Ok((
                        row::count(row, 0)?,
                        row::count(row, 1)?,
                        row::count(row, 2)?,
                    ))
                })
                .map_err(|why| map(why, "glance_lane"))?;
            counts.pending += pending;
            counts.scheduled += scheduled;
            counts.retrying += retrying;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::engine::sqlite::{Address, migrate_up};

    #[test]
    fn what_a_page_asks_walks_an_index_and_sorts_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("x.db").display());
        let address = Address::parse(&url).unwrap();
        migrate_up(&address, &Clock::system()).unwrap();
        let connection = Connection::open(&address.path).unwrap();
        for (sql, values) in [
            (sql!("browse"), 9),
            (sql!("browse_newest"), 9),
            (sql!("glance_lane"), 6),
            (sql!("running"), 1),
            (sql!("workers"), 1),
            (sql!("health_running"), 1),
            (sql!("route_state"), 2),
            (sql!("route_unsent"), 6),
        ] {
            let explain = format!("EXPLAIN QUERY PLAN {}", sql.text());
            let mut steps = connection.prepare(&explain).unwrap();
            let values = vec![None::<i64>; values];
            let steps = steps
                .query_map(rusqlite::params_from_iter(values), |row| row.get(3))
                .unwrap();
            let steps: Vec<String> = steps.map(Result::unwrap).collect();
            let walks = |step: &&String| {
                let table = step.starts_with("SCAN rowlock_job")
                    || step.starts_with("SCAN rowlock_history");
                table && !step.contains("USING INDEX")
            };
            assert_eq!(steps.iter().find(walks), None, "{}: {steps:?}", sql.name);
            if sql.name.starts_with("browse") {
                let sorts = |step: &&String| step.contains("TEMP B-TREE");
                assert_eq!(steps.iter().find(sorts), None, "{}: {steps:?}", sql.name);
            }
        }
    }
}
