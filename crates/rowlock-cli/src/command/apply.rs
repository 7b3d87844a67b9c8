//! `rowlock apply`: the kinds and crons of rowlock.toml become rows.

use anyhow::Result;
use rowlock::engine::Applied;

use crate::open::{Access, Setup};
use crate::{exit, out};

pub async fn run(setup: &Setup, json: bool) -> Result<u8> {
    let Some(file) = &setup.file else {
        return Err(exit::with(
            exit::USAGE,
            "there is no rowlock.toml in this folder to apply: `rowlock init` writes one, --config \
             names another",
        ));
    };
    let kinds = setup.config.kinds()?;
    let rowlock = setup.open(Access::Write).await?;
    if kinds.is_empty() && setup.config.crons()?.is_empty() {
        out::warn(&format!(
            "{} has no [handlers.NAME] and no [[cron]], so there was nothing to apply",
            file.display()
        ));
    }
    let applied = rowlock.operate().apply(&kinds).await?;
    let none = Vec::new();
    for (kind, done) in kinds.iter().zip(&applied) {
        let (status, differences) = match done {
            Applied::Added => ("added", &none),
            Applied::Changed(differences) => ("changed", differences),
            Applied::Unchanged => ("unchanged", &none),
        };
        if json {
            out::json(&serde_json::json!({
                "kind": kind.name, "status": status, "differences": differences,
            }))?;
        } else {
            let line = format!("{status:<9}  {}  {}", kind.name, differences.join(", "));
            out::line(line.trim_end())?;
        }
    }
    super::cron::apply(setup, &rowlock, json).await?;
    Ok(exit::OK)
}
