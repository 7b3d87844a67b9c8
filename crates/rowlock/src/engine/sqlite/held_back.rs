//! Keys that ticks leave alone: after a failure, after a cancellation, after work without an effect.

use std::collections::BTreeSet;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::error::map;
use super::health::all;
use super::settle::execute;
use super::stage::json;
use super::statements::sql;
use super::{pairs, row};
use crate::engine::HeldBack;
use crate::error::Result;
use crate::job::{JobId, JobState, Name, Token};

/// A job that is about to end without success, in the same transaction: of whatever retention keeps.
pub(super) fn hold(
    connection: &Connection,
    id: JobId,
    token: Option<Token>,
    state: JobState,
    now: Timestamp,
) -> Result<()> {
    if !matches!(state, JobState::Failed | JobState::Cancelled) {
        return Ok(());
    }
    let token = token.map(Token::get);
    let values = params![id.0, token, state.as_str(), now.as_millisecond()];
    execute(connection, sql!("hold_back"), values).map(|_| ())
}

pub(super) fn list(
    connection: &Connection,
    pair: &Name,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<HeldBack>> {
    pairs::must_exist(connection, pair)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = params![pair.as_str(), after.unwrap_or_default(), limit];
    all(connection, sql!("held_back"), values, |row| {
        Ok(HeldBack {
            key: row::text(row, 0)?.unwrap_or_default(),
            reason: row::text(row, 1)?.unwrap_or_default(),
            not_before: row::time(row, 2)?,
            n: row::number(row, 3)?,
        })
    })
}

/// Forgets keys; without a list all of them.
pub(super) fn lift(connection: &Connection, pair: &Name, keys: Option<&[String]>) -> Result<usize> {
    let lifted = match keys {
        None => sql!("lift_all").on(connection)?.execute([pair.as_str()]),
        Some(keys) => sql!("lift_some")
            .on(connection)?
            .execute(params![pair.as_str(), json(&keys)?]),
    };
    lifted.map_err(|why| map(why, "lift"))
}

pub(super) fn still_wanted(
    connection: &Connection,
    pair: &Name,
    keys: &[String],
    now: Timestamp,
) -> Result<u64> {
    pairs::must_exist(connection, pair)?;
    let mut note = sql!("still_wanted").on(connection)?;
    let mut ineffective = 0_u64;
    // A key that is named twice was asked about once.
    for key in keys.iter().collect::<BTreeSet<_>>() {
        let again: Option<bool> = note
            .query_row(params![pair.as_str(), key, now.as_millisecond()], |row| {
                row.get(0)
            })
            .optional()
            .map_err(|why| map(why, "still_wanted"))?;
        ineffective += u64::from(again == Some(true));
    }
    if ineffective > 0 {
        let values = params![
            pair.as_str(),
            i64::try_from(ineffective).unwrap_or(i64::MAX)
        ];
        execute(connection, sql!("pair_ineffective"), values)?;
    }
    Ok(ineffective)
}
