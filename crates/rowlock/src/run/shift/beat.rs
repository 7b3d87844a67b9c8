//! What a heartbeat's answer asks of the worker.

use super::{Shift, settlement};
use crate::error::Error;
use crate::log;
use crate::run::attempt::{Order, panicked};
use crate::run::heartbeat::Beat;
use crate::settle::{Group, Verdict};

impl Shift {
    /// Does what a beat's answer asks for. Whether the lease is lost, or as good as lost.
    pub(super) fn beat(&mut self, settling: &Group, beat: Beat) -> bool {
        let Beat { sent, answer } = beat;
        match answer {
            Ok(beat) => {
                self.beaten = sent;
                self.adopt_orphaned(settling);
                for job in self.registry.take_ready(&beat.cancel_requested) {
                    settling.push(settlement(&job, Verdict::Cancelled), job);
                }
                for id in beat.cancel_requested {
                    self.registry.order(id, Order::Cancel);
                }
                for job in self.registry.take_ready(&beat.stopped) {
                    settling.push(settlement(&job, Verdict::Release), job);
                }
                for job in self.surplus() {
                    settling.push(settlement(&job, Verdict::Release), job);
                }
                if beat.released > 0 {
                    let released = beat.released;
                    log::warn!(released, "released claims whose answer was lost");
                }
                false
            }
            Err(Error::LeaseLost) => true,
            // A busy file stops everybody's lease alike. A store that is gone, or a server that counts
            // the lease, stops only ours: others may see it, so the handlers end before the lease does.
            Err(why) => {
                let silent = self.clock.elapsed().saturating_sub(self.beaten);
                let counts = matches!(why, Error::Unreachable(_) | Error::Schema(_))
                    || self.engine.capabilities().server_clock;
                #[cfg(feature = "test-hooks")]
                let counts = counts && !crate::hooks::switched_off("beat.lets_go");
                log::error!(%why, "heartbeat failed");
                counts && silent >= self.options.lease * 2 / 3
            }
        }
    }

    /// Jobs whose slots have panicked wait for another attempt, as after a panic of their handlers.
    pub(super) fn adopt_orphaned(&mut self, settling: &Group) {
        for job in self.registry.take_orphaned() {
            let ended = panicked(job, "the worker's slot panicked", self.clock.now());
            self.end(settling, ended);
        }
    }
}
