//! What pins the horizon, and the budgets of workload classes.

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Postgres;
use super::listen::has_own_sessions;
use super::row::{count, get, json as stored_json, name, number, span};
use super::statements::sql;
use crate::engine::{Applied, Vitals, Watch};
use crate::error::Result;
use crate::guard::{Action, Class, Cost, End, Pin, Rule, What};
use crate::job::Name;

#[async_trait]
impl Watch for Postgres {
    async fn pins(&self) -> Result<Vec<Pin>> {
        let mut pins = Vec::new();
        // Behind a pooler our numbers are those of sessions that others use as well.
        let own = self.has_own_sessions().await?;
        for row in &self.ask(sql!("pin_sessions"), &[]).await? {
            let mut pin = session(row)?;
            pin.ours = own && pin.pid.is_some_and(|pid| self.sessions.has(pid));
            pins.push(pin);
        }
        for row in &self.ask(sql!("pin_prepared"), &[]).await? {
            pins.push(prepared(row)?);
        }
        for row in &self.ask(sql!("pin_slots"), &[]).await? {
            pins.push(slot(row)?);
        }
        for row in &self.ask(sql!("pin_standbys"), &[]).await? {
            pins.push(standby(row)?);
        }
        Ok(pins)
    }

    async fn cost(&self) -> Result<Cost> {
        self.read_cost().await
    }

    async fn kept_log(&self) -> Result<Vec<(String, u64)>> {
        self.read_kept_log().await
    }

    async fn vitals(&self) -> Result<Vitals> {
        self.read_vitals().await
    }

    async fn end(&self, pid: i32, began: i64, action: Action) -> Result<End> {
        let statement = match action {
            Action::Observe => return Ok(End::Gone),
            Action::Cancel => sql!("pin_cancel"),
            Action::Terminate => sql!("pin_terminate"),
        };
        let values: [super::ask::Value<'_>; 2] = [(&pid, Type::INT4), (&began, Type::INT8)];
        let rows = match self.ask_leave(statement, &values).await? {
            Ok(rows) => rows,
            Err(why) => return Ok(End::Refused(why)),
        };
        let asked = rows.first().map_or(Ok(false), |row| get(row, 0))?;
        Ok(if asked { End::Asked } else { End::Gone })
    }

    async fn classes(&self) -> Result<Vec<Class>> {
        let rows = self.ask(sql!("budgets"), &[]).await?;
        rows.iter().map(class).collect()
    }

    async fn declare_class(&self, class: &Class) -> Result<Applied> {
        let classes = self.classes().await?;
        let old = classes.iter().find(|old| old.name == class.name);
        let applied = Applied::over(old.map(spell).as_ref(), &spell(class));
        let max = i32::try_from(class.max).unwrap_or(i32::MAX);
        let rule = serde_json::to_string(&class.rule).unwrap_or_else(|_| "{}".to_owned());
        let values: [super::ask::Value<'_>; 3] = [
            (&class.name.as_str(), Type::TEXT),
            (&max, Type::INT4),
            (&rule, Type::TEXT),
        ];
        self.execute(sql!("budget_write"), &values).await?;
        Ok(applied)
    }

    async fn forget_class(&self, name: &Name) -> Result<bool> {
        let values: [super::ask::Value<'_>; 1] = [(&name.as_str(), Type::TEXT)];
        Ok(self.execute(sql!("budget_forget"), &values).await? > 0)
    }
}

impl Postgres {
    /// Whether a connection of ours is one session of the server's. A worker's listener knows; otherwise it is
    /// found out once.
    pub(super) async fn has_own_sessions(&self) -> Result<bool> {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("guard.own_sessions") {
            return Ok(true);
        }
        if let Some(hears) = self.listener.hears() {
            return Ok(hears);
        }
        let own = self
            .own_sessions
            .get_or_try_init(|| has_own_sessions(&self.address));
        own.await.copied()
    }
}

fn session(row: &Row) -> Result<Pin> {
    Ok(Pin {
        what: What::Session,
        pid: get(row, 0)?,
        application: get(row, 1)?,
        role: get(row, 2)?,
        query: get(row, 3)?,
        state: get(row, 4)?,
        age: span(row, 5)?,
        transactions: count(row, 6)?,
        backend: get(row, 7)?,
        superuser: get(row, 8)?,
        began: get(row, 9)?,
        changes_jobs: get::<Option<bool>>(row, 10)?.unwrap_or(false),
        ..Pin::default()
    })
}

fn prepared(row: &Row) -> Result<Pin> {
    Ok(Pin {
        what: What::Prepared,
        name: get(row, 0)?,
        role: get(row, 1)?,
        age: span(row, 2)?,
        transactions: count(row, 3)?,
        ..Pin::default()
    })
}

fn slot(row: &Row) -> Result<Pin> {
    Ok(Pin {
        what: What::Slot,
        name: get(row, 0)?,
        pid: get(row, 1)?,
        state: get(row, 2)?,
        transactions: count(row, 3)?,
        catalog_only: get(row, 4)?,
        ..Pin::default()
    })
}

fn standby(row: &Row) -> Result<Pin> {
    Ok(Pin {
        what: What::Standby,
        pid: get(row, 0)?,
        name: get(row, 1)?,
        role: get(row, 2)?,
        state: get(row, 3)?,
        transactions: count(row, 4)?,
        ..Pin::default()
    })
}

fn class(row: &Row) -> Result<Class> {
    Ok(Class {
        name: name(row, 0)?,
        max: number(row, 1)?,
        rule: stored_json::<Rule>(row, 2)?.unwrap_or_default(),
    })
}

fn spell(class: &Class) -> Value {
    json!({ "max": class.max, "match": class.rule })
}
