//! The heartbeat has a thread of its own, so that a handler that blocks the runtime can't silence it.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::Options;
use super::registry::Registry;
use super::task::Thread;
use crate::claim::{Heartbeat, WorkerId};
use crate::clock::{Clock, Elapsed};
use crate::engine::Dispatch;
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

/// When a beat was sent, and what it was answered.
pub(super) struct Beat {
    pub(super) sent: Elapsed,
    pub(super) answer: Result<Heartbeat>,
}

/// Beats per lease: two may be lost.
const PER_LEASE: u32 = 3;

impl Beating {
    pub(super) fn start(
        engine: Arc<dyn Dispatch>,
        clock: Clock,
        worker: WorkerId,
        options: &Options,
        registry: Arc<Registry>,
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
                    let gate = registry.gate.lock().await;
                    let sent = clock.elapsed();
                    let beat = engine.heartbeat(&worker, registry.tokens());
                    // Where a server counts the lease, an answer that comes too late is none.
                    let answer = match engine.capabilities().server_clock {
                        true => clock.timeout(lease / PER_LEASE, beat).await,
                        false => Some(beat.await),
                    };
                    drop(gate);
                    let silence = || Err(Error::Unavailable("no answer to a heartbeat".to_owned()));
                    let answer = answer.unwrap_or_else(silence);
                    match &answer {
                        Ok(_) => pulse.answered(clock.elapsed(), lease),
                        Err(why) => {
                            event::heartbeat_failed();
                            pulse.failed(&why.to_string());
                        }
                    }
                    let lost = matches!(answer, Err(Error::LeaseLost));
                    if beats.send(Beat { sent, answer }).is_err() || lost {
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
