//! Reads rows. A row that somebody else wrote badly must not stop a claim, so nothing here fails on
//! a value's content: bad text is read with replacement characters, bad JSON as its default.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use serde::de::DeserializeOwned;

use crate::claim::ClaimedJob;
use crate::job::{
    Backoff, JobId, JobState, KeySource, Kind, Name, Payload, Record, Retention, Token,
    idempotency_key,
};

type Read<T> = rusqlite::Result<T>;

pub(super) fn claimed(row: &Row<'_>) -> Read<ClaimedJob> {
    Ok(ClaimedJob {
        id: JobId(row.get(0)?),
        token: Token::stored(row.get(1)?),
        kind: name(row, 2)?,
        queue: name(row, 3)?,
        priority: number(row, 4)?,
        payload: Payload::stored(text(row, 5)?.unwrap_or_default()),
        attempt: number(row, 6)?,
        max_attempts: number(row, 7)?,
        scheduled_at: time(row, 8)?.unwrap_or_default(),
        unique_key: text(row, 9)?,
        tags: json(row, 10)?.unwrap_or_default(),
        trace_context: text(row, 11)?,
        suspect: row.get(12)?,
        backoff: json(row, 13)?.unwrap_or_default(),
        timeout: span(row, 14)?.unwrap_or(Kind::DEFAULT_TIMEOUT),
        segment: None,
        key: KeySource::Row {
            store: whole(row, 16)?.and_then(|store| u64::try_from(store).ok()),
            created_at: time(row, 15)?.unwrap_or_default(),
        },
    })
}

pub(super) fn record(row: &Row<'_>, store: Option<u64>) -> Read<Record> {
    let (id, created_at) = (JobId(row.get(0)?), time(row, 9)?.unwrap_or_default());
    Ok(Record {
        id,
        idempotency_key: store.map(|store| idempotency_key(store, id, created_at)),
        kind: name(row, 1)?,
        queue: name(row, 2)?,
        priority: number(row, 3)?,
        payload: Payload::stored(text(row, 4)?.unwrap_or_default()),
        state: state(row, 5)?,
        attempt: number(row, 6)?,
        max_attempts: number(row, 7)?,
        scheduled_at: time(row, 8)?.unwrap_or_default(),
        created_at,
        started_at: time(row, 10)?,
        finished_at: time(row, 11)?,
        unique_key: text(row, 12)?,
        tags: json(row, 13)?.unwrap_or_default(),
        trace_context: text(row, 14)?,
        errors: json(row, 15)?.unwrap_or_default(),
        locked_by: text(row, 16)?,
    })
}

pub(super) fn kind(row: &Row<'_>) -> Read<Kind> {
    let default = Retention::default();
    Ok(Kind {
        name: name(row, 0)?,
        queue: name(row, 1)?,
        priority: number(row, 2)?,
        max_attempts: number(row, 3)?,
        backoff: json::<Backoff>(row, 4)?.unwrap_or_default(),
        timeout: span(row, 5)?.unwrap_or(Kind::DEFAULT_TIMEOUT),
        key: json(row, 6)?.unwrap_or_default(),
        unique_until: text(row, 7)?
            .and_then(|text| text.parse().ok())
            .unwrap_or_default(),
        retention: Retention {
            completed: span(row, 8)?.unwrap_or(default.completed),
            failed: span(row, 9)?.unwrap_or(default.failed),
            cancelled: span(row, 10)?.unwrap_or(default.cancelled),
        },
    })
}

pub(super) fn text(row: &Row<'_>, at: usize) -> Read<Option<String>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Integer(n) => Some(n.to_string()),
        ValueRef::Real(n) => Some(n.to_string()),
    })
}

/// A name from the store. One that breaks the rule was written past the library: it is shown.
pub(super) fn name(row: &Row<'_>, at: usize) -> Read<Name> {
    Ok(Name::stored(text(row, at)?.unwrap_or_default()))
}

pub(super) fn state(row: &Row<'_>, at: usize) -> Read<JobState> {
    let text = text(row, at)?.unwrap_or_default();
    text.parse().map_err(|why: crate::error::Error| {
        rusqlite::Error::FromSqlConversionFailure(at, rusqlite::types::Type::Text, why.into())
    })
}

pub(super) fn time(row: &Row<'_>, at: usize) -> Read<Option<Timestamp>> {
    Ok(whole(row, at)?.map(|ms| {
        let edge = if ms < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        };
        Timestamp::from_millisecond(ms).unwrap_or(edge)
    }))
}

pub(super) fn span(row: &Row<'_>, at: usize) -> Read<Option<Duration>> {
    Ok(whole(row, at)?.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))))
}

pub(super) fn count(row: &Row<'_>, at: usize) -> Read<u64> {
    Ok(u64::try_from(whole(row, at)?.unwrap_or(0)).unwrap_or(0))
}

pub(super) fn number<T: TryFrom<i64> + Default>(row: &Row<'_>, at: usize) -> Read<T> {
    let n = whole(row, at)?.unwrap_or(0);
    Ok(T::try_from(n).unwrap_or_default())
}

/// An integer; anything else counts as nothing.
fn whole(row: &Row<'_>, at: usize) -> Read<Option<i64>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Integer(n) => Some(n),
        _ => None,
    })
}

pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> Read<Option<T>> {
    Ok(text(row, at)?.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Milliseconds as the store keeps them.
pub(super) fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
