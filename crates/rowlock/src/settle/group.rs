//! Acks in groups: what finishes while one batch is being written makes up the next.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Settled, Settlement};
use crate::clock::Clock;
use crate::engine::Dispatch;
use crate::error::Error;
use crate::event;
use crate::job::{JobId, Token};
use crate::run::task::Tasks;

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
    inbox: mpsc::UnboundedSender<Settlement>,
    running: Arc<AtomicUsize>,
}

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
        let running = Arc::default();
        let writer = Writer {
            engine,
            clock,
            running: Arc::clone(&running),
        };
        tasks.start("rowlock-settle", writer.write(waiting, answers));
        (Self { inbox, running }, outbox)
    }

    /// Says how many jobs may hand in a verdict soon: while there are any, a small group waits for
    /// company.
    pub fn expect(&self, running: usize) {
        self.running.store(running, Ordering::Relaxed);
    }

    /// Hands a verdict in.
    pub fn push(&self, settlement: Settlement) {
        // The receiver ends only after this sender.
        let _ = self.inbox.send(settlement);
    }
}

struct Writer {
    engine: Arc<dyn Dispatch>,
    clock: Clock,
    running: Arc<AtomicUsize>,
}

impl Writer {
    async fn write(
        self,
        mut waiting: mpsc::UnboundedReceiver<Settlement>,
        answers: mpsc::UnboundedSender<Vec<Answer>>,
    ) {
        let (mut batch, mut open) = (Vec::new(), true);
        let mut writing: Vec<Writing<'_>> = Vec::with_capacity(AT_ONCE);
        while open || !batch.is_empty() || !writing.is_empty() {
            let most = MOST - batch.len();
            tokio::select! {
                biased;
                // Nobody reads the answers of a worker that has gone.
                group = first(&mut writing), if !writing.is_empty() => { let _ = answers.send(group); }
                more = waiting.recv_many(&mut batch, most), if open && most > 0 => open = more > 0,
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

    async fn written(&self, batch: Vec<Settlement>) -> Vec<Answer> {
        let settled = until_written(&*self.engine, &self.clock, &batch).await;
        batch
            .iter()
            .zip(settled)
            .map(|(each, settled)| (each.id, each.token, settled))
            .collect()
    }

    /// A commit costs the same for one verdict as for a hundred.
    async fn linger(
        &self,
        waiting: &mut mpsc::UnboundedReceiver<Settlement>,
        batch: &mut Vec<Settlement>,
    ) {
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

/// A group on its way to the store.
type Writing<'a> = Pin<Box<dyn Future<Output = Vec<Answer>> + Send + 'a>>;

/// Whichever is written first.
async fn first(writing: &mut Vec<Writing<'_>>) -> Vec<Answer> {
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
/// only its answer was lost, the second try is refused as lost: the job has moved already.
pub(crate) async fn until_written(
    engine: &dyn Dispatch,
    clock: &Clock,
    batch: &[Settlement],
) -> Vec<Settled> {
    let mut wait = SHORTEST;
    loop {
        match (engine.settle(batch.to_vec()).await, batch) {
            (Ok(settled), _) => {
                event::acked(&settled);
                return settled;
            }
            // A single verdict that can't be written at all must not hold up the others.
            (Err(why @ (Error::Bug(_) | Error::Invalid(_))), [one]) => {
                let job = one.id;
                tracing::error!(%job, %why, "a verdict can't be written, the job runs again");
                return vec![Settled::LeaseLost];
            }
            (Err(Error::Bug(_) | Error::Invalid(_)), _) => {
                let mut settled = Vec::with_capacity(batch.len());
                for each in batch.chunks(1) {
                    settled.extend(Box::pin(until_written(engine, clock, each)).await);
                }
                return settled;
            }
            (Err(why), _) => {
                let jobs = batch.len();
                tracing::warn!(%why, jobs, "settling waits for the store");
            }
        }
        clock.sleep(wait).await;
        wait = (wait * 2).min(LONGEST);
    }
}
