//! Numbers for a scrape, and what is dead.

use super::Postgres;
use super::row::{count, get, span};
use super::statements::sql;
use crate::engine::{ServerVitals, Vitals};
use crate::error::{Error, Result};
use crate::guard::Cost;

impl Postgres {
    pub(super) async fn read_vitals(&self) -> Result<Vitals> {
        let rows = self.ask(sql!("vitals"), &[]).await?;
        let row = rows
            .first()
            .ok_or_else(|| Error::Bug("vitals: no row".to_owned()))?;
        let segments: Vec<i64> = get(row, 5)?;
        let mut server = ServerVitals {
            horizon_transactions: count(row, 0)?,
            horizon_age: span(row, 1)?.unwrap_or_default(),
            rotations: count(row, 2)?,
            wal_bytes: count(row, 3)?,
            database_dead_rows: count(row, 4)?,
            segments: segments
                .into_iter()
                .map(|bytes| u64::try_from(bytes).unwrap_or(0))
                .collect(),
            dead_rows: Vec::new(),
        };
        for row in &self.ask(sql!("vitals_dead"), &[]).await? {
            server.dead_rows.push((get(row, 0)?, count(row, 1)?));
        }
        Ok(Vitals {
            server: Some(server),
            log_bytes: None,
        })
    }

    pub(super) async fn read_cost(&self) -> Result<Cost> {
        let rows = self.ask(sql!("cost"), &[]).await?;
        let row = rows
            .first()
            .ok_or_else(|| Error::Bug("cost: no row".to_owned()))?;
        Ok(Cost {
            dead_rows: count(row, 0)?,
            dead_bytes: count(row, 1)?,
            died: count(row, 2)?,
            at_ms: count(row, 3)?,
        })
    }

    pub(super) async fn read_kept_log(&self) -> Result<Vec<(String, u64)>> {
        let rows = self.ask(sql!("slots_wal"), &[]).await?;
        rows.iter()
            .map(|row| Ok((get(row, 0)?, count(row, 1)?)))
            .collect()
    }
}
