//! A slot: it takes one job after another from what is ready, and makes an attempt at each.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::Handler;
use super::attempt::{Attempt, Ended, release};
use super::local::Local;
use crate::clock::Clock;
use crate::engine::Dispatch;
use crate::job::Name;
use crate::verify::Ran;

/// So many jobs in a row may keep a thread: a handler that never waits must leave room for others.
const IN_A_ROW: usize = 16;

/// What all slots of a shift need.
pub(super) struct Bench {
    pub(super) local: Arc<Local>,
    pub(super) handlers: BTreeMap<Name, Arc<dyn Handler>>,
    pub(super) engine: Arc<dyn Dispatch>,
    pub(super) clock: Clock,
    pub(super) ran: Option<Ran>,
}

impl Bench {
    /// Makes attempts until nothing is to be started any more.
    pub(super) async fn serve(self: Arc<Self>, reports: mpsc::UnboundedSender<Ended>) {
        let drained = self.engine.capabilities().drained;
        let mut in_a_row = 0;
        while let Some(taken) = self.local.take().await {
            let ended = match self.handlers.get(&taken.job.kind) {
                Some(handler) => {
                    let attempt = Attempt {
                        taken,
                        handler: &**handler,
                        engine: &*self.engine,
                        clock: &self.clock,
                        ran: self.ran.as_ref(),
                        drained,
                    };
                    attempt.run().await
                }
                None => {
                    let job = taken.job;
                    tracing::error!(job = %job.id, kind = %job.kind, "claimed a kind without a handler");
                    release(job)
                }
            };
            self.local.ended(&ended.job);
            // Without a listener the worker is gone, and its lease will tell the others.
            let _ = reports.send(ended);
            in_a_row += 1;
            if in_a_row % IN_A_ROW == 0 {
                tokio::task::yield_now().await;
            }
        }
    }
}
