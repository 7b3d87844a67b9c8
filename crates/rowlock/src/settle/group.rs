//! Acks in groups: what finishes while one batch is being written makes up the next.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
use crate::job::{JobId, Token};
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
/// The waits between tries while the store can't be written.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);

/// Where verdicts go in.
#[derive(Debug)]
pub struct Group {
    inbox: mpsc::UnboundedSender<Handed>,
    running: Arc<AtomicUsize>,
    stuck: Arc<AtomicUsize>,
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
        self.stuck.load(Ordering::Relaxed)
    }
}

struct Writer {
    engine: Arc<dyn Dispatch>,
    clock: Clock,
    running: Arc<AtomicUsize>,
    stuck: Arc<AtomicUsize>,
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
                retrying.push(Box::pin(next.again(&*self.engine, &self.clock, !open)));
            }
            let held = refused.iter().filter(|each| each.is_held()).count();
            if self.stuck.swap(held, Ordering::Relaxed) != held {
                event::held(held);
            }
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
    let mut wait = SHORTEST;
    loop {
        match (engine.settle(batch.to_vec()).await, batch) {
            (Ok(settled), _) => {
                event::acked(&settled);
                return settled.into_iter().map(Ok).collect();
            }
            // A single verdict that can't be written at all must not hold up the others.
            (Err(why @ (Error::Bug(_) | Error::Invalid(_))), [_]) => return vec![Err(why)],
            (Err(Error::Bug(_) | Error::Invalid(_)), _) => {
                let mut settled = Vec::with_capacity(batch.len());
                for each in batch.chunks(1) {
                    settled.extend(Box::pin(until_written(engine, clock, each)).await);
                }
                return settled;
            }
            (Err(why), _) => {
                let jobs = batch.len();
                log::warn!(%why, jobs, "settling waits for the store");
            }
        }
        clock.sleep(wait).await;
        wait = (wait * 2).min(LONGEST);
    }
}
