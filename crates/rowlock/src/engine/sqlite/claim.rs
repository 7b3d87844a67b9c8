//! Takes due jobs, lane by lane.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::error::map;
use super::lane::{self, Routed, Stopped};
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
    stopped: Stopped,
    routed: Routed,
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
        Ok(Self {
            connection,
            wanted,
            now,
            stopped: Stopped::read(connection, now)?,
            routed: Routed::read(connection)?,
            next_due: None,
        })
    }

    fn queues(&self, turn: usize) -> Result<Vec<Queue>> {
        let mut names = self.wanted.queues.clone();
        if names.is_empty() {
            names = lane::queues(self.connection)?;
        }
        names.retain(|name| !self.stopped.queues.contains(name.as_str()));
        let mut queues = Vec::with_capacity(names.len());
        for name in names {
            let kinds = self.kinds(&name)?;
            let below: BTreeMap<_, _> = kinds.into_iter().map(|kind| (kind, i64::MAX)).collect();
            if !below.is_empty() {
                let taken = 0;
                queues.push(Queue { name, taken, below });
            }
        }
        if !queues.is_empty() && self.wanted.order != QueueOrder::Strict {
            let first = turn % queues.len();
            queues.rotate_left(first);
        }
        Ok(queues)
    }

    /// The kinds of a queue that go the way of this claim.
    fn kinds(&self, queue: &Name) -> Result<Vec<Name>> {
        let route = self.wanted.route.as_ref().map(Name::as_str);
        let mut kinds = match route {
            Some(route) if self.wanted.kinds.is_empty() => {
                match self.routed.of_queue(queue) == Some(route) {
                    true => lane::kinds(self.connection, queue)?,
                    false => self.routed.kinds_of(route),
                }
            }
            _ => self.wanted.kinds.clone(),
        };
        kinds.retain(|kind| {
            !self.stopped.kinds.contains(kind.as_str()) && self.routed.of(queue, kind) == route
        });
        Ok(kinds)
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
        let suspect = self.wanted.suspect;
        while let Some((priority, due)) = lane::head(self.connection, queue, kind, suspect, *below)?
        {
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
        Ok(None)
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
