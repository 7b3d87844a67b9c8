//! Unique keys whose jobs are gone: named, and removed by `doctor --mend keys`.

use anyhow::Result;
use rowlock::engine::postgres::{Address, OrphanedKey, free_keys, orphaned_keys};
use serde_json::json;

use super::{Finding, Level, finding};
use crate::open::{Setup, Store};
use crate::{exit, out, show};

/// How many are shown.
const SHOWN: usize = 5;
/// The longest key that is shown whole.
const LONGEST: usize = 80;

pub async fn look(setup: &Setup, address: &Address) -> Result<Option<Finding>> {
    let keys = orphaned_keys(address).await?;
    if keys.is_empty() {
        return Ok(None);
    }
    let what = format!(
        "{}, so that an enqueue with one is answered duplicate: {}",
        held(keys.len()),
        some(&keys)
    );
    let remedy = setup.line("doctor --mend keys");
    Ok(Some(finding("R036", Level::Error, what, remedy)))
}

pub async fn mend(setup: &Setup, yes: bool, json: bool) -> Result<u8> {
    let address = match &setup.store {
        Store::Postgres(address) => address,
        Store::Sqlite(_) => {
            let why = "a file keeps a key in the row of its job: none can be left behind";
            return said(0, why, json);
        }
    };
    let keys = orphaned_keys(address).await?;
    if keys.is_empty() {
        return said(0, "no key is held for a job that is gone", json);
    }
    let question = format!("{}: {}. This removes them.", held(keys.len()), some(&keys));
    out::confirm(&question, yes, "nothing was removed")?;
    let freed = free_keys(address, &keys).await?;
    let words = match freed {
        1 => "removed 1 key".to_owned(),
        freed => format!("removed {} keys", show::count(freed)),
    };
    said(freed, &words, json)
}

fn said(removed: u64, words: &str, json: bool) -> Result<u8> {
    match json {
        true => out::json(&json!({ "removed": removed }))?,
        false => out::line(words)?,
    }
    Ok(exit::OK)
}

fn held(keys: usize) -> String {
    match keys {
        1 => "1 unique key is held for a job that is gone".to_owned(),
        keys => format!(
            "{} unique keys are held for jobs that are gone",
            show::count(keys as u64)
        ),
    }
}

fn some(keys: &[OrphanedKey]) -> String {
    let shown = keys.iter().take(SHOWN).map(|each| {
        let key: String = each.key.chars().take(LONGEST).collect();
        let (kind, key) = (show::text(&each.kind), show::text(&key));
        format!("{key} of {kind} (job {})", each.job)
    });
    let mut shown: Vec<String> = shown.collect();
    if keys.len() > SHOWN {
        shown.push(format!(
            "and {} more",
            show::count((keys.len() - SHOWN) as u64)
        ));
    }
    shown.join(", ")
}
