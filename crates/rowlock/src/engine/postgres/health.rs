//! A checkup: the schema, the ring, and what was left lying about.

use std::collections::BTreeMap;

use super::Postgres;
use super::row::{count, get, name};
use super::statements::sql;
use crate::engine::Health;
use crate::error::Result;

impl Postgres {
    pub(super) async fn checkup(&self) -> Result<Health> {
        let mut health = Health {
            drift: self.drift().await?,
            ..Health::default()
        };
        for row in &self.query(sql!("health_kinds"), &[]).await? {
            health.unknown_kinds.push((name(row, 0)?, count(row, 1)?));
        }
        self.look_around(&mut health).await?;
        Ok(health)
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
