//! `rowlock reconcile lift|remove`: keys and pairs that ticks are to forget.

use anyhow::Result;
use rowlock::Name;
use serde_json::{Value, json};

use super::{declared, the_one};
use crate::cli::Lift;
use crate::open::{Access, Setup};
use crate::{exit, out, show};

pub async fn lift(setup: &Setup, what: &Lift, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Write).await?;
    the_one(setup, &rowlock, &what.pair).await?;
    let keys = match what.all {
        true => None,
        false => Some(what.keys.iter().flat_map(|key| spellings(key)).collect()),
    };
    let lifted = rowlock.schedule().lift(&what.pair, keys).await?;
    if lifted == 0 && !what.all {
        let list = setup.command(&format!("reconcile list {}", what.pair));
        return Err(exit::with(
            exit::NOT_FOUND,
            format!(
                "pair {} holds none of these keys back: {list} shows which",
                what.pair
            ),
        ));
    }
    match json {
        true => out::json(&json!({ "pair": what.pair, "lifted": lifted }))?,
        false => out::line(&format!("lifted {}", show::count(lifted as u64)))?,
    }
    Ok(exit::OK)
}

/// How the store may have written what was typed: as it is, or as a key of one column.
pub fn spellings(typed: &str) -> Vec<String> {
    let mut all = vec![typed.to_owned()];
    match serde_json::from_str::<Value>(typed) {
        // Without the blanks that people put between.
        Ok(key @ Value::Array(_)) => all.push(key.to_string()),
        Ok(value) => all.push(json!([value]).to_string()),
        Err(_) => {}
    }
    all.push(json!([typed]).to_string());
    all.dedup();
    all
}

pub async fn remove(setup: &Setup, name: &Name, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Write).await?;
    the_one(setup, &rowlock, name).await?;
    rowlock.schedule().forget_pair(name).await?;
    match json {
        true => out::json(&json!({ "pair": name, "removed": true }))?,
        false => out::line(&format!("removed {name}"))?,
    }
    if declared(setup, name) {
        out::warn(&format!(
            "the configuration still has pair {name}: take it out, or the next worker and the next \
             `apply` bring it back"
        ));
    }
    Ok(exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_be_typed_as_it_is_shown_or_as_the_value_it_is() {
        for (typed, key) in [
            ("[7]", "[7]"),
            ("[\"a\", 3]", "[\"a\",3]"),
            ("7", "[7]"),
            ("7", "[\"7\"]"),
            ("ada@example.com", "[\"ada@example.com\"]"),
            ("\"7\"", "[\"7\"]"),
        ] {
            let all = spellings(typed);
            assert!(all.iter().any(|each| each == key), "{typed}: {all:?}");
        }
    }
}
