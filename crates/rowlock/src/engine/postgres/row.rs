//! Reads rows. A row that somebody else wrote badly must not stop a claim, so nothing here fails on
//! a value's content.

use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::error::map;
use super::place::Place;
use crate::claim::ClaimedJob;
use crate::error::Result;
use crate::job::{Backoff, JobId, JobState, Kind, Name, Payload, Record, Retention, Token};

/// A column's value.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T> {
    row.try_get(at).map_err(|why| map(&why, "reading a row"))
}

/// A time; one that our calendar doesn't have counts as its edge.
pub(super) fn time(row: &Row, at: usize) -> Result<Option<Timestamp>> {
    match row.try_get(at) {
        Ok(time) => Ok(time),
        Err(_) => Ok(Some(Timestamp::MAX)),
    }
}

/// A name from the store. One that breaks the rule was written past the library: it is shown.
pub(super) fn name(row: &Row, at: usize) -> Result<Name> {
    Ok(Name::stored(
        get::<Option<&str>>(row, at)?.unwrap_or_default(),
    ))
}

pub(super) fn state(row: &Row, at: usize) -> Result<JobState> {
    get::<String>(row, at)?.parse()
}

pub(super) fn count(row: &Row, at: usize) -> Result<u64> {
    Ok(u64::try_from(get::<Option<i64>>(row, at)?.unwrap_or(0)).unwrap_or(0))
}

pub(super) fn number(row: &Row, at: usize) -> Result<u32> {
    Ok(u32::try_from(get::<i32>(row, at)?).unwrap_or(0))
}

pub(super) fn span(row: &Row, at: usize) -> Result<Option<Duration>> {
    let ms: Option<i64> = get(row, at)?;
    Ok(ms.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))))
}

pub(super) fn names(row: &Row, at: usize) -> Result<Vec<Name>> {
    let names: Option<Vec<Option<String>>> = get(row, at)?;
    Ok(names
        .into_iter()
        .flatten()
        .flatten()
        .map(Name::stored)
        .collect())
}

pub(super) fn json<T: DeserializeOwned>(row: &Row, at: usize) -> Result<Option<T>> {
    let text: Option<String> = get(row, at)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// A row of `claim.sql`: the job, its place, and when it became ready.
pub(super) struct Leased {
    pub(super) job: ClaimedJob,
    pub(super) place: Option<Place>,
    pub(super) ready_at: Timestamp,
}

/// The last row of a claim.
pub(super) struct Summary {
    pub(super) next_due: Option<Timestamp>,
    pub(super) now: Timestamp,
    pub(super) look_aside: bool,
    pub(super) suspects: bool,
    pub(super) swept: bool,
    pub(super) unsorted: Option<i64>,
    /// The first place of what was brought back: it may be behind the bounds.
    pub(super) lowest: Option<Timestamp>,
    /// Kinds and queues that weren't looked at.
    pub(super) stopped: Vec<Name>,
}

pub(super) enum Claimed {
    Leased(Box<Leased>),
    Summary(Summary),
}

/// What the rows of a claim repeat is read once.
#[derive(Default)]
pub(super) struct Repeated {
    kind: Option<Name>,
    queue: Option<Name>,
    backoff: Option<(String, Backoff)>,
}

impl Repeated {
    fn backoff(&mut self, row: &Row, at: usize) -> Result<Backoff> {
        let Some(text) = get::<Option<&str>>(row, at)? else {
            return Ok(Backoff::default());
        };
        if let Some((of, backoff)) = &self.backoff
            && of == text
        {
            return Ok(backoff.clone());
        }
        let backoff: Backoff = serde_json::from_str(text).unwrap_or_default();
        self.backoff = Some((text.to_owned(), backoff.clone()));
        Ok(backoff)
    }
}

fn repeated_name(last: &mut Option<Name>, row: &Row, at: usize) -> Result<Name> {
    let text = get::<Option<&str>>(row, at)?.unwrap_or_default();
    match last {
        Some(name) if name.as_str() == text => Ok(name.clone()),
        _ => Ok(last.insert(Name::stored(text)).clone()),
    }
}

pub(super) fn claimed(row: &Row, token: Token, repeated: &mut Repeated) -> Result<Claimed> {
    let Some(id) = get::<Option<i64>>(row, 3)? else {
        return Ok(Claimed::Summary(Summary {
            next_due: time(row, 2)?,
            now: time(row, 10)?.unwrap_or_default(),
            look_aside: get::<Option<bool>>(row, 14)?.unwrap_or(false),
            suspects: get::<Option<i32>>(row, 8)? != Some(0),
            swept: get::<Option<i16>>(row, 6)? == Some(1),
            unsorted: get(row, 16)?,
            stopped: names(row, 12)?,
            lowest: time(row, 17)?,
        }));
    };
    Ok(Claimed::Leased(Box::new(Leased {
        place: get(row, 1)?,
        ready_at: time(row, 2)?.unwrap_or_default(),
        job: ClaimedJob {
            segment: get(row, 0)?,
            id: JobId(id),
            token,
            kind: repeated_name(&mut repeated.kind, row, 4)?,
            queue: repeated_name(&mut repeated.queue, row, 5)?,
            priority: get(row, 6)?,
            payload: Payload::stored(get(row, 7)?),
            attempt: number(row, 8)?,
            max_attempts: number(row, 9)?,
            scheduled_at: time(row, 10)?.unwrap_or_default(),
            unique_key: get(row, 11)?,
            tags: names(row, 12)?,
            trace_context: get(row, 13)?,
            suspect: get(row, 14)?,
            backoff: repeated.backoff(row, 15)?,
            timeout: span(row, 16)?.unwrap_or(Kind::DEFAULT_TIMEOUT),
        },
    })))
}

pub(super) fn record(row: &Row) -> Result<Record> {
    Ok(Record {
        id: JobId(get(row, 0)?),
        kind: name(row, 1)?,
        queue: name(row, 2)?,
        priority: get(row, 3)?,
        payload: Payload::stored(get(row, 4)?),
        state: state(row, 5)?,
        attempt: number(row, 6)?,
        max_attempts: number(row, 7)?,
        scheduled_at: time(row, 8)?.unwrap_or_default(),
        created_at: time(row, 9)?.unwrap_or_default(),
        started_at: time(row, 10)?,
        finished_at: time(row, 11)?,
        unique_key: get(row, 12)?,
        tags: names(row, 13)?,
        trace_context: get(row, 14)?,
        errors: json(row, 15)?.unwrap_or_default(),
        locked_by: get(row, 16)?,
    })
}

pub(super) fn kind(row: &Row) -> Result<Kind> {
    let default = Retention::default();
    let key: Vec<String> = get(row, 6)?;
    Ok(Kind {
        name: name(row, 0)?,
        queue: name(row, 1)?,
        priority: get(row, 2)?,
        max_attempts: number(row, 3)?,
        backoff: json::<Backoff>(row, 4)?.unwrap_or_default(),
        timeout: span(row, 5)?.unwrap_or(Kind::DEFAULT_TIMEOUT),
        key: key.into_iter().map(Name::stored).collect(),
        unique_until: get::<String>(row, 7)?.parse().unwrap_or_default(),
        retention: Retention {
            completed: span(row, 8)?.unwrap_or(default.completed),
            failed: span(row, 9)?.unwrap_or(default.failed),
            cancelled: span(row, 10)?.unwrap_or(default.cancelled),
        },
    })
}
