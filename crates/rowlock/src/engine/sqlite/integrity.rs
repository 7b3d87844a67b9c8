//! What a checker asks: every job as it stands, and whether the file agrees with itself.

use jiff::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use super::health::all;
use super::row;
use super::statements::sql;
use crate::engine::fact::tick_twice;
use crate::engine::{Fact, Integrity};
use crate::error::Result;
use crate::job::{JobId, Token};

/// Up to `limit` rows by rising id. Both rows of a job that stands twice are on the same page.
pub(super) fn facts(
    connection: &Connection,
    after: Option<JobId>,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Fact>> {
    let limit = limit.max(2);
    let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    // Not 0: what somebody else wrote may have any number.
    let after = after.map_or(i64::MIN, |id| id.0);
    let values = params![after, now.as_millisecond(), most];
    let mut rows = all(connection, sql!("facts"), values, fact)?;
    if rows.len() > limit {
        let next = rows.last().map(|row| row.id);
        rows.retain(|row| Some(row.id) != next);
    }
    Ok(rows)
}

fn fact(row: &Row<'_>) -> rusqlite::Result<Fact> {
    Ok(Fact {
        id: JobId(row.get(0)?),
        live: row.get(1)?,
        state: row::state(row, 2).ok(),
        attempt: row::number(row, 3)?,
        max_attempts: row::number(row, 4)?,
        token: match row.get_ref(5)? {
            ValueRef::Integer(token) => Some(Token::stored(token)),
            _ => None,
        },
        locked_by: row::text(row, 6)?,
        due: row.get(7)?,
    })
}

/// Everything that is wrong with the file as a whole; nothing when it is well.
pub(super) fn integrity(connection: &Connection, now: Timestamp) -> Result<Integrity> {
    let word = |row: &Row<'_>, at| row::text(row, at).map(Option::unwrap_or_default);
    let mut wrong = all(connection, sql!("integrity"), [], |row| word(row, 0))?;
    wrong.retain(|line| line != "ok");
    if !wrong.is_empty() {
        return Ok(Integrity {
            store: wrong,
            ticks: None,
        });
    }
    wrong.extend(super::health::drift(connection, now)?);
    wrong.extend(all(connection, sql!("integrity_tally"), [], |row| {
        let (queue, state) = (word(row, 0)?, word(row, 1)?);
        let (counted, kept) = (word(row, 2)?, word(row, 3)?);
        Ok(format!(
            "queue {queue} counts {counted} {state} jobs and keeps {kept}"
        ))
    })?);
    wrong.extend(all(connection, sql!("integrity_keys"), [], |row| {
        let (kind, key, jobs) = (word(row, 0)?, word(row, 1)?, word(row, 2)?);
        Ok(format!(
            "{jobs} live jobs of kind {kind} hold the key {key}"
        ))
    })?);
    let ticks = all(connection, sql!("integrity_ticks"), [], |row| {
        let job = row.get::<_, Option<i64>>(2)?.map(JobId);
        Ok(tick_twice(
            &word(row, 0)?,
            row::time(row, 1)?,
            job,
            row.get(3)?,
        ))
    })?;
    Ok(Integrity {
        store: wrong,
        ticks: Some(ticks),
    })
}
