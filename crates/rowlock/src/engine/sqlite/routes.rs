//! What a drain asks of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::desk::Lane;
use super::error::map;
use super::health::all;
use super::lane::{self, Routed, Stopped};
use super::settle::execute;
use super::stage::json;
use super::statements::{Sql, sql};
use super::{Sqlite, row};
use crate::claim::WorkerId;
use crate::engine::routes::Rerouted;
use crate::engine::{Applied, Recalled, RouteRow, Routes, SentJob};
use crate::error::{Error, Result};
use crate::job::{JobId, Name, Token};

#[async_trait]
impl Routes for Sqlite {
    async fn store_id(&self) -> Result<u64> {
        self.read(store_id).await
    }

    async fn declare_route(
        &self,
        route: &Name,
        kinds: &[Name],
        queues: &[Name],
        change: bool,
    ) -> Result<Applied> {
        let (route, kinds, queues) = (route.clone(), kinds.to_vec(), queues.to_vec());
        self.write(1, true, move |on| {
            declare(on, &route, &kinds, &queues, change)
        })
        .await
    }

    async fn routes(&self) -> Result<Vec<RouteRow>> {
        let now = self.clock.now();
        self.read(move |on| routes(on, now)).await
    }

    async fn keep_route(&self, holder: &WorkerId, lease: Duration) -> Result<Vec<Recalled>> {
        let (keeper, now) = (holder.clone(), self.clock.now());
        self.write(1, false, move |on| keep(on, &keeper, lease, now))
            .await?;
        // A route holds a lot: nobody has to wait with a write until it was looked through.
        let (holder, now) = (holder.clone(), self.clock.now());
        let look = move |on: &Connection| recalled(on, &holder, now);
        self.peeker.ask(Lane::Work, 1, false, look).await
    }

    async fn sent(
        &self,
        holder: &WorkerId,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<SentJob>> {
        let (holder, now) = (holder.clone(), self.clock.now());
        self.read(move |on| sent(on, &holder, after, limit, now))
            .await
    }

    async fn forget_route(&self, holder: &WorkerId) -> Result<bool> {
        let holder = holder.clone();
        self.write(1, false, move |on| {
            execute(on, sql!("route_forget"), [holder.as_str()])
        })
        .await
    }
}

/// The store's own number, if it is still there.
pub(super) fn store_number(connection: &Connection) -> Result<Option<u64>> {
    let id: Option<i64> = sql!("store_id")
        .on(connection)?
        .query_row([], |row| row.get(0))
        .optional()
        .map_err(|why| map(why, "store_id"))?;
    Ok(id.and_then(|id| u64::try_from(id).ok()))
}

fn store_id(connection: &Connection) -> Result<u64> {
    store_number(connection)?.ok_or_else(|| {
        Error::Schema("the store's own number is missing from rowlock_store".to_owned())
    })
}

fn declare(
    connection: &Connection,
    route: &Name,
    kinds: &[Name],
    queues: &[Name],
    change: bool,
) -> Result<Applied> {
    let stored = |sql: Sql, declared: &[Name]| -> Result<BTreeMap<Name, String>> {
        let values = params![route.as_str(), json(&declared)?];
        let rows = all(connection, sql, values, |row| {
            Ok((row::name(row, 0)?, row::text(row, 1)?.unwrap_or_default()))
        })?;
        Ok(rows.into_iter().collect())
    };
    let now_of_kinds = stored(sql!("route_kinds"), kinds)?;
    let now_of_queues = stored(sql!("route_queues"), queues)?;
    let plan = Rerouted::compare(route, (kinds, queues), (&now_of_kinds, &now_of_queues))?;
    let write = |sql: Sql, name: &Name, next: &str| -> Result<()> {
        execute(connection, sql, [name.as_str(), next]).map(|_| ())
    };
    for kind in &plan.new_kinds {
        write(sql!("route_kind"), kind, route.as_str())?;
    }
    for queue in &plan.new_queues {
        write(sql!("route_queue"), queue, route.as_str())?;
    }
    if change {
        for (kind, next) in &plan.kinds {
            write(sql!("route_kind"), kind, next)?;
        }
        for (queue, next) in &plan.queues {
            write(sql!("route_queue"), queue, next)?;
        }
    }
    Ok(plan.applied)
}

fn routes(connection: &Connection, now: Timestamp) -> Result<Vec<RouteRow>> {
    // One snapshot, so that a job that is sent in between is counted once.
    let snapshot = connection
        .unchecked_transaction()
        .map_err(|why| map(why, "routes"))?;
    let connection: &Connection = &snapshot;
    let routed = Routed::read(connection)?;
    let going = routed.kinds.values().chain(routed.queues.values());
    let mut names: BTreeSet<String> = going.cloned().collect();
    names.extend(all(connection, sql!("route_holders"), [], |row| {
        Ok(row::text(row, 0)?.unwrap_or_default())
    })?);
    let mut rows = BTreeMap::new();
    for name in names {
        let row = route_row(connection, &routed, &name, now)?;
        rows.insert(name, row);
    }
    for queue in lane::queues(connection)? {
        for kind in lane::kinds(connection, &queue)? {
            let route = routed.of(&queue, &kind);
            if let Some(row) = route.and_then(|route| rows.get_mut(route)) {
                count_unsent(connection, row, &queue, &kind, now)?;
            }
        }
    }
    Ok(rows.into_values().collect())
}

fn route_row(
    connection: &Connection,
    routed: &Routed,
    name: &str,
    now: Timestamp,
) -> Result<RouteRow> {
    let route = Name::stored(name.to_owned());
    let holder = WorkerId::route(&route);
    let most = i64::try_from(RouteRow::MOST).unwrap_or(i64::MAX);
    let (sent, seen_at, lease) = sql!("route_state")
        .on(connection)?
        .query_row(params![holder.as_str(), most], |row| {
            Ok((row::count(row, 0)?, row::time(row, 1)?, row::span(row, 2)?))
        })
        .map_err(|why| map(why, "route_state"))?;
    let heard = seen_at.map(|seen| now.duration_since(seen).unsigned_abs());
    Ok(RouteRow {
        kinds: routed.kinds_of(name),
        queues: routed.queues_of(name),
        sent,
        seen_at,
        drained: heard.zip(lease).is_some_and(|(ago, lease)| ago <= lease),
        ..RouteRow::new(route)
    })
}

/// Adds the due jobs of a queue and kind, lane by lane.
fn count_unsent(
    connection: &Connection,
    row: &mut RouteRow,
    queue: &Name,
    kind: &Name,
    now: Timestamp,
) -> Result<()> {
    let mut count = sql!("route_unsent").on(connection)?;
    for suspect in [false, true] {
        let mut below = i64::MAX;
        while let Some((priority, due)) = lane::head(connection, queue, kind, suspect, below)? {
            below = priority;
            if due > now {
                continue;
            }
            let lag = now.duration_since(due).as_millis();
            row.lag_ms = row.lag_ms.max(u64::try_from(lag).unwrap_or(0));
            let room = i64::try_from(RouteRow::MOST.saturating_sub(row.unsent)).unwrap_or(0);
            let (queue, kind, now) = (queue.as_str(), kind.as_str(), now.as_millisecond());
            let values = params![queue, kind, suspect, priority, now, room];
            row.unsent += count
                .query_row(values, |row| row::count(row, 0))
                .map_err(|why| map(why, "route_unsent"))?;
        }
    }
    Ok(())
}

fn keep(connection: &Connection, holder: &WorkerId, lease: Duration, now: Timestamp) -> Result<()> {
    let values = params![holder.as_str(), row::ms(lease), now.as_millisecond()];
    execute(connection, sql!("route_keep"), values).map(|_| ())
}

fn recalled(connection: &Connection, holder: &WorkerId, now: Timestamp) -> Result<Vec<Recalled>> {
    let holder = holder.as_str();
    let mut found = all(connection, sql!("route_cancelling"), [holder], |row| {
        Ok(Recalled {
            id: JobId(row.get(0)?),
            token: Token::stored(row.get(1)?),
            cancel: true,
        })
    })?;
    let stopped = Stopped::read(connection, now)?;
    if stopped.kinds.is_empty() && stopped.queues.is_empty() {
        return Ok(found);
    }
    let values = params![holder, json(&stopped.kinds)?, json(&stopped.queues)?];
    found.extend(all(connection, sql!("route_stopped"), values, |row| {
        Ok(Recalled {
            id: JobId(row.get(0)?),
            token: Token::stored(row.get(1)?),
            cancel: false,
        })
    })?);
    Ok(found)
}

fn sent(
    connection: &Connection,
    holder: &WorkerId,
    after: Option<JobId>,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<SentJob>> {
    // Not 0: what somebody else wrote may have any number.
    let after = after.map_or(i64::MIN, |id| id.0);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = params![holder.as_str(), after, limit];
    all(connection, sql!("route_sent"), values, |row| {
        let claimed = row::time(row, 2)?;
        Ok(SentJob {
            age: claimed.and_then(|at| now.duration_since(at).try_into().ok()),
            attempt: row::number(row, 3)?,
            max_attempts: row::number(row, 4)?,
            backoff: row::json(row, 5)?.unwrap_or_default(),
            suspect: row.get(6)?,
            ..SentJob::new(JobId(row.get(0)?), Token::stored(row.get(1)?))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::engine::sqlite::{Address, migrate_up};

    #[test]
    fn what_a_drain_asks_is_found_by_an_index() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("x.db").display());
        let address = Address::parse(&url).unwrap();
        migrate_up(&address, &Clock::system()).unwrap();
        let connection = Connection::open(&address.path).unwrap();
        for (sql, values) in [
            (sql!("claim"), 8),
            (sql!("claim_kinds"), 2),
            (sql!("route_unsent"), 6),
            (sql!("route_cancelling"), 1),
            (sql!("route_stopped"), 3),
            (sql!("route_sent"), 3),
            (sql!("route_holders"), 0),
            (sql!("route_state"), 2),
            (sql!("route_forget"), 1),
        ] {
            let explain = format!("EXPLAIN QUERY PLAN {}", sql.text());
            let mut steps = connection.prepare(&explain).unwrap();
            let values = vec![None::<i64>; values];
            let steps = steps
                .query_map(rusqlite::params_from_iter(values), |row| row.get(3))
                .unwrap();
            let steps: Vec<String> = steps.map(Result::unwrap).collect();
            let walks = |step: &&String| step.starts_with("SCAN rowlock_job");
            assert_eq!(steps.iter().find(walks), None, "{}: {steps:?}", sql.name);
        }
    }
}
