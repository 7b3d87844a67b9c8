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
use crate::job::{
    Backoff, JobId, JobState, KeySource, Kind, Name, Payload, Record, Retention, Token,
    idempotency_key,
};

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

/// A row of `claim_in_levels.sql`: the job, its place, and when it became ready.
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
    /// How far what was set aside has been brought back.
    pub(super) furthest: Option<Timestamp>,
    /// Kinds and queues that weren't looked at.
    pub(super) stopped: Vec<Name>,
    /// The store's own number, if something was taken.
    pub(super) store: Option<u64>,
}

enum Claimed {
    Leased(Leased),
    /// What the jobs that follow have in common.
    Shared,
    Summary(Summary),
}

/// What a claim has brought.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) leased: Vec<Leased>,
    pub(super) summary: Option<Summary>,
    level: Level,
}

impl Answer {
    /// Takes its next row.
    pub(super) fn add(&mut self, row: &Row, token: Token) -> Result<()> {
        match claimed(row, token, &mut self.level)? {
            Claimed::Leased(one) => self.leased.push(one),
            Claimed::Shared => {}
            Claimed::Summary(summary) => {
                for one in &mut self.leased {
                    if let KeySource::Row { store, .. } = &mut one.job.key {
                        *store = summary.store;
                    }
                }
                self.summary = Some(summary);
            }
        }
        Ok(())
    }
}

/// What the jobs of a level have in common is told once, before them.
#[derive(Default)]
struct Level {
    segment: Option<i16>,
    queue: Option<Name>,
    priority: i16,
    kind: Option<Name>,
    kinds: Vec<(Name, Backoff, Duration)>,
}

impl Level {
    fn hear(&mut self, row: &Row) -> Result<()> {
        let kind = known(&mut self.kind, get(row, 4)?);
        self.queue = Some(known(&mut self.queue, get(row, 5)?));
        self.segment = get(row, 0)?;
        self.priority = get::<Option<i16>>(row, 6)?.unwrap_or(0);
        if self.shared(&kind).is_none() {
            let backoff = backoff(row)?.unwrap_or_default();
            let timeout = span(row, 16)?.unwrap_or(Kind::DEFAULT_TIMEOUT);
            self.kinds.push((kind, backoff, timeout));
        }
        Ok(())
    }

    fn shared(&self, kind: &Name) -> Option<(Backoff, Duration)> {
        let (_, backoff, timeout) = self.kinds.iter().find(|(of, ..)| of == kind)?;
        Some((backoff.clone(), *timeout))
    }
}

/// The name that came last, if none or the same comes again.
fn known(last: &mut Option<Name>, text: Option<&str>) -> Name {
    match (&*last, text) {
        (Some(name), None) => name.clone(),
        (Some(name), Some(text)) if name.as_str() == text => name.clone(),
        (_, text) => last.insert(Name::stored(text.unwrap_or_default())).clone(),
    }
}

fn backoff(row: &Row) -> Result<Option<Backoff>> {
    let text: Option<&str> = get(row, 15)?;
    Ok(text.map(|text| serde_json::from_str(text).unwrap_or_default()))
}

fn claimed(row: &Row, token: Token, level: &mut Level) -> Result<Claimed> {
    let Some(id) = get::<Option<i64>>(row, 3)? else {
        let Some(now) = time(row, 10)? else {
            level.hear(row)?;
            return Ok(Claimed::Shared);
        };
        return Ok(Claimed::Summary(Summary {
            next_due: time(row, 2)?,
            now,
            look_aside: get::<Option<bool>>(row, 14)?.unwrap_or(false),
            suspects: get::<Option<i32>>(row, 8)? != Some(0),
            swept: get::<Option<i16>>(row, 6)? == Some(1),
            unsorted: get(row, 16)?,
            stopped: names(row, 12)?,
            store: get::<Option<&str>>(row, 7)?.and_then(|number| number.parse().ok()),
            lowest: time(row, 17)?,
            furthest: get::<Option<&str>>(row, 11)?
                .and_then(|micros| Timestamp::from_microsecond(micros.parse().ok()?).ok()),
        }));
    };
    let kind = known(&mut level.kind, get(row, 4)?);
    let shared = level.shared(&kind);
    let timeout = match &shared {
        Some((_, timeout)) => *timeout,
        None => span(row, 16)?.unwrap_or(Kind::DEFAULT_TIMEOUT),
    };
    let ready_at = time(row, 2)?.unwrap_or_default();
    Ok(Claimed::Leased(Leased {
        place: get(row, 1)?,
        ready_at,
        job: ClaimedJob {
            segment: level.segment,
            id: JobId(id),
            token,
            kind,
            queue: known(&mut level.queue, get(row, 5)?),
            priority: get::<Option<i16>>(row, 6)?.unwrap_or(level.priority),
            payload: Payload::stored(get(row, 7)?),
            attempt: number(row, 8)?,
            max_attempts: number(row, 9)?,
            scheduled_at: time(row, 10)?.unwrap_or(ready_at),
            unique_key: get(row, 11)?,
            tags: names(row, 12)?,
            trace_context: get(row, 13)?,
            suspect: get::<Option<bool>>(row, 14)?.unwrap_or(false),
            backoff: match backoff(row)? {
                Some(backoff) => backoff,
                None => shared.map(|(backoff, _)| backoff).unwrap_or_default(),
            },
            timeout,
            key: KeySource::Row {
                // The last row tells.
                store: None,
                created_at: time(row, 17)?.unwrap_or(ready_at),
            },
        },
    }))
}

pub(super) fn record(row: &Row, store: u64) -> Result<Record> {
    let (id, created_at) = (JobId(get(row, 0)?), time(row, 9)?.unwrap_or_default());
    Ok(Record {
        id,
        idempotency_key: Some(idempotency_key(store, id, created_at)),
        kind: name(row, 1)?,
        queue: name(row, 2)?,
        priority: get(row, 3)?,
        payload: Payload::stored(get(row, 4)?),
        state: state(row, 5)?,
        attempt: number(row, 6)?,
        max_attempts: number(row, 7)?,
        scheduled_at: time(row, 8)?.unwrap_or_default(),
        created_at,
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
