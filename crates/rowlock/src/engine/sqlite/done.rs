//! Settles what waits together. Most verdicts say that the work is done: those share a statement,
//! which costs half of what a statement for each would.

use std::collections::HashSet;
use std::fmt::Write;

use jiff::Timestamp;
use rusqlite::{Connection, params_from_iter};

use super::error::map;
use super::settle::{Terms, settle};
use super::statements::{Sql, sql};
use super::value::Value;
use crate::error::Result;
use crate::settle::{Settled, Settlement, Verdict};

/// Every verdict, each under its own fence.
pub(super) fn settle_all(
    connection: &Connection,
    settlements: &[Settlement],
    terms: Terms,
) -> Result<Vec<Settled>> {
    let mut asked = HashSet::new();
    // A second verdict on a job comes after the first: it waits for its own turn below.
    let together: Vec<bool> = settlements
        .iter()
        .map(|each| asked.insert(each.id.0) && is_done(each))
        .collect();
    let done = || {
        let both = settlements.iter().zip(&together);
        both.filter_map(|(each, together)| together.then_some(each))
    };
    let most = done().count();
    let mut ended = HashSet::new();
    if most > 0 {
        let now = terms.now.as_millisecond();
        let values = [list(done()).into(), now.into()];
        run(connection, sql!("settle_done"), values, &mut ended)?;
    }
    if ended.len() < most {
        let left = list(done().filter(|each| !ended.contains(&each.id.0)));
        let statement = sql!("settle_done_unkept");
        run(connection, statement, [left.into()], &mut ended)?;
    }
    let answer = |(each, together): (&Settlement, &bool)| match together {
        false => settle(connection, each, terms),
        true if ended.contains(&each.id.0) => Ok(Settled::Accepted),
        true => Ok(Settled::LeaseLost),
    };
    settlements.iter().zip(&together).map(answer).collect()
}

fn is_done(settlement: &Settlement) -> bool {
    matches!(settlement.verdict, Verdict::Done | Verdict::NotNeeded)
}

/// Numbers only, so that no text needs to be escaped.
fn list<'a>(settlements: impl Iterator<Item = &'a Settlement>) -> String {
    let mut text = String::from("[");
    for each in settlements {
        if text.len() > 1 {
            text.push(',');
        }
        let (id, token) = (each.id.0, each.token.get());
        // Writing to a string can't fail.
        let _ = match each.started_at.map(Timestamp::as_millisecond) {
            Some(started_at) => write!(text, "[{id},{token},{started_at}]"),
            None => write!(text, "[{id},{token},null]"),
        };
    }
    text.push(']');
    text
}

/// Adds the ids that the statement returns.
fn run<const N: usize>(
    connection: &Connection,
    statement: Sql,
    values: [Value<'_>; N],
    ended: &mut HashSet<i64>,
) -> Result<()> {
    let mut prepared = statement.on(connection)?;
    let ids = prepared
        .query_map(params_from_iter(values), |row| row.get(0))
        .map_err(|why| map(why, statement.name))?;
    for id in ids {
        ended.insert(id.map_err(|why| map(why, statement.name))?);
    }
    Ok(())
}
