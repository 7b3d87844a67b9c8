//! What a checker asks: every job as it stands, and whether the tables agree with each other.

use tokio_postgres::types::{ToSql, Type};

use super::Postgres;
use super::row::{get, time};
use super::statements::sql;
use crate::engine::fact::tick_twice;
use crate::engine::{Fact, Integrity};
use crate::error::Result;
use crate::job::{JobId, Token};

impl Postgres {
    /// Up to `limit` rows by rising id. All rows of a job are on the same page.
    pub(super) async fn facts_after(
        &self,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<Fact>> {
        let limit = limit.max(2);
        let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        // Not 0: what somebody else wrote may have any number.
        let after = after.map_or(i64::MIN, |id| id.0);
        let values: [(&(dyn ToSql + Sync), Type); 2] = [(&after, Type::INT8), (&most, Type::INT8)];
        let mut facts = Vec::new();
        for row in &self.query(sql!("facts"), &values).await? {
            facts.push(Fact {
                id: JobId(get(row, 0)?),
                live: get(row, 1)?,
                state: get::<String>(row, 2)?.parse().ok(),
                attempt: get::<i32>(row, 3)?.into(),
                max_attempts: get::<i32>(row, 4)?.into(),
                token: get::<Option<i64>>(row, 5)?.map(Token::stored),
                locked_by: get(row, 6)?,
                due: get(row, 7)?,
            });
        }
        if facts.len() > limit {
            let next = facts.last().map(|fact| fact.id);
            facts.retain(|fact| Some(fact.id) != next);
        }
        Ok(facts)
    }

    /// Everything in which the tables contradict each other; nothing when they are well.
    pub(super) async fn contradictions(&self) -> Result<Integrity> {
        let mut wrong = self.drift().await?;
        for row in &self.query(sql!("integrity_tally"), &[]).await? {
            let (queue, state): (String, String) = (get(row, 0)?, get(row, 1)?);
            let (counted, kept): (i64, i64) = (get(row, 2)?, get(row, 3)?);
            wrong.push(format!(
                "queue {queue} counts {counted} {state} jobs and keeps {kept}"
            ));
        }
        let ten: [(&(dyn ToSql + Sync), Type); 1] = [(&10_i64, Type::INT8)];
        for row in &self.query(sql!("keys_orphaned"), &ten).await? {
            let (kind, key, id): (String, String, i64) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
            wrong.push(format!(
                "the key {key} of kind {kind} is held for job {id}, which is not live"
            ));
        }
        for row in &self.query(sql!("integrity_keys"), &[]).await? {
            let (kind, key, id): (String, String, i64) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
            wrong.push(format!(
                "the key {key} of kind {kind} is not held for job {id}, which is live"
            ));
        }
        for row in &self.query(sql!("integrity_twice"), &[]).await? {
            let (id, rows): (i64, i64) = (get(row, 0)?, get(row, 1)?);
            wrong.push(format!("job {id} has {rows} rows"));
        }
        let mut ticks = Vec::new();
        for row in &self.query(sql!("integrity_ticks"), &[]).await? {
            let (name, n): (String, i64) = (get(row, 0)?, get(row, 3)?);
            let job = get::<Option<i64>>(row, 2)?.map(JobId);
            ticks.push(tick_twice(&name, time(row, 1)?, job, n));
        }
        Ok(Integrity {
            store: wrong,
            ticks: Some(ticks),
        })
    }
}
