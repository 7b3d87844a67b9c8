//! What this process has claimed and not settled: where each row is, and since when.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use foldhash::fast::FixedState;

use super::lock;
use super::place::Place;
use crate::claim::WorkerId;
use crate::clock::Elapsed;
use crate::job::{JobId, Name, Token};

/// A row that has been running for so long is taken out of the ring.
const LONG: Duration = Duration::from_secs(10);
/// So many places of sent jobs are remembered at most; the others are found by their ids.
const MOST_SENT: usize = 100_000;
/// A claim that was given up may commit until then: a statement's patience, and that for a lock.
const LATEST: Duration = Duration::from_secs(20);

/// What jobs of one claim have in common that were taken from one segment, kind and queue. They end together.
#[derive(Debug)]
pub(super) struct Lot {
    /// Later lots have larger ones.
    pub(super) number: u64,
    /// None for a route's.
    pub(super) worker: Option<WorkerId>,
    pub(super) token: Token,
    /// In the ring; none for what was set aside before.
    pub(super) segment: Option<i16>,
    pub(super) kind: Name,
    pub(super) queue: Name,
    /// They hold unique keys.
    pub(super) keyed: bool,
    pub(super) since: Elapsed,
}

/// A claimed job.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) lot: Arc<Lot>,
    /// In the ring; none once it was set aside.
    pub(super) place: Option<Place>,
}

/// Where a claimed row was last seen.
pub(super) struct Spot {
    pub(super) lot: Arc<Lot>,
    pub(super) place: Place,
}

impl Held {
    fn is_of(&self, worker: &WorkerId) -> bool {
        self.lot.worker.as_ref() == Some(worker)
    }
}

/// Numbers of our own making: nobody can choose them so that they meet.
type ById<T> = HashMap<JobId, T, FixedState>;

#[derive(Debug, Default)]
pub(super) struct Holdings {
    jobs: Mutex<ById<Held>>,
    /// What routes have sent. Another process may settle it, so nothing but the way there hangs on this.
    sent: Mutex<ById<Held>>,
    lots: AtomicU64,
    doubt: Mutex<HashMap<WorkerId, Elapsed>>,
}

/// A claim under way. If its answer never arrives, the next heartbeat has to search for its rows.
pub(super) struct Asking<'a> {
    doubt: &'a Mutex<HashMap<WorkerId, Elapsed>>,
    worker: Option<WorkerId>,
    since: Elapsed,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("claim.doubt") {
            return;
        }
        if let Some(worker) = self.worker.take() {
            lock(self.doubt).insert(worker, self.since);
        }
    }
}

impl Asking<'_> {
    pub(super) fn answered(mut self) {
        self.worker = None;
    }
}

impl Holdings {
    pub(super) fn asking(&self, worker: Option<WorkerId>, now: Elapsed) -> Asking<'_> {
        Asking {
            doubt: &self.doubt,
            worker,
            since: now,
        }
    }

    /// Jobs were claimed.
    pub(super) fn add(&self, claimed: impl Iterator<Item = (JobId, Held)>) {
        lock(&self.jobs).extend(claimed);
    }

    /// Jobs were claimed for a route.
    pub(super) fn add_sent(&self, claimed: impl Iterator<Item = (JobId, Held)>) {
        let mut sent = lock(&self.sent);
        // Most of these were settled by others.
        if sent.len() >= MOST_SENT {
            sent.clear();
        }
        sent.extend(claimed.filter(|(_, held)| held.place.is_some()));
    }

    /// The number of another lot.
    pub(super) fn next_lot(&self) -> u64 {
        self.lots.fetch_add(1, Ordering::Relaxed)
    }

    /// Where claimed jobs were last seen.
    pub(super) fn spots<'a>(
        &self,
        claims: impl Iterator<Item = (&'a JobId, &'a Token)>,
    ) -> Vec<Option<Spot>> {
        let (sent, jobs) = (lock(&self.sent), lock(&self.jobs));
        let spot = |(id, token): (&JobId, &Token)| {
            let of_it = |held: &&Held| held.lot.token == *token;
            let sent = if sent.is_empty() { None } else { sent.get(id) };
            let held = sent.filter(of_it).or_else(|| jobs.get(id).filter(of_it))?;
            Some(Spot {
                place: held.place?,
                lot: Arc::clone(&held.lot),
            })
        };
        claims.map(spot).collect()
    }

    /// Verdicts were answered, whichever way.
    pub(super) fn settled<'a>(&self, claims: impl Iterator<Item = (&'a JobId, &'a Token)>) {
        let (mut sent, mut jobs) = (lock(&self.sent), lock(&self.jobs));
        for (id, token) in claims {
            if !forget(&mut sent, *id, *token) {
                forget(&mut jobs, *id, *token);
            }
        }
    }

    /// Whether rows may lie about under a worker's name that it doesn't hold.
    pub(super) fn must_search(&self, worker: &WorkerId, held: &[Token], now: Elapsed) -> bool {
        let stray = lock(&self.jobs)
            .values()
            .any(|job| job.is_of(worker) && !held.contains(&job.lot.token));
        let mut doubts = lock(&self.doubt);
        let since = doubts.get(worker).copied();
        // The server may still be at it.
        if since.is_some_and(|since| now.saturating_sub(since) >= LATEST) {
            doubts.remove(worker);
        }
        since.is_some() || stray
    }

    /// The search failed: it is still to be made.
    pub(super) fn doubt(&self, worker: &WorkerId, now: Elapsed) {
        lock(&self.doubt).insert(worker.clone(), now);
    }

    /// Only these tokens are still a worker's.
    pub(super) fn keep(&self, worker: &WorkerId, held: &[Token]) {
        lock(&self.jobs).retain(|_, job| !job.is_of(worker) || held.contains(&job.lot.token));
    }

    /// A worker is gone.
    pub(super) fn forget(&self, worker: &WorkerId) {
        self.keep(worker, &[]);
        lock(&self.doubt).remove(worker);
    }

    #[cfg(feature = "test-hooks")]
    pub(super) fn remembered(&self) -> [usize; 2] {
        [lock(&self.jobs).len(), lock(&self.doubt).len()]
    }

    /// A worker's jobs of kinds or queues that were stopped.
    pub(super) fn stopped(
        &self,
        worker: &WorkerId,
        kinds: &[String],
        queues: &[String],
    ) -> Vec<(JobId, Token)> {
        if kinds.is_empty() && queues.is_empty() {
            return Vec::new();
        }
        let jobs = lock(&self.jobs);
        let stopped = jobs.iter().filter(|(_, job)| {
            job.is_of(worker)
                && (kinds.iter().any(|kind| kind == job.lot.kind.as_str())
                    || queues.iter().any(|queue| queue == job.lot.queue.as_str()))
        });
        stopped.map(|(id, job)| (*id, job.lot.token)).collect()
    }

    /// A worker's jobs in the ring that have been running for long.
    pub(super) fn slow(&self, worker: &WorkerId, now: Elapsed) -> Vec<(JobId, Token)> {
        let jobs = lock(&self.jobs);
        let slow = jobs
            .iter()
            .filter(|(_, job)| job.is_of(worker) && job.place.is_some())
            .filter(|(_, job)| now.saturating_sub(job.lot.since) >= LONG);
        slow.map(|(id, job)| (*id, job.lot.token)).collect()
    }

    /// They were set aside.
    pub(super) fn moved(&self, ids: &[JobId]) {
        let mut jobs = lock(&self.jobs);
        for id in ids {
            if let Some(job) = jobs.get_mut(id) {
                job.place = None;
            }
        }
    }

    /// They are not where they were claimed, or may not be.
    pub(super) fn misplaced<'a>(&self, ids: impl Iterator<Item = &'a JobId>) {
        let (mut sent, mut jobs) = (lock(&self.sent), lock(&self.jobs));
        for id in ids {
            sent.remove(id);
            if let Some(job) = jobs.get_mut(id) {
                job.place = None;
            }
        }
    }
}

/// Whether it was there, under this claim.
fn forget(jobs: &mut ById<Held>, id: JobId, token: Token) -> bool {
    let Entry::Occupied(held) = jobs.entry(id) else {
        return false;
    };
    let of_it = held.get().lot.token == token;
    if of_it {
        held.remove();
    }
    of_it
}
