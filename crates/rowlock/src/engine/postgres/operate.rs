//! What operators read and change.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::row::{self, count, get, name, span, time};
use super::stage::json as text;
use super::statements::sql;
use super::{Postgres, lock, ms};
use crate::claim::WorkerId;
use crate::engine::{Applied, Counts, Drift, ENDED, Filter, QueueRow, Stats, WorkerRow, once};
use crate::error::{Error, Result};
use crate::job::{JobId, JobState, Kind, Name, Record};
use crate::log;

/// How long the store's number is taken for granted.
const STORE_KNOWN: Duration = Duration::from_secs(60);

impl Postgres {
    pub(super) async fn one_job(&self, id: JobId) -> Result<Option<Record>> {
        let rows = self.query(sql!("job"), &[(&id.0, Type::INT8)]).await?;
        self.records(&rows).await.map(|mut all| all.pop())
    }

    pub(super) async fn jobs_by(&self, filter: &Filter) -> Result<Vec<Record>> {
        let text = |name: &Option<Name>| name.as_ref().map(|name| name.as_str().to_owned());
        let (queue, kind, tag) = (text(&filter.queue), text(&filter.kind), text(&filter.tag));
        let state = filter.state.map(JobState::as_str);
        let after = filter.after.map_or(0, |id| id.0);
        let limit = most(filter.limit);
        let values: [(&(dyn ToSql + Sync), Type); 9] = [
            (&state, Type::TEXT),
            (&queue, Type::TEXT),
            (&kind, Type::TEXT),
            (&filter.key, Type::TEXT),
            (&tag, Type::TEXT),
            (&filter.since, Type::TIMESTAMPTZ),
            (&filter.until, Type::TIMESTAMPTZ),
            (&after, Type::INT8),
            (&limit, Type::INT8),
        ];
        let rows = self.query(sql!("jobs"), &values).await?;
        self.records(&rows).await
    }

    /// Jobs as they are stored, each with its key.
    pub(super) async fn records(&self, rows: &[Row]) -> Result<Vec<Record>> {
        let store = self.store_number().await?;
        rows.iter().map(|row| row::record(row, store)).collect()
    }

    /// The store's own number; it is known before it is first written. Pages and `top` need it for every list, so it is
    /// remembered for a minute: another database may have taken this one's place.
    pub(super) async fn store_number(&self) -> Result<u64> {
        let now = self.clock.elapsed();
        if let Some((known, since)) = *lock(&self.store)
            && now.saturating_sub(since) < STORE_KNOWN
        {
            return Ok(known);
        }
        let rows = self.query(sql!("store_number"), &[]).await?;
        let number = rows.first().map_or(Ok(0), |row| count(row, 0))?;
        *lock(&self.store) = Some((number, now));
        Ok(number)
    }

    pub(super) async fn running_jobs(&self, limit: usize) -> Result<Vec<Record>> {
        let values = [(&most(limit) as _, Type::INT8)];
        let rows = self.query(sql!("running"), &values).await?;
        self.records(&rows).await
    }

    pub(super) async fn ended_jobs(&self, state: JobState, limit: usize) -> Result<Vec<Record>> {
        let (state, back, limit) = (state.as_str(), most(ENDED), most(limit));
        let values: [(&(dyn ToSql + Sync), Type); 3] = [
            (&state, Type::TEXT),
            (&back, Type::INT8),
            (&limit, Type::INT8),
        ];
        let rows = self.query(sql!("ended"), &values).await?;
        self.records(&rows).await
    }

    pub(super) async fn server_time(&self) -> Result<Timestamp> {
        let rows = self.query(sql!("server_time"), &[]).await?;
        let now = rows.first().map_or(Ok(None), |row| time(row, 0))?;
        now.ok_or_else(|| Error::Bug("the server didn't tell the time".to_owned()))
    }

    pub(super) async fn count_all(&self) -> Result<Stats> {
        let now = self.server_time().await?;
        let mut stats = Stats::default();
        for row in &self
            .query(sql!("stats"), &[(&now, Type::TIMESTAMPTZ)])
            .await?
        {
            let counts = stats.queues.entry(name(row, 0)?).or_default();
            let state: Option<String> = get(row, 1)?;
            let n = count(row, 2)?;
            match state.as_deref() {
                None => {
                    counts.pending = n;
                    counts.scheduled = count(row, 3)?;
                    counts.retrying = count(row, 4)?;
                    counts.held = count(row, 5)?;
                    counts.processing = count(row, 6)?;
                    counts.oldest_pending_seconds = get(row, 7)?;
                }
                Some("completed") => counts.completed = n,
                Some("failed") => counts.failed = n,
                Some(_) => counts.cancelled = n,
            }
        }
        stats
            .queues
            .retain(|_, counts| *counts != Counts::default());
        stats.total = Counts::sum(stats.queues.values());
        Ok(stats)
    }

    pub(super) async fn queue_rows(&self) -> Result<Vec<QueueRow>> {
        let row_of = |queue: Name, counts: Counts| QueueRow {
            queue,
            paused: false,
            reason: None,
            counts,
        };
        let counted = self.count_all().await?.queues;
        let mut rows: BTreeMap<Name, QueueRow> = counted
            .into_iter()
            .map(|(queue, counts)| (queue.clone(), row_of(queue, counts)))
            .collect();
        for row in &self.query(sql!("queues"), &[]).await? {
            let queue = name(row, 0)?;
            let entry = rows
                .entry(queue.clone())
                .or_insert_with(|| row_of(queue, Counts::default()));
            entry.paused = get(row, 1)?;
            entry.reason = get(row, 2)?;
        }
        Ok(rows.into_values().collect())
    }

    pub(super) async fn all_kinds(&self) -> Result<Vec<Kind>> {
        let rows = self.query(sql!("kinds"), &[]).await?;
        rows.iter().map(row::kind).collect()
    }

    /// Adds kinds without a row; names those whose row differs.
    pub(super) async fn add_missing(&self, declared: &[Kind]) -> Result<Vec<Drift>> {
        let stored = self.write_kinds(declared, false).await?;
        let differs = |kind: &Kind| {
            let row = stored.iter().find(|row| row.name == kind.name)?;
            (row != kind).then(|| Drift {
                kind: kind.name.clone(),
                differences: row.differences(kind),
            })
        };
        Ok(declared.iter().filter_map(differs).collect())
    }

    pub(super) async fn apply_all(&self, declared: &[Kind]) -> Result<Vec<Applied>> {
        let before = self.write_kinds(declared, true).await?;
        let became = |kind: &Kind| match before.iter().find(|row| row.name == kind.name) {
            Some(row) if row == kind => Applied::Unchanged,
            Some(row) => Applied::Changed(row.differences(kind)),
            None => Applied::Added,
        };
        Ok(declared.iter().map(became).collect())
    }

    /// Writes kinds in one transaction, all or none; answers with the rows that were there already, as they were.
    async fn write_kinds(&self, kinds: &[Kind], change: bool) -> Result<Vec<Kind>> {
        once("kind", kinds.iter().map(|kind| &kind.name))?;
        let spell = |kind: &Kind| {
            json!({
                "kind": kind.name.as_str(),
                "queue": kind.queue.as_str(),
                "priority": kind.priority,
                "max_attempts": kind.max_attempts,
                "backoff": kind.backoff,
                "timeout_ms": ms(kind.timeout),
                "key_fields": kind.key.iter().map(Name::as_str).collect::<Vec<_>>(),
                "unique_until": kind.unique_until.as_str(),
                "keep_completed_ms": ms(kind.retention.completed),
                "keep_failed_ms": ms(kind.retention.failed),
                "keep_cancelled_ms": ms(kind.retention.cancelled),
            })
        };
        let all = text(&kinds.iter().map(spell).collect::<Vec<_>>())?;
        let values: [(&(dyn ToSql + Sync), Type); 2] = [(&all, Type::TEXT), (&change, Type::BOOL)];
        let rows = match self.call("write_kinds", &values).await {
            Err(refused @ Error::Invalid(_)) => {
                // In the words of the pair that is in the way.
                let pairs = self.all_pairs().await?;
                for kind in kinds {
                    pairs.iter().try_for_each(|row| row.pair.allows(kind))?;
                }
                return Err(refused);
            }
            rows => rows?,
        };
        // Only speed hangs on it, and the next one finds out.
        if let Err(why) = self.call("note_plain", &[]).await {
            log::debug!(%why, "kinds are not noted as plain");
        }
        rows.iter().map(row::kind).collect()
    }

    pub(super) async fn all_workers(&self) -> Result<Vec<WorkerRow>> {
        let rows = self.query(sql!("workers"), &[]).await?;
        let read = |row| {
            Ok(WorkerRow {
                id: WorkerId::stored(get(row, 0)?),
                lease: span(row, 1)?.unwrap_or_default(),
                joined_at: time(row, 2)?.unwrap_or_default(),
                holds: count(row, 3)?,
                seen_at: time(row, 4)?.unwrap_or_default(),
                more: false,
            })
        };
        rows.iter().map(read).collect()
    }
}

pub(super) fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
