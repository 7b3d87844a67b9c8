//! What a checkup asks about the server around the store: its clock, rights, locks and sequences.

use jiff::SignedDuration;
use tokio_postgres::Row;

use super::Postgres;
use super::row::{count, get, span};
use super::statements::sql;
use crate::engine::{Blocker, Health, Holder, Scarce, Shortage, Taker, Uncleaned};
use crate::error::Result;

/// Clocks may be so far apart before somebody has to know.
const APART: SignedDuration = SignedDuration::from_secs(2);

impl Postgres {
    pub(super) async fn look_around(&self, health: &mut Health) -> Result<()> {
        health.clock_ahead = self.clock_ahead().await?;
        for row in &self.query(sql!("health_rights"), &[]).await? {
            health.missing_rights.push(get(row, 0)?);
        }
        for row in &self.query(sql!("health_blockers"), &[]).await? {
            health.blockers.push(blocker(row)?);
        }
        for row in &self.query(sql!("health_sequences"), &[]).await? {
            let behind = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
            health.sequences_behind.push(behind);
        }
        for row in &self.query(sql!("health_isolation"), &[]).await? {
            health.isolation = Some(get(row, 0)?);
        }
        for row in &self.query(sql!("health_autovacuum"), &[]).await? {
            health.no_autovacuum.push(get(row, 0)?);
        }
        for row in &self.query(sql!("health_vacuum"), &[]).await? {
            health.uncleaned.push(uncleaned(row)?);
        }
        for row in &self.query(sql!("health_publications"), &[]).await? {
            health.published.push((get(row, 0)?, get(row, 1)?));
        }
        for row in &self.query(sql!("health_taken"), &[]).await? {
            let of = match get::<&str>(row, 0)? {
                "place" => Scarce::Places(get(row, 1)?),
                "notification" => Scarce::Notifications,
                _ => Scarce::Connections,
            };
            // Rows of one thing follow each other.
            if health.shortages.last().is_none_or(|last| last.of != of) {
                health.shortages.push(Shortage {
                    of,
                    most: count(row, 2)?,
                    takers: Vec::new(),
                });
            }
            if let Some(shortage) = health.shortages.last_mut() {
                shortage.takers.extend(taker(row)?);
            }
        }
        Ok(())
    }

    /// Nothing while the clocks are close to each other.
    async fn clock_ahead(&self) -> Result<Option<SignedDuration>> {
        let asked = self.clock.now();
        let server = self.server_time().await?;
        let answered = self.clock.now();
        // It was some moment between the two.
        let here = server.clamp(asked, answered.max(asked));
        let ahead = server.duration_since(here);
        Ok(Some(ahead).filter(|ahead| ahead.abs() > APART))
    }
}

fn blocker(row: &Row) -> Result<Blocker> {
    let (pid, application): (Option<i32>, Option<String>) = (get(row, 2)?, get(row, 3)?);
    let holder = match pid {
        Some(pid) => Holder::Session {
            pid,
            application: application.unwrap_or_default(),
        },
        None => Holder::Prepared(application.unwrap_or_default()),
    };
    Ok(Blocker {
        segment: get(row, 0)?,
        bytes: count(row, 1)?,
        holder,
        age: span(row, 4)?,
    })
}

/// Nothing where the server can't tell.
fn taker(row: &Row) -> Result<Option<Taker>> {
    let Some(role) = get(row, 4)? else {
        return Ok(None);
    };
    Ok(Some(Taker {
        pid: get(row, 3)?,
        role,
        name: get::<Option<String>>(row, 5)?.unwrap_or_default(),
        n: count(row, 6)?,
        age: span(row, 7)?,
    }))
}

fn uncleaned(row: &Row) -> Result<Uncleaned> {
    Ok(Uncleaned {
        table: get(row, 0)?,
        dead_rows: count(row, 1)?,
        off: get(row, 2)?,
        cleaned: span(row, 3)?,
    })
}
