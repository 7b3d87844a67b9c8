//! What this process holds, and what answers for it: a claim under way, the local queue, a slot, or the settle queue.
//!
//! The shift fills it and its slots take from it. The heartbeat renews the tokens that are in here and no other, so that a
//! lease is kept only by what lives: whatever ends without an answer takes its entry along.

mod hold;

pub(super) use hold::{Asked, Hold};

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::FixedState;
use tokio::sync::{Notify, mpsc, oneshot};

use super::attempt::{Ended, Order};
use crate::claim::{ClaimedJob, WorkerId};
use crate::job::{JobId, Name, Token};
use crate::settle::Answer;

/// The claims under way, ready jobs best first, running jobs by id, and verdicts on their way.
#[derive(Debug)]
pub(super) struct Registry {
    state: Mutex<State>,
    /// A heartbeat releases rows under any other token. A claim that is sent between the moment the tokens were read and
    /// the heartbeat's answer would be released by mistake; so claims begin, and heartbeats run, only with the gate.
    pub(super) gate: tokio::sync::Mutex<()>,
    /// Wakes slots that found nothing.
    work: Notify,
    /// How many jobs of a queue may run at once.
    limits: BTreeMap<Name, usize>,
}

#[derive(Debug)]
struct State {
    /// Who claims at present.
    worker: Arc<WorkerId>,
    /// Claims that were not answered yet.
    asked: HashSet<Token>,
    ready: BTreeMap<Place, Arc<ClaimedJob>>,
    running: HashMap<JobId, Running, FixedState>,
    /// Jobs that have ended and weren't reported to the shift yet.
    ending: usize,
    /// Jobs whose verdicts are on their way, by their claim, and all of them.
    unsettled: HashMap<Token, usize, FixedState>,
    settling: usize,
    /// Jobs whose slot ended without a word.
    orphaned: Vec<Arc<ClaimedJob>>,
    /// Slots without a job, and all of them.
    idle: usize,
    slots: usize,
    /// No further job starts.
    closed: bool,
    /// Of the unsettled, the ones that their handlers completed in a transaction of their own.
    completed: HashSet<(JobId, Token)>,
}

/// The order of ready jobs: higher priority, then due earlier, then smaller id.
type Place = (std::cmp::Reverse<i16>, jiff::Timestamp, JobId);

#[derive(Debug)]
struct Running {
    job: Arc<ClaimedJob>,
    orders: Option<oneshot::Sender<Order>>,
}

/// What a slot does after a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    /// It has woken the shift, which may wait for this very thread.
    MakeWay,
    /// Others have taken its place, or nobody listens.
    End,
}

/// What a slot takes: a job, under whose claim, and what may end it from outside.
pub(super) struct Taken {
    pub(super) job: Arc<ClaimedJob>,
    pub(super) worker: Arc<WorkerId>,
    pub(super) orders: oneshot::Receiver<Order>,
}

fn place(job: &ClaimedJob) -> Place {
    (std::cmp::Reverse(job.priority), job.scheduled_at, job.id)
}

impl Registry {
    pub(super) fn new(worker: WorkerId, limits: BTreeMap<Name, usize>) -> Self {
        let state = State {
            worker: Arc::new(worker),
            asked: HashSet::new(),
            ready: BTreeMap::new(),
            running: HashMap::default(),
            ending: 0,
            unsettled: HashMap::default(),
            settling: 0,
            orphaned: Vec::new(),
            idle: 0,
            slots: 0,
            closed: false,
            completed: HashSet::new(),
        };
        Self {
            state: Mutex::new(state),
            gate: tokio::sync::Mutex::default(),
            work: Notify::new(),
            limits,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every token that something here answers for.
    pub(super) fn tokens(&self) -> Vec<Token> {
        let state = self.state();
        let mut tokens = state.asked.clone();
        tokens.extend(state.ready.values().map(|job| job.token));
        tokens.extend(state.running.values().map(|running| running.job.token));
        tokens.extend(state.orphaned.iter().map(|job| job.token));
        tokens.extend(state.unsettled.keys());
        tokens.into_iter().collect()
    }

    /// Claims are about to be sent, by the holder of the gate.
    pub(super) fn ask(self: &Arc<Self>, tokens: Vec<Token>) -> Asked {
        self.state().asked.extend(&tokens);
        Asked::new(Arc::clone(self), tokens)
    }

    /// Jobs that were claimed.
    pub(super) fn add(&self, jobs: Vec<ClaimedJob>) {
        // Slots that end a job meanwhile wait for the lock no longer than they have to.
        let jobs: Vec<_> = jobs
            .into_iter()
            .map(|job| (place(&job), Arc::new(job)))
            .collect();
        let mut state = self.state();
        let wanted = jobs.len().min(state.idle);
        state.ready.extend(jobs);
        drop(state);
        for _ in 0..wanted {
            self.work.notify_one();
        }
    }

    /// Whether another slot would have something to do; it counts from now on.
    pub(super) fn wants_slot(&self, most: usize) -> bool {
        let mut state = self.state();
        let wanted = state.slots < most && state.ready.len() > state.idle;
        state.slots += usize::from(wanted);
        state.idle += usize::from(wanted);
        wanted
    }

    /// The next job that may run, as soon as there is one; nothing once this is closed.
    pub(super) async fn take(&self) -> Option<Taken> {
        loop {
            let mut work = std::pin::pin!(self.work.notified());
            {
                let mut state = self.state();
                if state.closed {
                    return None;
                }
                if let Some(taken) = state.take(&self.limits) {
                    return Some(taken);
                }
                // Whatever comes from here on wakes us.
                work.as_mut().enable();
            }
            work.await;
        }
    }

    /// A running job has ended: the shift is told.
    pub(super) fn report(&self, ended: Ended, reports: &mpsc::UnboundedSender<Ended>) -> Then {
        let mut state = self.state();
        let job = &ended.job;
        // The same job may run again under another claim by the time its dropped attempt reports.
        let is_current = |running: &Running| running.job.token == job.token;
        let current = state.running.get(&job.id).is_some_and(is_current);
        if current {
            state.running.remove(&job.id);
            state.idle += 1;
        }
        if ended.settlement.is_some() {
            state.unsettled(job.token, 1);
        }
        let first = state.ending == 0;
        state.ending += 1;
        // Under the lock, so that whoever comes first is also the one who wakes the shift. Without a
        // listener the worker is gone, and its lease will tell the others.
        let gone = reports.send(ended).is_err();
        match (gone || !current, first) {
            (true, _) => Then::End,
            (false, true) => Then::MakeWay,
            (false, false) => Then::GoOn,
        }
    }

    /// The shift has heard of these ends; their verdicts, where they have one, are on their way.
    pub(super) fn reported(&self, ended: &[Ended]) {
        let mut state = self.state();
        state.ending -= ended.len();
        for ended in ended.iter().filter(|ended| ended.settlement.is_some()) {
            if ended.completed {
                state.completed.insert((ended.job.id, ended.job.token));
            }
        }
    }

    /// A slot ended without a report of this job. Whether the slot still counted.
    fn orphan(&self, id: JobId, token: Token) -> bool {
        let mut state = self.state();
        let is_current = |running: &Running| running.job.token == token;
        if !state.running.get(&id).is_some_and(is_current) {
            return false;
        }
        let job = state.running.remove(&id).map(|running| running.job);
        state.orphaned.extend(job);
        state.idle += 1;
        true
    }

    /// Takes the jobs whose slots ended without a word; their verdict is on its way.
    pub(super) fn take_orphaned(&self) -> Vec<Arc<ClaimedJob>> {
        let mut state = self.state();
        let taken = std::mem::take(&mut state.orphaned);
        state.unsettled_all(&taken);
        taken
    }

    /// A claimed job is settled without having been ready.
    pub(super) fn refused(&self, job: &ClaimedJob) {
        self.state().unsettled(job.token, 1);
    }

    /// Verdicts were answered. Which of the jobs their handlers had completed.
    pub(super) fn settled(&self, answers: &[Answer]) -> HashSet<(JobId, Token)> {
        let mut state = self.state();
        let same_claim = |(_, one, _): &Answer, (_, next, _): &Answer| one == next;
        for of_one in answers.chunk_by(same_claim) {
            state.settled(of_one[0].1, of_one.len());
        }
        if state.completed.is_empty() {
            return HashSet::new();
        }
        let jobs = answers.iter().map(|(id, token, _)| (*id, *token));
        jobs.filter(|job| state.completed.remove(job)).collect()
    }

    /// Takes jobs out that haven't started; their verdict is on its way.
    pub(super) fn take_ready(&self, ids: &[JobId]) -> Vec<Arc<ClaimedJob>> {
        if ids.is_empty() {
            return Vec::new();
        }
        let mut state = self.state();
        let named = state.ready.keys().filter(|(_, _, id)| ids.contains(id));
        let places: Vec<Place> = named.copied().collect();
        let taken = places.iter().filter_map(|place| state.ready.remove(place));
        let taken: Vec<_> = taken.collect();
        state.unsettled_all(&taken);
        taken
    }

    /// The last so many of those that haven't started; their verdict is on its way.
    pub(super) fn take_last_ready(&self, most: usize) -> Vec<Arc<ClaimedJob>> {
        let mut state = self.state();
        let last = std::iter::from_fn(|| state.ready.pop_last()).take(most);
        let taken: Vec<_> = last.map(|(_, job)| job).collect();
        state.unsettled_all(&taken);
        taken
    }

    pub(super) fn take_all_ready(&self) -> Vec<Arc<ClaimedJob>> {
        let mut state = self.state();
        let taken: Vec<_> = std::mem::take(&mut state.ready).into_values().collect();
        state.unsettled_all(&taken);
        taken
    }

    /// Ends a running job from outside.
    pub(super) fn order(&self, id: JobId, order: Order) {
        self.state().order(id, order);
    }

    pub(super) fn order_all(&self, order: Order) {
        self.state().order_all(order);
    }

    /// The lease is lost: nothing of all this is ours any more.
    pub(super) fn forget(&self) {
        let mut state = self.state();
        state.order_all(Order::Drop);
        state.asked.clear();
        state.ready.clear();
        state.orphaned.clear();
        // Their slots end when their handlers do, if ever; others take their place.
        state.slots -= state.running.len();
        state.running.clear();
        state.unsettled.clear();
        state.settling = 0;
        state.completed.clear();
    }

    /// Somebody else claims from now on.
    pub(super) fn begin_as(&self, worker: &WorkerId) {
        self.state().worker = Arc::new(worker.clone());
    }

    /// No further job starts: slots end.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.work.notify_waiters();
    }

    pub(super) fn running(&self) -> usize {
        self.state().running.len()
    }

    /// Running, or ended without the shift's having heard of it.
    pub(super) fn unfinished(&self) -> usize {
        let state = self.state();
        state.running.len() + state.ending
    }

    /// Jobs that have a slot, or will have one at once.
    pub(super) fn under_way(&self) -> usize {
        let state = self.state();
        state.running.len() + state.ready.len()
    }

    /// Verdicts on their way.
    pub(super) fn settling(&self) -> usize {
        self.state().settling
    }

    /// Everything that isn't settled.
    pub(super) fn held(&self) -> usize {
        let state = self.state();
        state.ready.len() + state.running.len() + state.orphaned.len() + state.settling
    }

    pub(super) fn has_suspect(&self) -> bool {
        let state = self.state();
        state.ready.values().any(|job| job.suspect)
            || state.running.values().any(|running| running.job.suspect)
    }

    /// How many jobs of a queue are here.
    pub(super) fn here_of(&self, queue: &Name) -> usize {
        let state = self.state();
        let ready = state.ready.values().filter(|job| job.queue == *queue);
        ready.count() + state.running_of(queue)
    }
}

impl State {
    /// The best ready job of a queue that has room.
    fn take(&mut self, limits: &BTreeMap<Name, usize>) -> Option<Taken> {
        let job = match limits.is_empty() {
            true => self.ready.pop_first()?.1,
            false => {
                let may_run = |(_, job): &(&Place, &Arc<ClaimedJob>)| {
                    let limit = limits.get(&job.queue);
                    limit.is_none_or(|limit| self.running_of(&job.queue) < *limit)
                };
                let place = *self.ready.iter().find(may_run)?.0;
                self.ready.remove(&place)?
            }
        };
        let (orders, inbox) = oneshot::channel();
        let running = Running {
            job: Arc::clone(&job),
            orders: Some(orders),
        };
        self.idle -= 1;
        if self.running.insert(job.id, running).is_some() {
            // Its earlier claim was lost, and nobody has heard of it yet: that slot ends with its job.
            self.slots -= 1;
        }
        Some(Taken {
            job,
            worker: Arc::clone(&self.worker),
            orders: inbox,
        })
    }

    fn unsettled(&mut self, token: Token, jobs: usize) {
        *self.unsettled.entry(token).or_default() += jobs;
        self.settling += jobs;
    }

    fn unsettled_all(&mut self, jobs: &[Arc<ClaimedJob>]) {
        for job in jobs {
            self.unsettled(job.token, 1);
        }
    }

    /// Of a claim that was forgotten meanwhile nothing is left to settle.
    fn settled(&mut self, token: Token, jobs: usize) {
        let Entry::Occupied(mut left) = self.unsettled.entry(token) else {
            return;
        };
        let jobs = jobs.min(*left.get());
        *left.get_mut() -= jobs;
        if *left.get() == 0 {
            left.remove();
        }
        self.settling -= jobs;
    }

    fn order(&mut self, id: JobId, order: Order) {
        if let Some(orders) = self.running.get_mut(&id).and_then(|job| job.orders.take()) {
            // It may have ended by itself in this moment.
            let _ = orders.send(order);
        }
    }

    fn order_all(&mut self, order: Order) {
        let ids: Vec<JobId> = self.running.keys().copied().collect();
        for id in ids {
            self.order(id, order);
        }
    }

    fn running_of(&self, queue: &Name) -> usize {
        let of_queue = |running: &&Running| running.job.queue == *queue;
        self.running.values().filter(of_queue).count()
    }
}

#[cfg(test)]
mod tests;
