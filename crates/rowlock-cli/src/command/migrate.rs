//! `rowlock migrate`: the tables.

use anyhow::Result;
use rowlock::Clock;
use rowlock::engine::sqlite::{LATEST, MIGRATIONS, migrate_up, schema_version};
use serde_json::json;

use crate::cli::Migrate;
use crate::open::{Access, Setup};
use crate::{exit, out, show};

pub fn run(setup: &Setup, what: &Migrate, json: bool) -> Result<u8> {
    match what {
        Migrate::Up => up(setup, json),
        Migrate::Status => status(setup, json),
        Migrate::Sql => sql(json),
    }
}

fn up(setup: &Setup, json: bool) -> Result<u8> {
    let applied = migrate_up(&setup.address, &Clock::system())?;
    if json {
        out::json(&json!({ "applied": applied, "schema": LATEST }))?;
        return Ok(exit::OK);
    }
    for step in MIGRATIONS
        .iter()
        .filter(|step| applied.contains(&step.version))
    {
        out::line(&format!("applied {}", step.name))?;
    }
    let path = show::path(&setup.address.path);
    let done = if applied.is_empty() {
        ", nothing to do"
    } else {
        ""
    };
    out::line(&format!("{path} has schema {LATEST}{done}"))?;
    Ok(exit::OK)
}

fn status(setup: &Setup, json: bool) -> Result<u8> {
    setup.owner(Access::Read)?;
    let version = schema_version(&setup.address)?;
    if json {
        out::json(&json!({ "stored": version.stored, "latest": version.latest }))?;
        return Ok(exit::OK);
    }
    let path = show::path(&setup.address.path);
    let pending = MIGRATIONS
        .iter()
        .filter(|step| step.version > version.stored);
    let pending: Vec<_> = pending.map(|step| step.name).collect();
    out::line(&match version.stored {
        current if current == version.latest => format!("{path} has schema {current}, up to date"),
        old => format!(
            "{path} has {}, this rowlock needs {}: {} applies {}",
            if old == 0 {
                "no rowlock tables".to_owned()
            } else {
                format!("schema {old}")
            },
            version.latest,
            setup.command("migrate up"),
            pending.join(", "),
        ),
    })?;
    Ok(exit::OK)
}

/// Prints every migration.
pub fn sql(json: bool) -> Result<u8> {
    for step in MIGRATIONS {
        if json {
            out::json(&json!({ "version": step.version, "name": step.name, "sql": step.text() }))?;
        } else {
            out::lines(&format!("-- {}\n{}", step.name, step.text()))?;
        }
    }
    Ok(exit::OK)
}
