//! The jobs of this process: claimed and ready, or running.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::attempt::{Ended, Order};
use crate::claim::ClaimedJob;
use crate::job::{JobId, Name, Token};

/// Ready jobs best first, running jobs by id, and how many of each queue.
#[derive(Debug, Default)]
pub(super) struct Local {
    ready: BTreeMap<Place, Arc<ClaimedJob>>,
    running: HashMap<JobId, Running>,
    settling: usize,
    /// Of these, the ones that their handlers completed in a transaction of their own.
    completed: HashSet<(JobId, Token)>,
}

/// The order of ready jobs: higher priority, then due earlier, then smaller id.
type Place = (std::cmp::Reverse<i16>, jiff::Timestamp, JobId);

#[derive(Debug)]
struct Running {
    job: Arc<ClaimedJob>,
    orders: Option<oneshot::Sender<Order>>,
}

fn place(job: &ClaimedJob) -> Place {
    (std::cmp::Reverse(job.priority), job.scheduled_at, job.id)
}

impl Local {
    pub(super) fn add(&mut self, jobs: Vec<ClaimedJob>) {
        for job in jobs {
            self.ready.insert(place(&job), Arc::new(job));
        }
    }

    /// The best ready job of a queue that has a free slot.
    pub(super) fn next(&mut self, limits: &BTreeMap<Name, usize>) -> Option<Arc<ClaimedJob>> {
        let place = self
            .ready
            .iter()
            .find(|(_, job)| {
                limits
                    .get(&job.queue)
                    .is_none_or(|limit| self.running_of(&job.queue) < *limit)
            })
            .map(|(place, _)| *place)?;
        self.ready.remove(&place)
    }

    pub(super) fn started(&mut self, job: Arc<ClaimedJob>, orders: oneshot::Sender<Order>) {
        let orders = Some(orders);
        self.running.insert(job.id, Running { job, orders });
    }

    /// A running job has ended; its verdict, if it has one, is on its way.
    pub(super) fn ended(&mut self, ended: &Ended) {
        let job = &ended.job;
        // The same job may run again under another claim by the time its dropped attempt reports.
        let is_current = |running: &Running| running.job.token == job.token;
        if self.running.get(&job.id).is_some_and(is_current) {
            self.running.remove(&job.id);
        }
        self.settling += usize::from(ended.settlement.is_some());
        if ended.completed && ended.settlement.is_some() {
            self.completed.insert((job.id, job.token));
        }
    }

    /// Whether a job whose verdict was answered had been completed by its handler.
    pub(super) fn completed(&mut self, id: JobId, token: Token) -> bool {
        self.completed.remove(&(id, token))
    }

    /// A claimed job is settled without having been ready.
    pub(super) fn refused(&mut self) {
        self.settling += 1;
    }

    /// A verdict was answered.
    pub(super) fn settled(&mut self, jobs: usize) {
        self.settling = self.settling.saturating_sub(jobs);
    }

    /// Takes jobs out that haven't started; their verdict is on its way.
    pub(super) fn take_ready(&mut self, ids: &[JobId]) -> Vec<Arc<ClaimedJob>> {
        let places: Vec<Place> = self
            .ready
            .keys()
            .filter(|(_, _, id)| ids.contains(id))
            .copied()
            .collect();
        let taken: Vec<_> = places
            .iter()
            .filter_map(|place| self.ready.remove(place))
            .collect();
        self.settling += taken.len();
        taken
    }

    pub(super) fn take_all_ready(&mut self) -> Vec<Arc<ClaimedJob>> {
        let taken: Vec<_> = std::mem::take(&mut self.ready).into_values().collect();
        self.settling += taken.len();
        taken
    }

    /// Ends a running job from outside.
    pub(super) fn order(&mut self, id: JobId, order: Order) {
        if let Some(orders) = self.running.get_mut(&id).and_then(|job| job.orders.take()) {
            // It may have ended by itself in this moment.
            let _ = orders.send(order);
        }
    }

    pub(super) fn order_all(&mut self, order: Order) {
        let ids: Vec<JobId> = self.running.keys().copied().collect();
        for id in ids {
            self.order(id, order);
        }
    }

    /// The lease is lost: ready jobs and verdicts on their way are nobody's any more.
    pub(super) fn forget(&mut self) {
        self.order_all(Order::Drop);
        self.ready.clear();
        self.running.clear();
        self.settling = 0;
        self.completed.clear();
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Verdicts on their way.
    pub(super) fn settling(&self) -> usize {
        self.settling
    }

    /// Everything that isn't settled.
    pub(super) fn held(&self) -> usize {
        self.ready.len() + self.running.len() + self.settling
    }

    pub(super) fn has_suspect(&self) -> bool {
        self.ready.values().any(|job| job.suspect)
            || self.running.values().any(|running| running.job.suspect)
    }

    fn running_of(&self, queue: &Name) -> usize {
        self.running
            .values()
            .filter(|running| running.job.queue == *queue)
            .count()
    }

    /// How many jobs of a queue are here.
    pub(super) fn here_of(&self, queue: &Name) -> usize {
        let ready = self.ready.values().filter(|job| job.queue == *queue);
        ready.count() + self.running_of(queue)
    }
}
