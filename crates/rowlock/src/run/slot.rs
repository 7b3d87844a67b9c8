//! A slot: it takes one job after another from what is ready, and makes an attempt at each.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use super::attempt::{Attempt, Ended, panicked, release};
use super::registry::{Hold, Registry, Taken, Then};
use super::{Handler, task};
use crate::clock::Clock;
use crate::engine::Dispatch;
use crate::job::Name;
use crate::log;
use crate::verify::Ran;

/// For so many jobs, or for so long, a slot may keep a thread: handlers that never wait must leave room for
/// others.
const IN_A_ROW: usize = 16;
const AT_A_STRETCH: Duration = Duration::from_millis(1);

/// What all slots of a shift need.
pub(super) struct Bench {
    pub(super) registry: Arc<Registry>,
    pub(super) handlers: BTreeMap<Name, Arc<dyn Handler>>,
    pub(super) engine: Arc<dyn Dispatch>,
    pub(super) clock: Clock,
    pub(super) ran: Option<Ran>,
}

/// One slot; it is served again if that ends by a panic.
pub(super) struct Slot {
    pub(super) bench: Arc<Bench>,
    pub(super) reports: mpsc::UnboundedSender<Ended>,
    /// Another slot has taken its place.
    pub(super) replaced: AtomicBool,
}

impl Slot {
    /// Makes attempts until nothing is to be started any more.
    pub(super) async fn serve(self: Arc<Self>) {
        if self.replaced.load(Ordering::Relaxed) {
            return;
        }
        panic_point!("slot.begins");
        let bench = &self.bench;
        let drained = bench.engine.capabilities().drained;
        let (mut in_a_row, mut busy) = (0, Duration::ZERO);
        let mut hold = Hold::new(&bench.registry, &self.replaced);
        while let Some(taken) = bench.registry.take().await {
            hold.take(&taken.job);
            panic_point!("slot.took");
            let ended = bench.attempt(taken, drained).await;
            in_a_row += 1;
            busy = busy.saturating_add(ended.took);
            let then = bench.registry.report(ended, &self.reports);
            hold.reported();
            let long = in_a_row >= IN_A_ROW || busy >= AT_A_STRETCH;
            match then {
                Then::End => return,
                Then::GoOn if !long => {}
                Then::GoOn | Then::MakeWay => {
                    tokio::task::yield_now().await;
                    (in_a_row, busy) = (0, Duration::ZERO);
                }
            }
        }
    }
}

impl Bench {
    async fn attempt(&self, taken: Taken, drained: bool) -> Ended {
        let job = Arc::clone(&taken.job);
        let Some(handler) = self.handlers.get(&job.kind) else {
            log::error!(job = %job.id, kind = %job.kind, "claimed a kind without a handler");
            return release(job);
        };
        let attempt = Attempt {
            taken,
            handler: &**handler,
            engine: &*self.engine,
            clock: &self.clock,
            ran: self.ran.as_ref(),
            drained,
        };
        // A handler's panic is caught further in; this is what it leaves behind, or whoever measures it.
        let run = pin!(attempt.run());
        match task::catch(run).await {
            Ok(ended) => ended,
            Err(panic) => panicked(job, &panic, self.clock.now()),
        }
    }
}
