//! What a drain asks of the store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::row::{count, get, json, name, names, number, time};
use super::statements::sql;
use super::{Postgres, lock, ms};
use crate::claim::WorkerId;
use crate::engine::routes::{Rerouted, is_a_route};
use crate::engine::{Applied, Recalled, RouteRow, Routes, SentJob};
use crate::error::{Error, Result};
use crate::job::{JobId, Name, Token};

/// What a route holds in the ring, which has no index to find it by: it is walked once for a whole
/// list. Whatever came later is too young to be asked about.
pub(super) type Young = BTreeMap<JobId, SentJob>;

#[async_trait]
impl Routes for Postgres {
    async fn store_id(&self) -> Result<u64> {
        let rows = self.call("store_id", &[]).await?;
        match rows.first() {
            Some(row) => count(row, 0),
            None => Err(Error::Bug("the store has no number of its own".to_owned())),
        }
    }

    async fn declare_route(
        &self,
        route: &Name,
        kinds: &[Name],
        queues: &[Name],
        change: bool,
    ) -> Result<Applied> {
        is_a_route(route)?;
        let texts = |names: &[Name]| names.iter().map(Name::to_string).collect::<Vec<_>>();
        let values: [(&(dyn ToSql + Sync), Type); 4] = [
            (&route.as_str(), Type::TEXT),
            (&texts(kinds), Type::TEXT_ARRAY),
            (&texts(queues), Type::TEXT_ARRAY),
            (&change, Type::BOOL),
        ];
        let (mut of_kinds, mut of_queues) = (BTreeMap::new(), BTreeMap::new());
        for row in &self.call("declare_route", &values).await? {
            let stored = match get::<&str>(row, 0)? {
                "kind" => &mut of_kinds,
                _ => &mut of_queues,
            };
            stored.insert(name(row, 1)?, get(row, 2)?);
        }
        self.bell.ring();
        let rerouted = Rerouted::compare(route, (kinds, queues), (&of_kinds, &of_queues))?;
        Ok(rerouted.applied)
    }

    async fn routes(&self) -> Result<Vec<RouteRow>> {
        let most = i64::try_from(RouteRow::MOST).unwrap_or(i64::MAX);
        let rows = self.look(sql!("routes"), &[(&most, Type::INT8)]).await?;
        rows.iter().map(route).collect()
    }

    async fn keep_route(&self, holder: &WorkerId, lease: Duration) -> Result<Vec<Recalled>> {
        if !lock(&self.workers).contains_key(holder) {
            self.see_to_ids().await?;
        }
        let (id, lease) = (holder.as_str(), ms(lease));
        let values: [(&(dyn ToSql + Sync), Type); 2] = [(&id, Type::TEXT), (&lease, Type::INT8)];
        let mut recalled = Vec::new();
        for row in &self.call_aside("keep_route", &values).await? {
            match get::<Option<i64>>(row, 1)? {
                // Somebody may have forgotten it, and it has another number now.
                None => {
                    lock(&self.workers).insert(holder.clone(), get(row, 0)?);
                }
                Some(id) => recalled.push(Recalled {
                    id: JobId(id),
                    token: Token::stored(get(row, 2)?),
                    cancel: get(row, 3)?,
                }),
            }
        }
        Ok(recalled)
    }

    async fn sent(
        &self,
        holder: &WorkerId,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<SentJob>> {
        let known = after.is_some() && lock(&self.young).contains_key(holder);
        if !known {
            let values = [(&holder.as_str() as &(dyn ToSql + Sync), Type::TEXT)];
            let rows = self.call("sent_young", &values).await?;
            let young: Result<Young> = rows.iter().map(sent).collect();
            lock(&self.young).insert(holder.clone(), young?);
        }
        let first = after.map_or(0, |id| id.0);
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let values: [(&(dyn ToSql + Sync), Type); 3] = [
            (&holder.as_str(), Type::TEXT),
            (&first, Type::INT8),
            (&most, Type::INT8),
        ];
        let rows = self.query(sql!("sent"), &values).await?;
        let aside: Result<Young> = rows.iter().map(sent).collect();
        let mut page = aside?;
        let mut all = lock(&self.young);
        let later = (Bound::Excluded(JobId(first)), Bound::Unbounded);
        for (id, job) in all
            .get(holder)
            .iter()
            .flat_map(|young| young.range(later))
            .take(limit)
        {
            page.entry(*id).or_insert_with(|| job.clone());
        }
        if page.is_empty() {
            all.remove(holder);
        }
        let page = page.into_values().take(limit).collect();
        Ok(page)
    }

    async fn forget_route(&self, holder: &WorkerId) -> Result<bool> {
        let values = [(&holder.as_str() as &(dyn ToSql + Sync), Type::TEXT)];
        let rows = self.call("forget_route", &values).await?;
        let forgotten = rows.first().map_or(Ok(false), |row| get(row, 0))?;
        if forgotten {
            lock(&self.workers).remove(holder);
        }
        Ok(forgotten)
    }
}

fn sent(row: &Row) -> Result<(JobId, SentJob)> {
    let id = JobId(get(row, 0)?);
    let age: Option<i64> = get(row, 2)?;
    let age = age.and_then(|ms| u64::try_from(ms).ok());
    let job = SentJob {
        age: age.map(Duration::from_millis),
        attempt: number(row, 3)?,
        max_attempts: number(row, 4)?,
        backoff: json(row, 5)?.unwrap_or_default(),
        suspect: get(row, 6)?,
        ..SentJob::new(id, Token::stored(get(row, 1)?))
    };
    Ok((id, job))
}

fn route(row: &Row) -> Result<RouteRow> {
    Ok(RouteRow {
        kinds: names(row, 1)?,
        queues: names(row, 2)?,
        unsent: count(row, 3)?,
        lag_ms: count(row, 4)?,
        sent: count(row, 5)?,
        seen_at: time(row, 6)?,
        drained: get(row, 7)?,
        ..RouteRow::new(name(row, 0)?)
    })
}
