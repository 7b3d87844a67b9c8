//! A checkup: the schema, the ring, and what was left lying about.

use std::collections::BTreeMap;

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::Postgres;
use super::row::{count, get, name, span};
use super::statements::sql;
use crate::engine::health::HEAD;
use crate::engine::{AtLeast, Health, Unhandled};
use crate::error::Result;

impl Postgres {
    pub(super) async fn checkup(&self) -> Result<Health> {
        let mut health = Health {
            drift: self.drift().await?,
            ..Health::default()
        };
        match self.waiting(&mut health).await {
            // Without an index it may take too long: that is what the checkup tells then.
            Err(_) if !health.drift.is_empty() => {}
            looked => looked?,
        }
        self.look_around(&mut health).await?;
        Ok(health)
    }

    /// What waits and shouldn't.
    async fn waiting(&self, health: &mut Health) -> Result<()> {
        let head = i64::from(HEAD);
        let values = [(&head as &(dyn ToSql + Sync), Type::INT8)];
        for row in &self.look(sql!("health_kinds"), &values).await? {
            match get::<Option<&str>>(row, 0)? {
                Some(_) => {
                    let jobs = at_least(row, 1, 2)?;
                    health.unknown_kinds.push((name(row, 0)?, jobs));
                }
                None => health.unseen = true,
            }
        }
        for row in &self.look(sql!("health_unhandled"), &values).await? {
            health.unhandled.push(Unhandled {
                kind: name(row, 0)?,
                jobs: at_least(row, 1, 3)?,
                oldest: span(row, 2)?.unwrap_or_default(),
            });
        }
        Ok(())
    }

    /// Compares the schema with what it consisted of when it was made.
    pub(super) async fn drift(&self) -> Result<Vec<String>> {
        let stored = self.parts(sql!("health_schema")).await?;
        let mut differences = Vec::new();
        for (thing, content) in self.parts(sql!("health_recorded")).await? {
            match stored.get(&thing) {
                None => differences.push(format!("the {thing} is missing")),
                Some(other) if *other != content => {
                    differences.push(format!("the {thing} was changed"))
                }
                Some(_) => {}
            }
        }
        Ok(differences)
    }

    async fn parts(&self, statement: super::statements::Sql) -> Result<BTreeMap<String, String>> {
        let rows = self.query(statement, &[]).await?;
        rows.iter()
            .map(|row| Ok((get(row, 0)?, get(row, 1)?)))
            .collect()
    }
}

fn at_least(row: &Row, n: usize, more: usize) -> Result<AtLeast> {
    Ok(AtLeast {
        n: count(row, n)?,
        more: get(row, more)?,
    })
}
