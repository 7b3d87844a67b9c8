//! Looks that stay cheap.

use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::Postgres;
use super::operate::most;
use super::row::{self, count, get, name, span, time};
use super::statements::sql;
use crate::claim::WorkerId;
use crate::engine::browse::{BYTES, Browse, Glance, LOOK, MOST, Page, Run};
use crate::engine::{Filter, WorkerRow};
use crate::error::Result;
use crate::job::{JobId, JobState, Name, Record};

/// How many rows of a lane are looked at for those that run: claims take from its head.
const HEAD: i64 = 250;
/// The same where a queue is too long to be counted.
const LONG_HEAD: i64 = 1_000;

#[async_trait]
impl Browse for Postgres {
    async fn browse(&self, filter: Filter, newest: bool) -> Result<Page> {
        let text = |name: &Option<Name>| name.as_ref().map(|name| name.as_str().to_owned());
        let (queue, kind, tag) = (text(&filter.queue), text(&filter.kind), text(&filter.tag));
        let state = filter.state.map(JobState::as_str);
        let start = if newest { i64::MAX } else { i64::MIN };
        let after = filter.after.map_or(start, |id| id.0);
        let (limit, look) = (most(filter.limit.saturating_add(1)), most(LOOK));
        let bytes = most(BYTES);
        let values: [(&(dyn ToSql + Sync), Type); 11] = [
            (&state, Type::TEXT),
            (&queue, Type::TEXT),
            (&kind, Type::TEXT),
            (&filter.key, Type::TEXT),
            (&tag, Type::TEXT),
            (&filter.since, Type::TIMESTAMPTZ),
            (&filter.until, Type::TIMESTAMPTZ),
            (&after, Type::INT8),
            (&limit, Type::INT8),
            (&look, Type::INT8),
            (&bytes, Type::INT8),
        ];
        let rows = match newest {
            true => self.look(sql!("browse_newest"), &values).await?,
            false => self.look(sql!("browse"), &values).await?,
        };
        page(&rows, filter.limit, self.store_number().await?)
    }

    async fn glance(&self) -> Result<Glance> {
        let (begun, look) = (
            self.deep.begin(self.clock.elapsed()),
            most(MOST as usize + 1),
        );
        let values: [(&(dyn ToSql + Sync), Type); 3] = [
            (&look, Type::INT8),
            (&LONG_HEAD, Type::INT8),
            (&begun.jobs, Type::INT8_ARRAY),
        ];
        let (mut glance, mut deep) = (Glance::new(), Vec::new());
        for row in &self.look(sql!("glance"), &values).await? {
            deep.extend(get::<Vec<i64>>(row, 9)?);
            let entry = glance.entry(name(row, 0)?).or_default();
            let counts = &mut entry.counts;
            let (state, n): (Option<String>, _) = (get(row, 1)?, count(row, 2)?);
            match state.as_deref() {
                None => {
                    counts.pending = n;
                    counts.scheduled = count(row, 3)?;
                    counts.retrying = count(row, 4)?;
                    counts.held = count(row, 5)?;
                    counts.processing = count(row, 6)?;
                    counts.oldest_pending_seconds = get(row, 7)?;
                    entry.capped = get::<Option<bool>>(row, 8)?.unwrap_or_default();
                }
                Some("completed") => counts.completed = n,
                Some("failed") => counts.failed = n,
                Some(_) => counts.cancelled = n,
            }
        }
        self.deep.found(&begun, deep);
        // A lane outlives its jobs for a while.
        glance.retain(|_, entry| entry.counts != Default::default());
        Ok(glance
            .into_iter()
            .map(|(queue, n)| (queue, n.cut()))
            .collect())
    }

    async fn in_hand(&self, limit: usize) -> Result<Vec<Record>> {
        let (limit, bytes) = (most(limit), most(BYTES));
        let values: [(&(dyn ToSql + Sync), Type); 3] = [
            (&HEAD, Type::INT8),
            (&limit, Type::INT8),
            (&bytes, Type::INT8),
        ];
        let rows = self.look(sql!("in_hand"), &values).await?;
        self.records(&rows).await
    }

    async fn hands(&self) -> Result<Vec<WorkerRow>> {
        let rows = self.look(sql!("hands"), &[(&HEAD, Type::INT8)]).await?;
        let read = |row| {
            Ok(WorkerRow {
                id: WorkerId::stored(get(row, 0)?),
                lease: span(row, 1)?.unwrap_or_default(),
                joined_at: time(row, 2)?.unwrap_or_default(),
                holds: count(row, 3)?,
                seen_at: time(row, 4)?.unwrap_or_default(),
                more: get(row, 5)?,
            })
        };
        rows.iter().map(read).collect()
    }

    async fn runs(&self, limit: usize) -> Result<Vec<Run>> {
        let limit = most(limit);
        let mut runs = Vec::new();
        for row in &self.look(sql!("runs"), &[(&limit, Type::INT8)]).await? {
            if let (Some(finished_at), Some(took)) = (time(row, 0)?, span(row, 1)?) {
                runs.push(Run { finished_at, took });
            }
        }
        Ok(runs)
    }
}

fn page(rows: &[Row], wanted: usize, store: u64) -> Result<Page> {
    let (mut last, mut seen, mut matches) = (None, 0, 0);
    let mut jobs = Vec::with_capacity(rows.len());
    for row in rows {
        last = get::<Option<i64>>(row, 17)?.map(JobId);
        seen = count(row, 18)?;
        // Without a job that matches there is one row, which tells how far the look went.
        if get::<Option<i64>>(row, 0)?.is_some() {
            jobs.push(row::record(row, store)?);
            matches = usize::try_from(count(row, 19)?).unwrap_or(usize::MAX);
        }
    }
    Ok(Page::of(jobs, (wanted, matches), last, seen >= LOOK as u64))
}
