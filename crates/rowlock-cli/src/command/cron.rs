//! `rowlock cron`: look at what recurs, run it now, stop and remove it; and what `apply` does with it.

use anyhow::Result;
use rowlock::config::nearest;
use rowlock::engine::{Applied, CronRow};
use rowlock::{Enqueued, Error, Name, Rowlock, reconcile};
use serde_json::json;

use crate::cli::Cron;
use crate::open::{Access, Setup};
use crate::show::{self, Table};
use crate::{exit, out};

pub async fn run(setup: &Setup, what: Cron, json: bool) -> Result<u8> {
    let (Cron::Run { name } | Cron::Pause { name } | Cron::Resume { name } | Cron::Remove { name }) =
        &what
    else {
        return list(setup, json).await;
    };
    let rowlock = setup.open(Access::Write).await?;
    let schedule = rowlock.schedule();
    let done = match &what {
        Cron::Run { .. } => {
            let made = reconcile::run_cron_now(&*schedule, &*rowlock.lead(), name).await;
            made.map(|job| {
                (
                    ran(name, job),
                    json!({ "cron": name, "id": job.id, "status": job.status }),
                )
            })
        }
        Cron::Pause { .. } => {
            let paused = schedule.pause_cron(name, None).await;
            paused.map(|()| {
                (
                    format!("paused {name}"),
                    json!({ "cron": name, "paused": true }),
                )
            })
        }
        Cron::Remove { .. } => {
            let removed = schedule.forget_cron(name).await;
            removed.map(|()| {
                (
                    format!("removed {name}"),
                    json!({ "cron": name, "removed": true }),
                )
            })
        }
        Cron::Resume { .. } | Cron::List => {
            let resumed = reconcile::resume_cron(&*schedule, name).await;
            resumed.map(|next| {
                let line = format!("resumed {name}  next {next}");
                (
                    line,
                    json!({ "cron": name, "paused": false, "next_at": next }),
                )
            })
        }
    };
    match done {
        Ok((_, object)) if json => out::json(&object)?,
        Ok((line, _)) => out::line(&line)?,
        Err(Error::NotFound(_)) => return Err(not_found(setup, &rowlock, name).await?),
        Err(why) => return Err(why.into()),
    }
    Ok(exit::OK)
}

fn ran(name: &Name, job: Enqueued) -> String {
    let status = job.status.as_str();
    match job.id {
        Some(id) => format!("{status} {id}  cron {name}"),
        None => format!("{status}  cron {name}  a switch refuses its kind or its queue"),
    }
}

async fn not_found(setup: &Setup, rowlock: &Rowlock, name: &Name) -> Result<anyhow::Error> {
    let (_, rows) = rowlock.schedule().crons().await?;
    let names = rows.iter().map(|row| row.cron.name.as_str());
    let remedy = match nearest(name.as_str(), names) {
        Some(known) => format!(
            "did you mean {known}? {} shows all",
            setup.command("cron list")
        ),
        None => format!(
            "there are no crons; {} writes those of rowlock.toml",
            setup.command("apply")
        ),
    };
    let text = format!("cron {name} not found: {remedy}");
    Ok(exit::with(exit::NOT_FOUND, text))
}

async fn list(setup: &Setup, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Read).await?;
    let (_, rows) = rowlock.schedule().crons().await?;
    if json {
        for row in &rows {
            out::json(&object(row))?;
        }
        return Ok(exit::OK);
    }
    let heading = [
        "CRON", "KIND", "PATTERN", "ZONE", "MISSED", "NEXT", "LAST", "JOB",
    ];
    let mut table = Table::new(&heading, &[]);
    let none = || "-".to_owned();
    for row in &rows {
        let cron = &row.cron;
        let (tick, job) = row.last.unzip();
        table.row(vec![
            cron.name.to_string(),
            cron.kind.to_string(),
            show::text(&cron.cron),
            show::text(&cron.tz),
            cron.missed.as_str().to_owned(),
            match row.paused {
                true => "paused".to_owned(),
                false => row.next_at.to_string(),
            },
            tick.map_or_else(none, |tick| tick.to_string()),
            job.flatten().map_or_else(none, |id| id.to_string()),
        ]);
    }
    out::lines(&table.lines())?;
    Ok(exit::OK)
}

pub fn object(row: &CronRow) -> serde_json::Value {
    let (tick, job) = row.last.unzip();
    let cron = &row.cron;
    json!({
        "name": cron.name, "kind": cron.kind, "cron": cron.cron, "tz": cron.tz,
        "missed": cron.missed, "payload": cron.payload, "queue": cron.queue,
        "priority": cron.priority, "paused": row.paused, "next_at": row.next_at,
        "last_tick": tick, "last_job": job.flatten(),
    })
}

/// Writes the crons of the configuration, and names those that it has no more.
pub async fn apply(setup: &Setup, rowlock: &Rowlock, json: bool) -> Result<()> {
    let schedule = rowlock.schedule();
    let declared = setup.config.crons()?;
    let applied = reconcile::declare_crons(&*schedule, &declared, true).await?;
    let none = Vec::new();
    for (cron, done) in declared.iter().zip(&applied) {
        let (status, differences) = match done {
            Applied::Added => ("added", &none),
            Applied::Changed(differences) => ("changed", differences),
            Applied::Unchanged => ("unchanged", &none),
        };
        let name = &cron.name;
        if json {
            out::json(&json!({ "cron": name, "status": status, "differences": differences }))?;
        } else {
            let line = format!("{status:<9}  cron {name}  {}", differences.join(", "));
            out::line(line.trim_end())?;
        }
    }
    let (_, rows) = schedule.crons().await?;
    for row in undeclared(&rows, &declared) {
        let name = &row.cron.name;
        let remedy = setup.line(&format!("cron remove {name}"));
        match json {
            true => out::json(&json!({ "cron": name, "status": "undeclared", "remedy": remedy }))?,
            false => out::line(&format!(
                "cron {name} is not in {} any more: {}, `{remedy}` ends it",
                file_name(setup),
                if row.paused {
                    "it is only paused"
                } else {
                    "it still fires"
                },
            ))?,
        }
    }
    Ok(())
}

/// What the configuration is called.
pub fn file_name(setup: &Setup) -> String {
    setup
        .file
        .as_deref()
        .and_then(std::path::Path::file_name)
        .map_or_else(
            || crate::open::CONFIG.to_owned(),
            |name| show::text(&name.to_string_lossy()),
        )
}

/// The crons of the database that nobody declares here.
pub fn undeclared<'a>(
    rows: &'a [CronRow],
    declared: &'a [rowlock::Cron],
) -> impl Iterator<Item = &'a CronRow> {
    rows.iter()
        .filter(|row| declared.iter().all(|cron| cron.name != row.cron.name))
}
