//! The heartbeat has a thread of its own, so that a handler that blocks the runtime can't silence it.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::Options;
use super::held::Held;
use super::task::Thread;
use crate::claim::{Heartbeat, WorkerId};
use crate::clock::Clock;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::event;

/// Beats until it is dropped.
#[derive(Debug)]
pub(super) struct Beating {
    stop: Option<oneshot::Sender<()>>,
    _thread: Thread,
}

impl Drop for Beating {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}

/// What a beat was answered.
pub(super) type Beat = Result<Heartbeat>;

/// Beats per lease: two may be lost.
const PER_LEASE: u32 = 3;

impl Beating {
    pub(super) fn start(
        engine: Arc<dyn Engine>,
        clock: Clock,
        worker: WorkerId,
        options: &Options,
        held: Arc<Held>,
    ) -> Result<(Self, mpsc::UnboundedReceiver<Beat>)> {
        let (lease, pulse) = (options.lease, options.pulse.clone());
        // It begins with the answer to a join.
        pulse.answered(clock.elapsed(), lease);
        let (stop, mut stopped) = oneshot::channel::<()>();
        let (beats, outbox) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|why| Error::Unavailable(format!("can't start the heartbeat: {why}")))?;
        let thread = Thread::start("rowlock-heartbeat", move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        biased;
                        _ = &mut stopped => return pulse.left(),
                        () = clock.sleep(lease / PER_LEASE) => {}
                    }
                    let gate = held.gate.lock().await;
                    let beat = engine.heartbeat(&worker, held.all()).await;
                    drop(gate);
                    match &beat {
                        Ok(_) => pulse.answered(clock.elapsed(), lease),
                        Err(why) => {
                            event::heartbeat_failed();
                            pulse.failed(&why.to_string());
                        }
                    }
                    let lost = matches!(beat, Err(Error::LeaseLost));
                    if beats.send(beat).is_err() || lost {
                        return;
                    }
                }
            });
        })?;
        let stop = Some(stop);
        Ok((
            Self {
                stop,
                _thread: thread,
            },
            outbox,
        ))
    }
}
