//! Acks in groups: what finishes while one batch is being written makes up the next.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Settled, Settlement};
use crate::clock::Clock;
use crate::engine::Engine;
use crate::job::{JobId, Token};
use crate::run::task::Tasks;

/// The most verdicts in one transaction.
const MOST: usize = 500;
/// The waits between tries while the store can't be written.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);

/// Where verdicts go in.
#[derive(Debug)]
pub struct Group(mpsc::UnboundedSender<Settlement>);

/// What became of one verdict.
pub type Answer = (JobId, Token, Settled);

impl Group {
    /// Starts writing verdicts; the answers come out of the receiver. It ends once this is dropped
    /// and everything handed in has been written.
    pub fn start(
        tasks: &mut Tasks,
        engine: Arc<dyn Engine>,
        clock: Clock,
    ) -> (Self, mpsc::UnboundedReceiver<Vec<Answer>>) {
        let (inbox, waiting) = mpsc::unbounded_channel();
        let (answers, outbox) = mpsc::unbounded_channel();
        tasks.start("rowlock-settle", write(engine, clock, waiting, answers));
        (Self(inbox), outbox)
    }

    /// Hands a verdict in.
    pub fn push(&self, settlement: Settlement) {
        // The receiver ends only after this sender.
        let _ = self.0.send(settlement);
    }
}

async fn write(
    engine: Arc<dyn Engine>,
    clock: Clock,
    mut waiting: mpsc::UnboundedReceiver<Settlement>,
    answers: mpsc::UnboundedSender<Vec<Answer>>,
) {
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, MOST).await > 0 {
        let settled = until_written(&*engine, &clock, &batch).await;
        let group = batch
            .drain(..)
            .zip(settled)
            .map(|(each, settled)| (each.id, each.token, settled))
            .collect();
        // Nobody reads the answers of a worker that has gone.
        let _ = answers.send(group);
    }
}

/// A verdict is never dropped because the store was away for a while. If a write had succeeded and
/// only its answer was lost, the second try is refused as lost: the job has moved already.
async fn until_written(engine: &dyn Engine, clock: &Clock, batch: &[Settlement]) -> Vec<Settled> {
    let mut wait = SHORTEST;
    loop {
        match engine.settle(batch.to_vec()).await {
            Ok(settled) => return settled,
            Err(why) => tracing::warn!(%why, jobs = batch.len(), "settling waits for the store"),
        }
        clock.sleep(wait).await;
        wait = (wait * 2).min(LONGEST);
    }
}
