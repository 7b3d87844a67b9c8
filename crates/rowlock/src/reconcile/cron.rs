//! Crons: ticks that have come become jobs, each once, whoever fires them.

use std::time::Duration;

use jiff::Timestamp;

use crate::engine::{Applied, CronRow, Fire, Lead, Schedule};
use crate::error::{Error, Result};
use crate::event;
use crate::job::{Calendar, Cron, Name, Token, due};
use crate::log;
use crate::stage::Enqueued;

/// When a cron is tried again whose job's key an open transaction has.
const BLOCKED_PAUSE: Duration = Duration::from_secs(1);

/// Fires what is due by the engine's clock, and says how long it is until the next look; nothing when
/// there is none to wait for. A cron that can't be fired keeps no other from it.
///
/// # Errors
/// [`Error::LeaseLost`] once another process leads, and whatever keeps the store from answering.
pub async fn fire_due(
    schedule: &dyn Schedule,
    lead: &dyn Lead,
    token: Token,
) -> Result<Option<Duration>> {
    let (now, rows) = schedule.crons().await?;
    let mut soonest: Option<Timestamp> = None;
    for row in rows.iter().filter(|row| !row.paused) {
        let next = match fire_one(lead, token, row, now).await {
            Ok(Some(next)) => next,
            Ok(None) => {
                let why = blocked(&row.cron.name);
                #[cfg(feature = "test-hooks")]
                if crate::hooks::switched_off("cron.blocked_alone") {
                    return Err(why);
                }
                log::warn!(cron = %row.cron.name, %why, "a cron can't be fired yet");
                crate::clock::add(now, BLOCKED_PAUSE)
            }
            // It is tried again whenever crons are looked at.
            Err(why) if is_its_own(&why) => {
                log::warn!(cron = %row.cron.name, %why, "a cron can't be fired");
                event::cron_failed(&row.cron);
                continue;
            }
            Err(why) => return Err(why),
        };
        soonest = Some(soonest.map_or(next, |soonest| soonest.min(next)));
    }
    // A time that is past already means: at once.
    Ok(soonest.map(|next| now.duration_until(next).try_into().unwrap_or_default()))
}

/// Whether the cron itself is to blame, and not the store.
fn is_its_own(why: &Error) -> bool {
    matches!(
        why,
        Error::Invalid(_) | Error::InvalidAt { .. } | Error::NotFound(_)
    )
}

fn blocked(cron: &Name) -> Error {
    Error::Unavailable(format!(
        "an open transaction has the key of the job of cron {cron}, or is changing the cron"
    ))
}

/// Its next tick; nothing when an open transaction is in the way.
async fn fire_one(
    lead: &dyn Lead,
    token: Token,
    row: &CronRow,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    if row.next_at > now {
        return Ok(Some(row.next_at));
    }
    let cron = &row.cron;
    let found = due(&cron.calendar()?, row.next_at, now, cron.missed);
    let fired = lead
        .fire(Fire {
            cron: cron.clone(),
            token: Some(token),
            expected: row.next_at,
            ticks: found.ticks,
            next_at: found.next_at,
        })
        .await?;
    if fired.blocked {
        return Ok(None);
    }
    event::cron_fired(cron, &fired.ticks, found.missed);
    for (tick, job) in &fired.ticks {
        let (status, job) = (job.status.as_str(), job.id.map(|id| id.0));
        log::debug!(cron = %cron.name, %tick, status, job, "a cron has ticked");
    }
    if found.missed > 0 {
        let (missed, policy) = (found.missed, cron.missed.as_str());
        log::warn!(cron = %cron.name, missed, policy, "ticks were missed: nobody was there for them");
    }
    Ok(Some(found.next_at))
}

/// Writes crons; those that are there already only with `change`. New ones are due next from now on.
///
/// # Errors
/// [`Error::Invalid`] when a declaration breaks a rule; then none is written.
pub async fn declare_crons(
    schedule: &dyn Schedule,
    crons: &[Cron],
    change: bool,
) -> Result<Vec<Applied>> {
    if crons.is_empty() {
        return Ok(Vec::new());
    }
    let (now, _) = schedule.crons().await?;
    let mut timed = Vec::new();
    for cron in crons {
        timed.push((cron.clone(), next_of(&cron.calendar()?, now)));
    }
    schedule.declare_crons(&timed, change).await
}

/// Makes the job of a cron now, beside its ticks, also of one that is paused.
///
/// # Errors
/// [`Error::NotFound`] without such a cron, and as an enqueue of its job.
pub async fn run_cron_now(
    schedule: &dyn Schedule,
    lead: &dyn Lead,
    name: &Name,
) -> Result<Enqueued> {
    let (now, row) = find(schedule, name).await?;
    // A real tick is on the full minute: this one takes the place of none, nor of another by hand.
    for ms in 0..100 {
        let tick = crate::clock::add(now, Duration::from_millis(ms));
        if tick.subsec_nanosecond() == 0 {
            continue;
        }
        let by_hand = Fire {
            cron: row.cron.clone(),
            token: None,
            expected: row.next_at,
            ticks: vec![tick],
            next_at: row.next_at,
        };
        let fired = lead.fire(by_hand).await.map_err(Error::alone)?;
        if fired.blocked {
            return Err(blocked(name));
        }
        if let Some((_, job)) = fired.ticks.into_iter().next() {
            return Ok(job);
        }
    }
    Err(Error::Unavailable(format!(
        "cron {name} is being run by others at this very moment"
    )))
}

/// Lets a paused cron go on with its next tick from now: what it has missed meanwhile was not wanted.
/// Says when that is.
///
/// # Errors
/// [`Error::NotFound`] without such a cron.
pub async fn resume_cron(schedule: &dyn Schedule, name: &Name) -> Result<Timestamp> {
    let (now, row) = find(schedule, name).await?;
    // One that isn't paused may have ticks to make up for.
    if !row.paused {
        return Ok(row.next_at);
    }
    let next = next_of(&row.cron.calendar()?, now);
    schedule.pause_cron(name, Some(next)).await?;
    Ok(next)
}

async fn find(schedule: &dyn Schedule, name: &Name) -> Result<(Timestamp, CronRow)> {
    let (now, rows) = schedule.crons().await?;
    rows.into_iter()
        .find(|row| row.cron.name == *name)
        .map(|row| (now, row))
        .ok_or_else(|| Error::NotFound(format!("cron {name}")))
}

fn next_of(calendar: &Calendar, now: Timestamp) -> Timestamp {
    calendar.after(now).unwrap_or(Timestamp::MAX)
}
