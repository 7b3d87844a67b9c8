//! Leases: join, heartbeat, leave, and what becomes of the rows of the dead.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::error::map;
use super::row;
use super::settle::{Terms, again, execute, finish, settle};
use super::stage::json;
use super::statements::sql;
use crate::claim::{Expired, Heartbeat, Observer, WorkerId};
use crate::clock::{self, Elapsed};
use crate::error::{Error, Result};
use crate::job::{Backoff, ErrorKind, JobError, JobId, JobState, Token};
use crate::settle::{Settlement, UNWRITTEN, Verdict};

pub(super) fn join(
    connection: &Connection,
    worker: &WorkerId,
    lease: Duration,
    now: Timestamp,
) -> Result<()> {
    let values = params![worker.as_str(), row::ms(lease), now.as_millisecond()];
    execute(connection, sql!("join"), values).map(|_| ())
}

pub(super) fn heartbeat(
    connection: &Connection,
    worker: &WorkerId,
    held: &[Token],
    terms: Terms,
) -> Result<Heartbeat> {
    let me = worker.as_str();
    let now = terms.now.as_millisecond();
    if !execute(connection, sql!("heartbeat"), params![me, now])? {
        return Err(Error::LeaseLost);
    }
    crash_point!("heartbeat.beaten");
    let mut answer = Heartbeat {
        released: sql!("heartbeat_release")
            .on(connection)?
            .execute(params![me, json(&held)?])
            .map_err(|why| map(why, "heartbeat_release"))?,
        ..Heartbeat::default()
    };
    let mut asked = sql!("heartbeat_asked").on(connection)?;
    let rows = asked
        .query_map(params![me, now], |row| {
            let token = Token::stored(row.get(2)?);
            Ok((JobId(row.get(0)?), token, row.get::<_, bool>(1)?))
        })
        .map_err(|why| map(why, "heartbeat_asked"))?;
    let rows: Vec<_> = rows
        .collect::<rusqlite::Result<_>>()
        .map_err(|why| map(why, "heartbeat_asked"))?;
    for (id, token, wants_cancel) in rows {
        match wants_cancel {
            true if held.contains(&token) => answer.cancel_requested.push(id),
            // Nobody runs it: the claim's answer was lost.
            true => cancel_held(connection, id, token, terms, &mut answer.released)?,
            false => answer.stopped.push(id),
        }
    }
    Ok(answer)
}

fn cancel_held(
    connection: &Connection,
    id: JobId,
    token: Token,
    terms: Terms,
    count: &mut usize,
) -> Result<()> {
    let verdict = Verdict::Cancelled;
    let settlement = Settlement {
        id,
        token,
        verdict,
        started_at: None,
    };
    *count += usize::from(finish(
        connection,
        &settlement,
        JobState::Cancelled,
        None,
        terms,
    )?);
    Ok(())
}

pub(super) fn start_suspect(
    connection: &Connection,
    worker: &WorkerId,
    id: JobId,
    token: Token,
) -> Result<()> {
    let values = params![worker.as_str(), id.0, token.get()];
    match execute(connection, sql!("start_suspect"), values)? {
        true => Ok(()),
        false => Err(Error::LeaseLost),
    }
}

pub(super) fn leave(connection: &Connection, worker: &WorkerId, terms: Terms) -> Result<()> {
    let mut cancelled = 0;
    for job in held(connection, worker)? {
        if job.cancel_requested {
            let Settlement { id, token, .. } = job.settlement;
            cancel_held(connection, id, token, terms, &mut cancelled)?;
        }
    }
    execute(connection, sql!("leave_release"), [worker.as_str()])?;
    crash_point!("leave.released");
    execute(connection, sql!("leave"), [worker.as_str()]).map(|_| ())
}

struct Sample {
    worker: WorkerId,
    beat: i64,
    lease: Duration,
    seen_at: Timestamp,
    suspect: Option<(i64, i64)>,
}

/// Who was found dead, and what was seen of everybody.
#[derive(Default)]
pub(super) struct Dead {
    samples: Vec<Sample>,
    workers: Vec<WorkerId>,
    doubted: usize,
}

impl Dead {
    /// Between finding and burying.
    pub(super) fn crash_point(&self) {
        if !self.workers.is_empty() {
            crash_point!("expire.found");
        }
    }
}

/// Finds the dead. Burying them needs the same write lock: nobody may come back in between.
pub(super) fn find_dead(
    connection: &Connection,
    observer: &mut Observer,
    elapsed: Elapsed,
    now: Timestamp,
) -> Result<Dead> {
    let samples = sample(connection)?;
    let beats: Vec<_> = samples
        .iter()
        .map(|sample| (sample.worker.clone(), sample.beat, sample.lease))
        .collect();
    #[cfg_attr(
        not(feature = "test-hooks"),
        expect(unused_mut, reason = "for mutants")
    )]
    let mut workers = observer.sample((elapsed, elapsed), &beats);
    let seems_silent = |sample: &&Sample| clock::add(sample.seen_at, sample.lease) < now;
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("expire.by_counter") {
        workers = samples
            .iter()
            .filter(seems_silent)
            .map(|sample| sample.worker.clone())
            .collect();
    }
    let doubted = samples
        .iter()
        .filter(seems_silent)
        .filter(|sample| !workers.contains(&sample.worker))
        .count();
    Ok(Dead {
        samples,
        workers,
        doubted,
    })
}

/// Gives back what the dead held, and what nobody holds.
pub(super) fn bury(connection: &Connection, dead: Dead, terms: Terms) -> Result<Expired> {
    let Dead {
        samples,
        workers,
        doubted,
    } = dead;
    let mut expired = Expired {
        doubted,
        ..Expired::default()
    };
    for stray in strays(connection)? {
        // Its worker was removed: no heartbeat comes for these rows.
        give_back(connection, &stray, None, terms, &mut expired)?;
    }
    let is_dead = |sample: &&Sample| workers.contains(&sample.worker);
    for Sample {
        worker, suspect, ..
    } in samples.iter().filter(is_dead)
    {
        let all = give_back(connection, worker, *suspect, terms, &mut expired)?;
        crash_point!("expire.given_back");
        if all {
            execute(connection, sql!("leave"), [worker.as_str()])?;
            expired.workers.push(worker.clone());
        }
    }
    expired.shortest_lease = samples.iter().map(|sample| sample.lease).min();
    Ok(expired)
}

/// Holders of rows that aren't in the worker table.
fn strays(connection: &Connection) -> Result<Vec<WorkerId>> {
    let mut read = sql!("expire_strays").on(connection)?;
    let rows = read
        .query_map([], |row| {
            Ok(WorkerId::stored(row::text(row, 0)?.unwrap_or_default()))
        })
        .map_err(|why| map(why, "expire_strays"))?;
    rows.collect::<rusqlite::Result<_>>()
        .map_err(|why| map(why, "expire_strays"))
}

fn sample(connection: &Connection) -> Result<Vec<Sample>> {
    let mut read = sql!("expire_sample").on(connection)?;
    let rows = read
        .query_map([], |row| {
            let suspect: (Option<i64>, Option<i64>) = (row.get(4)?, row.get(5)?);
            Ok(Sample {
                worker: WorkerId::stored(row::text(row, 0)?.unwrap_or_default()),
                beat: row.get(1)?,
                lease: row::span(row, 2)?.unwrap_or_default(),
                seen_at: row::time(row, 3)?.unwrap_or_default(),
                suspect: suspect.0.zip(suspect.1),
            })
        })
        .map_err(|why| map(why, "expire_sample"))?;
    rows.collect::<rusqlite::Result<_>>()
        .map_err(|why| map(why, "expire_sample"))
}

struct Held {
    settlement: Settlement,
    attempt: u32,
    max_attempts: u32,
    cancel_requested: bool,
    backoff: Backoff,
    /// Whether its last error says that it can't be given back.
    noted: bool,
}

fn held(connection: &Connection, worker: &WorkerId) -> Result<Vec<Held>> {
    let mut read = sql!("expire_held").on(connection)?;
    let rows = read
        .query_map([worker.as_str()], |row| {
            Ok(Held {
                settlement: Settlement {
                    id: JobId(row.get(0)?),
                    token: Token::stored(row.get(1)?),
                    verdict: Verdict::Release,
                    started_at: None,
                },
                attempt: row::number(row, 2)?,
                max_attempts: row::number(row, 3)?,
                cancel_requested: row.get(4)?,
                backoff: row::text(row, 5)?
                    .and_then(|text| serde_json::from_str(&text).ok())
                    .unwrap_or_default(),
                noted: row::text(row, 6)?.is_some_and(|last| last.starts_with(UNWRITTEN)),
            })
        })
        .map_err(|why| map(why, "expire_held"))?;
    rows.collect::<rusqlite::Result<_>>()
        .map_err(|why| map(why, "expire_held"))
}

/// Gives back what a dead worker held; whether nothing is left. A row that a trigger or a constraint of others refuses
/// stays, with the reason among its errors, and keeps no other.
fn give_back(
    connection: &Connection,
    dead: &WorkerId,
    suspect: Option<(i64, i64)>,
    terms: Terms,
    expired: &mut Expired,
) -> Result<bool> {
    let jobs = held(connection, dead)?;
    let one = |job: &Held| give_back_one(connection, job, dead, suspect, terms);
    let all = whole(connection, || {
        jobs.iter().map(one).collect::<Result<Vec<_>>>()
    })?;
    #[cfg(feature = "test-hooks")]
    if let Err(why) = &all
        && crate::hooks::switched_off("expire.one_by_one")
    {
        return Err(why.clone());
    }
    let (given_back, refused) = match all {
        Ok(given_back) => (given_back, false),
        Err(_) => {
            let (mut given_back, mut refused) = (Vec::new(), false);
            for job in &jobs {
                match whole(connection, || one(job))? {
                    Ok(state) => given_back.push(state),
                    Err(why) => {
                        refused = true;
                        note_refusal(connection, job, &why, terms)?;
                    }
                }
            }
            (given_back, refused)
        }
    };
    for state in given_back {
        match state.is_terminal() {
            true => expired.ended += 1,
            false => expired.returned += 1,
        }
    }
    Ok(!refused)
}

/// Does all of something or nothing. The inner error is what the store refuses for good.
fn whole<T>(
    connection: &Connection,
    deed: impl FnOnce() -> Result<T>,
) -> Result<std::result::Result<T, Error>> {
    let say = |sql: &str| {
        connection
            .execute_batch(sql)
            .map_err(|why| map(why, "giving back"))
    };
    say("SAVEPOINT given_back")?;
    match deed() {
        Ok(done) => {
            say("RELEASE given_back")?;
            Ok(Ok(done))
        }
        Err(why @ (Error::Bug(_) | Error::Invalid(_))) => {
            say("ROLLBACK TO given_back; RELEASE given_back")?;
            Ok(Err(why))
        }
        Err(why) => Err(why),
    }
}

/// Says once in its row why a job can't be given back.
fn note_refusal(connection: &Connection, job: &Held, why: &Error, terms: Terms) -> Result<()> {
    if job.noted {
        return Ok(());
    }
    let text = format!("{UNWRITTEN}: {why}");
    let error = JobError::new(job.attempt, terms.now, ErrorKind::Error, &text);
    let (id, token) = (job.settlement.id, job.settlement.token);
    let note = Settlement::unbegun(id, token, Verdict::Note(error));
    settle(connection, &note, terms).map(drop)
}

/// What became of it.
fn give_back_one(
    connection: &Connection,
    job: &Held,
    dead: &WorkerId,
    suspect: Option<(i64, i64)>,
    terms: Terms,
) -> Result<JobState> {
    let settlement = &job.settlement;
    if job.cancel_requested {
        finish(connection, settlement, JobState::Cancelled, None, terms)?;
        return Ok(JobState::Cancelled);
    }
    // Only the suspect that had really begun pays for the death of its process.
    let pays = suspect == Some((settlement.id.0, settlement.token.get()));
    #[cfg(feature = "test-hooks")]
    let pays = pays || crate::hooks::switched_off("expire.give_attempts_back");
    if !pays {
        again(connection, settlement, None, true, Some(true), None, terms)?;
        return Ok(JobState::Pending);
    }
    let why = format!("worker {dead} died while it ran this job");
    let error = JobError::new(job.attempt, terms.now, ErrorKind::Lease, &why);
    let error = Some(&error);
    if job.attempt >= job.max_attempts {
        finish(connection, settlement, JobState::Failed, error, terms)?;
        return Ok(JobState::Failed);
    }
    let at = clock::add(terms.now, job.backoff.wait_with_jitter(job.attempt));
    let (at, marked) = (Some(at), Some(true));
    again(connection, settlement, at, false, marked, error, terms)?;
    Ok(JobState::Pending)
}
