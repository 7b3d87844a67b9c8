//! `rowlock migrate`: the tables, and who may use them.

use anyhow::Result;
use rowlock::engine::postgres::{self, Address, grant_roles, migration_sql, roles_sql};
use rowlock::engine::sqlite::{self, MIGRATIONS};
use rowlock::{Clock, Rowlock};
use serde_json::json;

use crate::cli::{Global, Migrate, Roles};
use crate::open::{Access, Setup, Store, parse};
use crate::{exit, out};

pub async fn run(setup: &Setup, what: &Migrate, json: bool) -> Result<u8> {
    match what {
        Migrate::Up => up(setup, json).await,
        Migrate::Status => status(setup, json).await,
        Migrate::Sql { part } => sql(&setup.store, part.as_deref(), json),
        Migrate::Roles(how) => match &setup.store {
            Store::Postgres(address) => roles(address, how, json).await,
            Store::Sqlite(_) => Err(exit::with(
                exit::USAGE,
                "a SQLite file has no roles: who may use it is said by the file's own rights",
            )),
        },
    }
}

async fn up(setup: &Setup, json: bool) -> Result<u8> {
    let applied = match &setup.store {
        Store::Sqlite(address) => sqlite::migrate_up(address, &Clock::system())?,
        Store::Postgres(address) => postgres::migrate_up(address).await?,
    };
    let latest = setup.store.latest();
    if json {
        out::json(&json!({ "applied": applied, "schema": latest }))?;
        return Ok(exit::OK);
    }
    for name in names(&setup.store, |version| applied.contains(&version)) {
        out::line(&format!("applied {name}"))?;
    }
    let shown = setup.store.shown();
    let done = if applied.is_empty() {
        ", nothing to do"
    } else {
        ""
    };
    out::line(&format!("{shown} has schema {latest}{done}"))?;
    Ok(exit::OK)
}

/// The names of some migrations.
fn names(store: &Store, wanted: impl Fn(u32) -> bool) -> Vec<&'static str> {
    let all: Vec<(u32, &'static str)> = match store {
        Store::Sqlite(_) => MIGRATIONS
            .iter()
            .map(|step| (step.version, step.name))
            .collect(),
        Store::Postgres(_) => postgres::migrations().collect(),
    };
    let wanted = all.into_iter().filter(|(version, _)| wanted(*version));
    wanted.map(|(_, name)| name).collect()
}

async fn status(setup: &Setup, json: bool) -> Result<u8> {
    let (stored, latest) = match &setup.store {
        Store::Sqlite(address) => {
            setup.owner(address, Access::Read)?;
            let version = sqlite::schema_version(address)?;
            (version.stored, version.latest)
        }
        Store::Postgres(address) => {
            let version = postgres::schema_version(address).await?;
            (version.stored, version.latest)
        }
    };
    let drift = match stored == latest && matches!(setup.store, Store::Postgres(_)) {
        true => drift(&setup.open(Access::Read).await?).await?,
        false => Vec::new(),
    };
    if json {
        let status = match &setup.store {
            Store::Sqlite(_) => json!({ "stored": stored, "latest": latest }),
            Store::Postgres(_) => json!({ "stored": stored, "latest": latest, "drift": drift }),
        };
        out::json(&status)?;
        return Ok(exit::OK);
    }
    let shown = setup.store.shown();
    let pending = names(&setup.store, |version| version > stored);
    out::line(&match stored {
        current if current == latest => format!("{shown} has schema {current}, up to date"),
        old => format!(
            "{shown} has {}, this rowlock needs {latest}: {} applies {}",
            if old == 0 {
                "no rowlock tables".to_owned()
            } else {
                format!("schema {old}")
            },
            setup.command("migrate up"),
            pending.join(", "),
        ),
    })?;
    for difference in drift {
        out::line(&format!("differs: {difference}"))?;
    }
    Ok(exit::OK)
}

async fn drift(rowlock: &Rowlock) -> Result<Vec<String>> {
    Ok(rowlock.operate().health().await?.drift)
}

/// Prints every migration; a flag alone says for which engine, so a broken configuration doesn't matter.
pub fn sql_of(global: &Global, part: Option<&str>, json: bool) -> Result<u8> {
    let store = match parse(global.url.as_deref().unwrap_or_default())? {
        Store::Postgres(mut address) => {
            address.schema = global.schema.clone().unwrap_or_default();
            Store::Postgres(address)
        }
        file => file,
    };
    sql(&store, part, json)
}

fn sql(store: &Store, part: Option<&str>, json: bool) -> Result<u8> {
    if let Some(part) = part {
        let text = match store {
            Store::Sqlite(_) => sqlite::part_sql(part)?,
            Store::Postgres(address) => postgres::part_sql(&address.schema, part),
        };
        let unknown = || {
            let why = format!(
                "{part:?} is nothing that can be made anew: write it as `rowlock doctor` does, as in \
                 --part 'index NAME'; a table comes back from a backup only"
            );
            exit::with(exit::NOT_FOUND, why)
        };
        let text = text.ok_or_else(unknown)?;
        match json {
            true => out::json(&json!({ "part": part, "sql": text }))?,
            false => out::lines(&text)?,
        }
        return Ok(exit::OK);
    }
    match store {
        Store::Sqlite(_) => {
            for step in MIGRATIONS {
                let (version, name, text) = (step.version, step.name, step.text());
                match json {
                    true => out::json(&json!({ "version": version, "name": name, "sql": text }))?,
                    false => out::lines(&format!("-- {name}\n{text}"))?,
                }
            }
        }
        Store::Postgres(address) => {
            let text = migration_sql(&address.schema);
            match json {
                true => out::json(&json!({ "version": postgres::LATEST, "sql": text }))?,
                false => out::lines(&text)?,
            }
        }
    }
    Ok(exit::OK)
}

/// Prints what each role may do, or makes it so.
async fn roles(address: &Address, how: &Roles, json: bool) -> Result<u8> {
    let roles = postgres::Roles {
        app: how.app.clone(),
        worker: how.worker.clone(),
        guard: how.guard.clone(),
        reader: how.reader.clone(),
    };
    if !how.run {
        let text = roles_sql(&address.schema, &roles);
        match json {
            true => out::json(&json!({ "sql": text }))?,
            false => out::lines(&text)?,
        }
        return Ok(exit::OK);
    }
    let refused = grant_roles(address, &roles).await?;
    for (task, role) in [
        ("app", &roles.app),
        ("worker", &roles.worker),
        ("reader", &roles.reader),
        ("guard", &roles.guard),
    ] {
        let granted = !refused.contains(role);
        if json {
            out::json(&json!({ "task": task, "role": role.as_str(), "granted": granted }))?;
        } else if granted {
            out::line(&format!("granted {task}  {}", role.as_str()))?;
        }
    }
    for role in refused {
        let role = role.as_str();
        out::warn(&format!(
            "{role} has no rights yet: a superuser may say GRANT pg_monitor, pg_signal_backend TO \
             \"{role}\""
        ));
    }
    Ok(exit::OK)
}
