//! The end of a shift: running jobs may finish within the grace, the rest is given back.

use std::slice;

use tokio::sync::mpsc;

use super::{LAST_HANDLERS, Shift, settlement};
use crate::log;
use crate::run::Stop;
use crate::run::attempt::{Ended, Order};
use crate::settle::{Answer, Group, Verdict};

impl Shift {
    /// Lets running jobs finish within the grace, and gives back the rest.
    pub(super) async fn finish(
        &mut self,
        settling: &Group,
        settled: &mut mpsc::UnboundedReceiver<Vec<Answer>>,
        endings: &mut mpsc::UnboundedReceiver<Ended>,
        stop: &mut Stop,
    ) {
        for job in self.registry.take_all_ready() {
            settling.push(settlement(&job, Verdict::Release), job);
        }
        let clock = self.clock.clone();
        let grace = clock.sleep(self.options.grace);
        tokio::pin!(grace);
        // A handler that blocks its thread hears no order: its rows go back all the same.
        let given_up = clock.sleep(self.options.grace + LAST_HANDLERS);
        tokio::pin!(given_up);
        let mut patient = true;
        while self.registry.unfinished() > 0 {
            tokio::select! {
                biased;
                Some(ended) = endings.recv() => {
                    self.registry.reported(slice::from_ref(&ended));
                    self.end(settling, ended);
                }
                Some(answers) = settled.recv() => self.count(&answers),
                // A lease can be lost, and a cancel asked for, during the grace as well.
                Some(beat) = self.beats.recv() => {
                    if self.beat(settling, beat) {
                        let jobs = self.registry.held();
                        self.registry.forget();
                        log::warn!(jobs, "lease lost while stopping");
                    }
                }
                () = stop.asked_twice(), if patient => {
                    patient = false;
                    self.registry.order_all(Order::Release);
                }
                () = &mut given_up => {
                    log::error!(jobs = self.registry.running(), "handlers that don't end are left behind");
                    return;
                }
                () = &mut grace, if patient => {
                    patient = false;
                    let jobs = self.registry.running();
                    self.registry.order_all(Order::Release);
                    log::warn!(jobs, "grace is over, giving back what runs");
                }
            }
        }
        self.adopt_orphaned(settling);
        self.registry.close();
        // One that lost its lease may still be at it.
        if clock
            .timeout(LAST_HANDLERS, self.slots.join())
            .await
            .is_none()
        {
            log::error!("handlers that don't end are left behind");
        }
    }

    pub(super) async fn close_handlers(&self) {
        let closed = async {
            for handler in self.bench.handlers.values() {
                handler.close().await;
            }
        };
        if self.clock.timeout(LAST_HANDLERS, closed).await.is_none() {
            log::error!("a handler didn't end in time");
        }
    }
}
