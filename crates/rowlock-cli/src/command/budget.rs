//! `rowlock budget`: how many transactions of a workload class may run at once.

use anyhow::Result;
use rowlock::engine::Applied;
use rowlock::guard::{Class, Rule};
use rowlock::{Error, Name, Rowlock};
use serde_json::{Value, json};

use super::cron::file_name;
use crate::cli::{Budget, BudgetSet};
use crate::open::{Access, Setup, Store};
use crate::show::{self, Table};
use crate::{exit, out};

pub async fn run(setup: &Setup, what: Budget, json: bool) -> Result<u8> {
    only_postgres(setup, "budget")?;
    match what {
        Budget::List => list(&setup.open(Access::Read).await?, setup, json).await,
        Budget::Set(how) => set(&setup.open(Access::Write).await?, how, json).await,
        Budget::Remove { class } => remove(&setup.open(Access::Write).await?, &class, json).await,
    }
}

/// Before anything is opened or made: a file has no sessions.
pub fn only_postgres(setup: &Setup, verb: &str) -> Result<()> {
    match &setup.store {
        Store::Postgres(_) => Ok(()),
        Store::Sqlite(_) => Err(exit::with(
            exit::USAGE,
            format!(
                "{verb} is for PostgreSQL only, and the store is a SQLite file, which has no sessions \
                 that could pin a horizon: write --url postgres://USER@HOST/DATABASE"
            ),
        )),
    }
}

async fn list(rowlock: &Rowlock, setup: &Setup, json: bool) -> Result<u8> {
    let classes = rowlock.watch().classes().await?;
    let mut table = Table::new(&["CLASS", "MAX", "MATCH"], &[1]);
    for class in &classes {
        match json {
            true => out::json(&shown(class))?,
            false => table.row(vec![
                class.name.to_string(),
                class.max.to_string(),
                members(class),
            ]),
        }
    }
    if classes.is_empty() {
        out::note(&format!(
            "there are no budgets yet: {} makes one",
            setup.command("budget set CLASS --max 1")
        ));
    } else if !json {
        out::lines(&table.lines())?;
    }
    Ok(exit::OK)
}

pub fn shown(class: &Class) -> Value {
    json!({ "class": class.name, "max": class.max, "match": class.rule })
}

/// Who belongs to it, in words.
fn members(class: &Class) -> String {
    let Rule {
        application_name,
        role,
        tag,
    } = &class.rule;
    let tag = match (application_name, role, tag) {
        (None, None, None) => Some(&class.name),
        (_, _, tag) => tag.as_ref(),
    };
    let parts = [
        application_name
            .as_ref()
            .map(|name| format!("application_name = {name}")),
        role.as_ref().map(|role| format!("role = {role}")),
        tag.map(|tag| format!("/* class:{tag} */")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    show::text(&parts.join(", "))
}

async fn set(rowlock: &Rowlock, how: BudgetSet, json: bool) -> Result<u8> {
    let watch = rowlock.watch();
    let stored = watch.classes().await?;
    let old = stored.into_iter().find(|class| class.name == how.class);
    let mut rule = old.map(|class| class.rule).unwrap_or_default();
    rule.application_name = how.application_name.or(rule.application_name);
    rule.role = how.role.or(rule.role);
    rule.tag = how.tag.or(rule.tag);
    let class = Class::with(how.class, how.max, rule)?;
    watch.declare_class(&class).await?;
    match json {
        true => out::json(&shown(&class))?,
        false => out::line(&format!(
            "set {}  max {}  {}",
            class.name,
            class.max,
            members(&class)
        ))?,
    }
    Ok(exit::OK)
}

async fn remove(rowlock: &Rowlock, class: &Name, json: bool) -> Result<u8> {
    if !rowlock.watch().forget_class(class).await? {
        return Err(Error::NotFound(format!("a budget of class {class}")).into());
    }
    match json {
        true => out::json(&json!({ "class": class, "status": "removed" }))?,
        false => out::line(&format!("removed {class}"))?,
    }
    Ok(exit::OK)
}

/// Writes the budgets of the configuration; `say` tells what became of each.
pub async fn apply(
    setup: &Setup,
    rowlock: &Rowlock,
    json: bool,
    say: impl Fn(&Name, &Applied) -> Result<()>,
) -> Result<()> {
    let classes = setup.config.classes()?;
    if matches!(setup.store, Store::Sqlite(_)) {
        return Ok(());
    }
    let watch = rowlock.watch();
    for class in &classes {
        say(&class.name, &watch.declare_class(class).await?)?;
    }
    for old in watch.classes().await? {
        let name = &old.name;
        if classes.iter().any(|class| class.name == *name) {
            continue;
        }
        let remedy = setup.line(&format!("budget remove {name}"));
        match json {
            true => {
                out::json(&json!({ "budget": name, "status": "undeclared", "remedy": remedy }))?
            }
            false => out::line(&format!(
                "budget {name} is not in {} and still holds; `{remedy}` ends it",
                file_name(setup)
            ))?,
        }
    }
    Ok(())
}
