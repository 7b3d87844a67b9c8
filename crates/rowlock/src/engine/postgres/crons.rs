//! Crons as declared, and the jobs of their ticks.

use jiff::Timestamp;
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Postgres;
use super::row::{get, json, name, time};
use super::stage;
use super::statements::sql;
use crate::engine::{Applied, CronRow, Fire, Fired, once};
use crate::error::{Error, Result};
use crate::job::{Cron, JobId, Name, Token, spelled};
use crate::log;

impl Postgres {
    pub(super) async fn write_crons(
        &self,
        crons: &[(Cron, Timestamp)],
        change: bool,
    ) -> Result<Vec<Applied>> {
        let mut wishes = Vec::with_capacity(crons.len());
        once("cron", crons.iter().map(|(cron, _)| &cron.name))?;
        for (cron, next_at) in crons {
            cron.check()?;
            let declared = spelled(cron);
            wishes.push(serde_json::json!({"declared": declared, "next_at": next_at.to_string()}));
        }
        let text = stage::json(&wishes)?;
        let rows = self
            .call(
                "declare_crons",
                &[(&text.as_str(), Type::TEXT), (&change, Type::BOOL)],
            )
            .await?;
        let mut applied = Vec::with_capacity(crons.len());
        for ((cron, _), wish) in crons.iter().zip(&wishes) {
            let of_cron = |row: &&Row| name(row, 0).is_ok_and(|name| name == cron.name);
            let before = rows.iter().find(of_cron).map(|row| json::<Value>(row, 1));
            let declared = wish.get("declared").unwrap_or(&Value::Null);
            applied.push(Applied::over(
                before.transpose()?.flatten().as_ref(),
                declared,
            ));
        }
        Ok(applied)
    }

    pub(super) async fn all_crons(&self) -> Result<(Timestamp, Vec<CronRow>)> {
        let rows = self.query(sql!("crons"), &[]).await?;
        let now = rows.first().map_or(Ok(None), |row| time(row, 0))?;
        let now = now.ok_or_else(|| Error::Bug("the server didn't tell the time".to_owned()))?;
        let mut crons = Vec::with_capacity(rows.len());
        for row in &rows {
            // One that can't be read stops no other.
            match cron_row(row) {
                Ok(cron) => crons.extend(cron),
                Err(why) => {
                    let cron = name(row, 6)?;
                    log::error!(%cron, %why, "left out a cron");
                }
            }
        }
        Ok((now, crons))
    }

    pub(super) async fn stop_cron(&self, name: &Name, resume_at: Option<Timestamp>) -> Result<()> {
        let changed = self
            .execute(
                sql!("cron_pause"),
                &[
                    (&name.as_str(), Type::TEXT),
                    (&resume_at, Type::TIMESTAMPTZ),
                ],
            )
            .await?;
        found(name, changed)
    }

    pub(super) async fn remove_cron(&self, name: &Name) -> Result<()> {
        let removed = self
            .execute(sql!("cron_forget"), &[(&name.as_str(), Type::TEXT)])
            .await?;
        found(name, removed)
    }

    pub(super) async fn fire_ticks(&self, fire: &Fire) -> Result<Fired> {
        let cron = &fire.cron;
        // Each tick puts its own time in.
        let job = stage::spell_one(&cron.job(fire.expected)?)?;
        let asked = self
            .call_unless_blocked(
                "fire",
                &[
                    (&cron.name.as_str(), Type::TEXT),
                    (&fire.token.map(Token::get), Type::INT8),
                    (&fire.expected, Type::TIMESTAMPTZ),
                    (&fire.ticks, Type::TIMESTAMPTZ_ARRAY),
                    (&fire.next_at, Type::TIMESTAMPTZ),
                    (&job, Type::TEXT),
                ],
            )
            .await;
        let asked = asked.map_err(Error::alone)?;
        let mut fired = Fired {
            blocked: asked.is_none(),
            ..Fired::default()
        };
        for row in asked.iter().flatten() {
            let tick = time(row, 0)?.unwrap_or_default();
            let job = stage::answer_in_words(get(row, 1)?, get(row, 2)?)?;
            fired.ticks.push((tick, job));
        }
        Ok(fired)
    }
}

fn found(name: &Name, changed: u64) -> Result<()> {
    match changed {
        0 => Err(Error::NotFound(format!("cron {name}"))),
        _ => Ok(()),
    }
}

/// Nothing for the row that only tells the time.
fn cron_row(row: &Row) -> Result<Option<CronRow>> {
    let Some(text) = get::<Option<String>>(row, 1)? else {
        return Ok(None);
    };
    let cron: Cron = serde_json::from_str(&text)
        .map_err(|why| Error::Schema(format!("a cron can't be read ({why}): declare it again")))?;
    let job = get::<Option<i64>>(row, 5)?.map(JobId);
    Ok(Some(CronRow {
        cron,
        paused: get(row, 2)?,
        next_at: time(row, 3)?.unwrap_or_default(),
        last: time(row, 4)?.map(|tick| (tick, job)),
    }))
}
