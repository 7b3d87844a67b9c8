//! What an operator has stopped.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Postgres;
use super::row::{count, get, name, time};
use super::statements::sql;
use crate::error::{Error, Result};
use crate::job::Name;
use crate::switch::{Mode, Setting, Switch, Target};

impl Postgres {
    pub(super) async fn set_switch(
        &self,
        target: Target,
        name: &Name,
        setting: Option<Setting>,
    ) -> Result<()> {
        if let Some(setting) = &setting {
            setting.check(target)?;
        }
        let (mode, reason, by, until) = match &setting {
            Some(set) => (
                Some(set.mode.as_str()),
                set.reason.as_deref(),
                set.by.as_deref(),
                set.until,
            ),
            None => (None, None, None, None),
        };
        let rows = self
            .call(
                "set_switch",
                &[
                    (&target.as_str(), Type::TEXT),
                    (&name.as_str(), Type::TEXT),
                    (&mode, Type::TEXT),
                    (&reason, Type::TEXT),
                    (&by, Type::TEXT),
                    (&until, Type::TIMESTAMPTZ),
                ],
            )
            .await?;
        if rows.first().map_or(Ok(false), |row| get(row, 0))? {
            return Ok(());
        }
        Err(Error::NotFound(match setting {
            Some(_) => format!("{target} {name}"),
            None => format!("a switch of {target} {name}"),
        }))
    }

    pub(super) async fn all_switches(&self) -> Result<Vec<Switch>> {
        let rows = self.query(sql!("switches"), &[]).await?;
        rows.iter().map(switch).collect()
    }
}

fn switch(row: &Row) -> Result<Switch> {
    let target = match get::<String>(row, 0)?.as_str() {
        "kind" => Target::Kind,
        "queue" => Target::Queue,
        _ => Target::Pair,
    };
    Ok(Switch {
        target,
        name: name(row, 1)?,
        mode: get::<String>(row, 2)?.parse::<Mode>()?,
        reason: get(row, 3)?,
        by: get(row, 4)?,
        until: time(row, 5)?,
        rejected: count(row, 6)?,
    })
}
