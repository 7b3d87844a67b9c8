//! Acks in groups: what finishes while one batch is being written makes up the next.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::mpsc;

use super::refused::Refused;
use super::{Settled, Settlement, Verdict};
use crate::claim::ClaimedJob;
use crate::clock::Clock;
use crate::engine::Dispatch;
use crate::error::Error;
use crate::event;
use crate::job::{JobId, Name, Token};
use crate::log;
use crate::run::task::{self, Tasks};

/// The most verdicts in one transaction.
const MOST: usize = 2_000;
/// So many transactions at once: one is computed while another waits for the disk.
const AT_ONCE: usize = 2;
/// A group of this size is worth a transaction of its own.
const WORTH_IT: usize = 100;
/// How long a smaller one waits for others, while jobs are still running.
const LINGER: Duration = Duration::from_millis(1);
/// So many tries before an error that may be the store's counts as one of a verdict.
const PATIENCE: u32 = 5;
/// The waits between tries while the store can't be written.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);

/// Where verdicts go in.
#[derive(Debug)]
pub struct Group {
    inbox: mpsc::UnboundedSender<Handed>,
    running: Arc<AtomicUsize>,
    stuck: Arc<Stuck>,
}

/// Jobs that are held because the store refuses whatever is said of them.
#[derive(Debug, Default)]
struct Stuck {
    jobs: AtomicUsize,
    /// Kinds with so many of them that no further one should be claimed.
    kinds: Mutex<BTreeSet<Name>>,
}

/// So many held jobs of a kind, and it isn't claimed any more.
const STUCK_KIND: usize = 10;

impl Stuck {
    fn are(&self, held: &[&Name]) {
        if self.jobs.swap(held.len(), Ordering::Relaxed) == held.len() {
            return;
        }
        event::held(held.len());
        let mut counts = BTreeMap::<&Name, usize>::new();
        for kind in held {
            *counts.entry(kind).or_default() += 1;
        }
        let many = counts.into_iter().filter(|(_, jobs)| *jobs >= STUCK_KIND);
        *self.kinds() = many.map(|(kind, _)| kind.clone()).collect();
    }

    fn kinds(&self) -> MutexGuard<'_, BTreeSet<Name>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A verdict, and the job that it is about.
type Handed = (Settlement, Arc<ClaimedJob>);

/// What became of one verdict.
pub type Answer = (JobId, Token, Settled);

impl Group {
    /// Starts writing verdicts; the answers come out of the receiver. It ends once this is dropped
    /// and everything handed in has been written.
    pub fn start(
        tasks: &mut Tasks,
        engine: Arc<dyn Dispatch>,
        clock: Clock,
    ) -> (Self, mpsc::UnboundedReceiver<Vec<Answer>>) {
        let (inbox, waiting) = mpsc::unbounded_channel();
        let (answers, outbox) = mpsc::unbounded_channel();
        let (running, stuck) = (Arc::default(), Arc::default());
        let writer = Writer {
            engine,
            clock,
            running: Arc::clone(&running),
            stuck: Arc::clone(&stuck),
        };
        tasks.start("rowlock-settle", writer.write(waiting, answers));
        let group = Self {
            inbox,
            running,
            stuck,
        };
        (group, outbox)
    }

    /// Says how many jobs may hand in a verdict soon: while there are any, a small group waits for
    /// company.
    pub fn expect(&self, running: usize) {
        self.running.store(running, Ordering::Relaxed);
    }

    /// Hands a verdict in.
    pub fn push(&self, settlement: Settlement, job: Arc<ClaimedJob>) {
        // The receiver ends only after this sender.
        let _ = self.inbox.send((settlement, job));
    }

    /// How many jobs are held because the store refuses whatever is said of them.
    pub fn stuck(&self) -> usize {
        self.stuck.jobs.load(Ordering::Relaxed)
    }

    /// Kinds of which there are so many that no further job should be claimed.
    pub fn stuck_kinds(&self) -> BTreeSet<Name> {
        match self.stuck() {
            0..STUCK_KIND => BTreeSet::new(),
            _ => self.stuck.kinds().clone(),
        }
    }
}

struct Writer {
    engine: Arc<dyn Dispatch>,
    clock: Clock,
    running: Arc<AtomicUsize>,
    stuck: Arc<Stuck>,
}

impl Writer {
    async fn write(
        self,
        mut waiting: mpsc::UnboundedReceiver<Handed>,
        answers: mpsc::UnboundedSender<Vec<Answer>>,
    ) {
        let (mut batch, mut open) = (Vec::new(), true);
        let mut writing: Vec<Writing<'_>> = Vec::with_capacity(AT_ONCE);
        // Beside the groups, one after the other: what is refused must not hold up the others.
        let mut refused: Vec<Refused> = Vec::new();
        let mut retrying: Vec<Retrying<'_>> = Vec::with_capacity(1);
        while open || !batch.is_empty() || !writing.is_empty() || !retrying.is_empty() {
            let most = MOST - batch.len();
            tokio::select! {
                biased;
                // Nobody reads the answers of a worker that has gone.
                (group, more) = first(&mut writing), if !writing.is_empty() => {
                    let _ = answers.send(group);
                    refused.extend(more);
                }
                tried = first(&mut retrying), if !retrying.is_empty() => match tried {
                    Ok(answer) => { let _ = answers.send(vec![answer]); }
                    // The last word on it was said; the row is given back when the worker leaves.
                    Err(_) if !open => {}
                    Err(again) => refused.push(again),
                },
                more = waiting.recv_many(&mut batch, most), if open && most > 0 => open = more > 0,
                () = self.until_due(&refused), if open && retrying.is_empty() && !refused.is_empty() => {}
            }
            if retrying.is_empty()
                && let Some(next) = self.take_due(&mut refused, open)
            {
                retrying.push(Box::pin(self.again(next, !open)));
            }
            let held = refused.iter().filter(|each| each.is_held());
            self.stuck.are(&held.map(Refused::kind).collect::<Vec<_>>());
            if writing.is_empty() && open && !batch.is_empty() {
                self.linger(&mut waiting, &mut batch).await;
            }
            // Beside another a group has to be full: the more there are, the less each of them carries.
            let is_worth_it = match writing.len() {
                0 => !batch.is_empty(),
                others => batch.len() == MOST && others < AT_ONCE,
            };
            if is_worth_it {
                let full = std::mem::take(&mut batch);
                writing.push(Box::pin(self.written(full)));
            }
        }
    }

    async fn written(&self, batch: Vec<Handed>) -> Written {
        let (settlements, jobs): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let written = until_written(&*self.engine, &self.clock, &settlements);
        #[cfg(feature = "test-hooks")]
        let written = async {
            match crate::hooks::switched_off("settle.outlives_a_panic") {
                true => Ok(written.await),
                false => task::catch(written).await,
            }
        };
        #[cfg(not(feature = "test-hooks"))]
        let written = task::catch(written);
        let settled = match written.await {
            Ok(settled) => settled,
            Err(panic) => {
                self.give_back(&settlements).await;
                let jobs = settlements.len();
                log::error!(panic, jobs, "settling panicked, the jobs run again");
                settlements.iter().map(|_| Ok(Settled::LeaseLost)).collect()
            }
        };
        let now = self.clock.elapsed();
        let (mut answers, mut refused) = (Vec::with_capacity(settled.len()), Vec::new());
        for ((each, job), settled) in settlements.into_iter().zip(jobs).zip(settled) {
            match settled {
                Ok(settled) => answers.push((each.id, each.token, settled)),
                #[cfg(feature = "test-hooks")]
                Err(_) if crate::hooks::switched_off("settle.refused_is_held") => {
                    answers.push((each.id, each.token, Settled::LeaseLost));
                }
                Err(why) => refused.push(Refused::new(each, job, &why, now)),
            }
        }
        (answers, refused)
    }

    /// Another try at one that was refused. A panic costs its job the claim, and the others nothing.
    async fn again(&self, refused: Refused, last: bool) -> Result<Answer, Refused> {
        let settlement = refused.settlement().clone();
        let trying = refused.again(&*self.engine, &self.clock, last);
        match task::catch(trying).await {
            Ok(tried) => tried,
            Err(panic) => {
                let (id, token) = (settlement.id, settlement.token);
                log::error!(panic, job = %id, "settling panicked, the job runs again");
                self.give_back(&[settlement]).await;
                Ok((id, token, Settled::LeaseLost))
            }
        }
    }

    async fn until_due(&self, refused: &[Refused]) {
        let first = refused.iter().map(|each| each.at).min().unwrap_or_default();
        let wait = first.saturating_sub(self.clock.elapsed());
        self.clock.sleep(wait).await;
    }

    /// The next one to try again; every one is tried once more at the end.
    fn take_due(&self, refused: &mut Vec<Refused>, open: bool) -> Option<Refused> {
        let now = self.clock.elapsed();
        let due = |each: &Refused| !open || each.at <= now;
        refused
            .iter()
            .position(due)
            .map(|at| refused.swap_remove(at))
    }

    /// Of jobs whose verdicts can't be written others of the same claim may go on, so that no heartbeat releases them.
    async fn give_back(&self, batch: &[Settlement]) {
        for each in batch {
            let back = Settlement::unbegun(each.id, each.token, Verdict::Release);
            match task::catch(self.engine.settle(vec![back])).await {
                Ok(Ok(_)) => {}
                Ok(Err(why)) => log::warn!(job = %each.id, %why, "a job isn't given back"),
                Err(panic) => log::warn!(job = %each.id, panic, "a job isn't given back"),
            }
        }
    }

    /// A commit costs the same for one verdict as for a hundred.
    async fn linger(&self, waiting: &mut mpsc::UnboundedReceiver<Handed>, batch: &mut Vec<Handed>) {
        // Real time, also under a manual clock: it is about how full a transaction gets, nothing else.
        let real = Clock::system();
        let pause = real.sleep(LINGER);
        tokio::pin!(pause);
        while batch.len() < WORTH_IT && self.running.load(Ordering::Relaxed) > 0 {
            let most = MOST - batch.len();
            tokio::select! {
                biased;
                more = waiting.recv_many(batch, most) => if more == 0 { return },
                () = &mut pause => return,
            }
        }
    }
}

/// What became of a group: the answers, and what was refused.
type Written = (Vec<Answer>, Vec<Refused>);
type Under<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// A group on its way to the store, and a single verdict that was refused before.
type Writing<'a> = Under<'a, Written>;
type Retrying<'a> = Under<'a, Result<Answer, Refused>>;

/// Whichever is written first.
async fn first<T>(writing: &mut Vec<Under<'_, T>>) -> T {
    std::future::poll_fn(|cx| {
        for n in 0..writing.len() {
            if let Poll::Ready(group) = writing[n].as_mut().poll(cx) {
                drop(writing.swap_remove(n));
                return Poll::Ready(group);
            }
        }
        Poll::Pending
    })
    .await
}

/// A verdict is never dropped because the store was away for a while. If a write had succeeded and
/// only its answer was lost, the second try is answered as lost: the job has moved already. An error
/// stands for a verdict that the store refuses, whenever it is asked.
pub(crate) async fn until_written(
    engine: &dyn Dispatch,
    clock: &Clock,
    batch: &[Settlement],
) -> Vec<Result<Settled, Error>> {
    written_after(engine, clock, batch, 0).await
}

/// The same for a batch that was a part of one which the store has refused so many times.
async fn written_after(
    engine: &dyn Dispatch,
    clock: &Clock,
    batch: &[Settlement],
    mut refusals: u32,
) -> Vec<Result<Settled, Error>> {
    let mut wait = SHORTEST;
    loop {
        let why = match engine.settle(batch.to_vec()).await {
            Ok(settled) => {
                event::acked(&settled);
                return settled.into_iter().map(Ok).collect();
            }
            Err(why) => why,
        };
        refusals = refusals.saturating_add(1);
        if is_about_these(engine, &why, refusals).await {
            // A single verdict that can't be written must not hold up the others.
            let [_] = batch else {
                let (first, last) = batch.split_at(batch.len() / 2);
                let mut written = Box::pin(written_after(engine, clock, first, PATIENCE - 1)).await;
                written.extend(Box::pin(written_after(engine, clock, last, PATIENCE - 1)).await);
                return written;
            };
            return vec![Err(why)];
        }
        let jobs = batch.len();
        log::warn!(%why, jobs, "settling waits for the store");
        clock.sleep(wait).await;
        wait = (wait * 2).min(LONGEST);
    }
}

/// Whether an error speaks of these verdicts and not of the store. What a trigger or a function of others runs into has
/// the same codes as a store without rights or tables: so the store is asked to write another verdict meanwhile.
async fn is_about_these(engine: &dyn Dispatch, why: &Error, refusals: u32) -> bool {
    match why {
        Error::Bug(_) | Error::Invalid(_) => true,
        // Nothing is written anywhere; a verdict that changes nothing would not show it.
        Error::NoSpace(_) => false,
        _ => refusals >= PATIENCE && takes_verdicts(engine).await,
    }
}

/// Whether the store takes a verdict: this one is about a job that doesn't exist, and changes nothing.
async fn takes_verdicts(engine: &dyn Dispatch) -> bool {
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("settle.tells_rows_from_stores") {
        return false;
    }
    // A sink has no rows.
    if engine.capabilities().drained {
        return false;
    }
    let Ok(token) = Token::random() else {
        return false;
    };
    let none = Settlement::unbegun(JobId(0), token, Verdict::NotNeeded);
    engine.settle(vec![none]).await.is_ok()
}
