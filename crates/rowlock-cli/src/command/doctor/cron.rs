//! Crons that nobody fires, that nobody declares any more, or that differ from their declaration.

use std::time::Duration;

use anyhow::Result;
use rowlock::engine::CronRow;
use rowlock::{Cron, Rowlock};

use super::{Finding, Level, finding};
use crate::command::cron::{file_name, undeclared};
use crate::open::Setup;
use crate::show;

/// A tick may be late for so long before somebody asks who leads.
const OVERDUE: Duration = Duration::from_secs(120);

pub async fn look(setup: &Setup, rowlock: &Rowlock) -> Result<Vec<Finding>> {
    let (now, rows) = rowlock.schedule().crons().await?;
    let declared = setup.config.crons()?;
    let mut found = Vec::new();
    let mut add = |level, what: String, verb: &str| {
        found.push(finding("R016", level, what, setup.line(verb)));
    };
    for row in &rows {
        let (name, late) = (&row.cron.name, show::between(row.next_at, now));
        if row.paused {
            let what = format!("cron {name} is paused");
            add(Level::Info, what, &format!("cron resume {name}"));
        } else if late > OVERDUE {
            let what = format!(
                "cron {name} has been due for {}: no worker fires it",
                show::span(late)
            );
            add(Level::Warn, what, "work");
        }
    }
    if setup.file.is_some() {
        for row in undeclared(&rows, &declared) {
            let name = &row.cron.name;
            let what = format!("cron {name} is not in {}", file_name(setup));
            add(Level::Warn, what, &format!("cron remove {name}"));
        }
    }
    for cron in &declared {
        if let Some(what) = drift(cron, &rows) {
            add(Level::Warn, format!("cron {}: {what}", cron.name), "apply");
        }
    }
    Ok(found)
}

fn drift(cron: &Cron, rows: &[CronRow]) -> Option<String> {
    match rows.iter().find(|row| row.cron.name == cron.name) {
        Some(row) if row.cron == *cron => None,
        Some(row) => Some(row.cron.differences(cron).join(", ")),
        None => Some("has no row yet".to_owned()),
    }
}
