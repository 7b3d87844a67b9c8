//! Takes due jobs, lane by lane.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::error::map;
use super::row;
use super::statements::sql;
use crate::claim::{Claim, Claimed, ClaimedJob, QueueOrder, WorkerId};
use crate::error::{Error, Result};
use crate::job::Name;

/// Claims within the writer's transaction. `turn` rotates between queues, so that none waits for
/// another to run dry.
pub(super) fn claim(
    connection: &Connection,
    wanted: &Claim,
    now: Timestamp,
    turn: usize,
) -> Result<Claimed> {
    must_live(connection, &wanted.worker)?;
    let mut look = Look::new(connection, wanted, now)?;
    let mut queues = look.queues(turn)?;
    let mut answer = Claimed::default();
    let names: Vec<Name> = queues.iter().map(|queue| queue.name.clone()).collect();
    // First each queue's share, then whatever is left to those that have more.
    for last_round in [false, true] {
        for queue in &mut queues {
            let share = match last_round {
                false => wanted.order.share(&queue.name, &names, wanted.limit),
                true => wanted.limit,
            };
            let cap = wanted.caps.get(&queue.name).copied().unwrap_or(usize::MAX);
            let room = (wanted.limit - answer.jobs.len())
                .min(share)
                .min(cap.saturating_sub(queue.taken));
            let jobs = look.take(queue, room)?;
            queue.taken += jobs.len();
            answer.jobs.extend(jobs);
        }
    }
    answer.next_due = look.next_due;
    Ok(answer)
}

/// Whether anything is due, and when the next job will be; needs no write lock.
pub(super) fn peek(
    connection: &Connection,
    wanted: &Claim,
    now: Timestamp,
) -> Result<(bool, Option<Timestamp>)> {
    let mut look = Look::new(connection, wanted, now)?;
    for mut queue in look.queues(0)? {
        if !look.best_lanes(&mut queue)?.is_empty() {
            return Ok((true, None));
        }
    }
    Ok((false, look.next_due))
}

/// A worker that was given up must not claim: nobody would ever expire its rows.
pub(super) fn must_live(connection: &Connection, worker: &WorkerId) -> Result<()> {
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("claim.worker_must_live") {
        return Ok(());
    }
    let lives: bool = sql!("worker_lives")
        .on(connection)?
        .query_row([worker.as_str()], |row| row.get(0))
        .map_err(|why| map(why, "worker_lives"))?;
    if lives { Ok(()) } else { Err(Error::LeaseLost) }
}

struct Look<'a> {
    connection: &'a Connection,
    wanted: &'a Claim,
    now: Timestamp,
    stopped_kinds: BTreeSet<String>,
    stopped_queues: BTreeSet<String>,
    next_due: Option<Timestamp>,
}

/// A queue, and for each kind the priority below which its lanes haven't been looked at.
struct Queue {
    name: Name,
    taken: usize,
    below: BTreeMap<Name, i64>,
}

struct Lane {
    kind: Name,
    priority: i64,
    due: Timestamp,
}

impl<'a> Look<'a> {
    fn new(connection: &'a Connection, wanted: &'a Claim, now: Timestamp) -> Result<Self> {
        let mut look = Self {
            connection,
            wanted,
            now,
            stopped_kinds: BTreeSet::new(),
            stopped_queues: BTreeSet::new(),
            next_due: None,
        };
        let mut stopped = sql!("claim_stopped").on(connection)?;
        let rows = stopped
            .query_map([now.as_millisecond()], |row| {
                Ok((row::text(row, 0)?, row::text(row, 1)?.unwrap_or_default()))
            })
            .map_err(|why| map(why, "claim_stopped"))?;
        for found in rows {
            let (what, name) = found.map_err(|why| map(why, "claim_stopped"))?;
            match what.as_deref() {
                Some("kind") => look.stopped_kinds.insert(name),
                _ => look.stopped_queues.insert(name),
            };
        }
        Ok(look)
    }

    fn queues(&self, turn: usize) -> Result<Vec<Queue>> {
        let mut names = self.wanted.queues.clone();
        if names.is_empty() {
            names = self.queues_with_jobs()?;
        }
        names.retain(|name| !self.stopped_queues.contains(name.as_str()));
        if !names.is_empty() && self.wanted.order != QueueOrder::Strict {
            let first = turn % names.len();
            names.rotate_left(first);
        }
        let kinds = || {
            self.wanted
                .kinds
                .iter()
                .filter(|kind| !self.stopped_kinds.contains(kind.as_str()))
                .map(|kind| (kind.clone(), i64::MAX))
                .collect()
        };
        Ok(names
            .into_iter()
            .map(|name| Queue {
                name,
                taken: 0,
                below: kinds(),
            })
            .collect())
    }

    fn queues_with_jobs(&self) -> Result<Vec<Name>> {
        let mut next = sql!("claim_queues").on(self.connection)?;
        let mut names = Vec::new();
        let mut after = String::new();
        while let Some(found) = next
            .query_row([&after], |row| row::text(row, 0))
            .optional()
            .map_err(|why| map(why, "claim_queues"))?
            .flatten()
        {
            after.clone_from(&found);
            names.extend(Name::new(found));
        }
        Ok(names)
    }

    /// Takes up to `room` jobs of a queue: strictly by priority. Kinds of the same priority share,
    /// whose first job has waited longest goes first: no kind's backlog hides another's jobs.
    fn take(&mut self, queue: &mut Queue, room: usize) -> Result<Vec<ClaimedJob>> {
        let mut jobs = Vec::new();
        while jobs.len() < room {
            let lanes = self.best_lanes(queue)?;
            let before = jobs.len();
            for (n, lane) in lanes.iter().enumerate() {
                let share = (room - jobs.len()).div_ceil(lanes.len() - n);
                jobs.append(&mut self.take_lane(&queue.name, lane, share)?);
            }
            if jobs.len() == before {
                break;
            }
        }
        Ok(jobs)
    }

    /// The lanes of the highest priority that has due jobs, longest waiting first.
    fn best_lanes(&mut self, queue: &mut Queue) -> Result<Vec<Lane>> {
        let mut due = Vec::new();
        for (kind, below) in &mut queue.below {
            due.extend(self.due_lane(&queue.name, kind, below)?);
        }
        let highest = due.iter().map(|lane: &Lane| lane.priority).max();
        due.retain(|lane| Some(lane.priority) == highest);
        due.sort_by_key(|lane| lane.due);
        Ok(due)
    }

    /// The best lane of one kind that has a due job. Lanes without one are stepped over for good:
    /// time stands still during a claim.
    fn due_lane(&mut self, queue: &Name, kind: &Name, below: &mut i64) -> Result<Option<Lane>> {
        let mut head = sql!("claim_lane").on(self.connection)?;
        loop {
            let found = head
                .query_row(
                    params![queue.as_str(), kind.as_str(), self.wanted.suspect, *below],
                    |row| Ok((row::number(row, 0)?, row::time(row, 1)?.unwrap_or_default())),
                )
                .optional()
                .map_err(|why| map(why, "claim_lane"))?;
            let Some((priority, due)) = found else {
                return Ok(None);
            };
            if due <= self.now {
                return Ok(Some(Lane {
                    kind: kind.clone(),
                    priority,
                    due,
                }));
            }
            self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
            *below = priority;
        }
    }

    fn take_lane(&self, queue: &Name, lane: &Lane, limit: usize) -> Result<Vec<ClaimedJob>> {
        let mut update = sql!("claim").on(self.connection)?;
        let rows = update
            .query_map(
                params![
                    queue.as_str(),
                    lane.kind.as_str(),
                    self.wanted.suspect,
                    lane.priority,
                    self.now.as_millisecond(),
                    i64::try_from(limit).unwrap_or(i64::MAX),
                    self.wanted.worker.as_str(),
                    self.wanted.token.get(),
                ],
                row::claimed,
            )
            .map_err(|why| map(why, "claim"))?;
        let mut jobs = rows
            .collect::<rusqlite::Result<Vec<_>>>()
            .map_err(|why| map(why, "claim"))?;
        jobs.sort_by_key(|job| (job.scheduled_at, job.id));
        Ok(jobs)
    }
}
