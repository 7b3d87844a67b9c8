//! What was sent and is held no more: the sink is asked, and the store gets it back.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Hold, Line};
use crate::clock;
use crate::engine::SentJob;
use crate::error::Result;
use crate::event;
use crate::job::{ErrorKind, JobError, JobId, Token};
use crate::log;
use crate::settle::{Settled, Settlement, Verdict};

/// The most jobs of one question.
const PAGE: usize = 1_000;

/// What became of jobs that were asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Lost by the sink, and back in the store.
    pub lost: usize,
    /// Not in the sink, and claimed so lately that they may still be on their way.
    pub young: usize,
}

impl Line {
    /// Asks the sink about everything that was sent by this route, whoever sent it: what it still holds
    /// stays, what it has lost goes back to be sent again.
    ///
    /// # Errors
    /// Whatever the store or the sink answers.
    pub async fn adopt(&self) -> Result<Adopted> {
        let in_doubt = self.doubt.swap(false, Ordering::Relaxed);
        let adopted = async {
            if in_doubt {
                self.weed().await?;
            }
            self.ask_about_all().await
        };
        let adopted = adopted.await;
        if in_doubt && adopted.is_err() {
            self.doubt.store(true, Ordering::Relaxed);
        }
        adopted
    }

    async fn ask_about_all(&self) -> Result<Adopted> {
        let (mut lost, mut young) = (0, 0);
        let mut after = None;
        loop {
            let page = self.routes.sent(&self.holder, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            let refs: Vec<(JobId, Token)> = page.iter().map(|job| (job.id, job.token)).collect();
            let holds = match self.sink.holds(&refs).await {
                Ok(holds) => holds,
                Err(why) => return Err(self.down(why)),
            };
            let mut verdicts = Vec::new();
            for (job, hold) in page.iter().zip(holds) {
                match hold {
                    // The dead's are found with their workers.
                    Hold::Held | Hold::Bereft => {}
                    Hold::Gone if self.may_still_arrive(job.age) => young += 1,
                    Hold::Gone => verdicts.push(verdict(job, Verdict::Release)),
                    Hold::Delivered => verdicts.push(verdict(job, Verdict::Sent)),
                }
            }
            let answers = self.settle(&verdicts).await;
            let both = verdicts.iter().zip(answers);
            lost += both
                .filter(|(each, answer)| {
                    each.verdict == Verdict::Release && *answer == Settled::Accepted
                })
                .count();
            crash_point!("drain.adopted");
        }
        if lost > 0 {
            log::warn!(route = %self.route, jobs = lost, "the sink had lost jobs, they are sent again");
            event::lost_by_sink(&self.route, lost);
            if let Err(why) = self.sink.count_lost(lost).await {
                log::debug!(route = %self.route, %why, "the sink keeps no count of them");
            }
        }
        Ok(Adopted { lost, young })
    }

    /// Has the sink forget what waits there and is the store's again: it may have come back from an older
    /// memory, or a route was given up while it was away.
    async fn weed(&self) -> Result<()> {
        let mut waiting = Vec::new();
        let mut from = 0;
        loop {
            let (next, some) = match self.sink.waiting(from).await {
                Ok(found) => found,
                Err(why) => return Err(self.down(why)),
            };
            waiting.extend(some);
            from = next;
            if from == 0 {
                break;
            }
        }
        // The sink was asked first: what has been sent since then isn't among these.
        let mut after = None;
        let mut sent = HashSet::new();
        while !waiting.is_empty() {
            let page = self.routes.sent(&self.holder, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            sent.extend(page.iter().map(|job| (job.id, job.token)));
        }
        waiting.retain(|job| !sent.contains(job));
        if waiting.is_empty() {
            return Ok(());
        }
        if let Err(why) = self.sink.forget(&waiting).await {
            return Err(self.down(why));
        }
        log::warn!(route = %self.route, jobs = waiting.len(), "the sink forgets jobs that are the store's again");
        Ok(())
    }

    /// A push under way ends within the patience, counted from before the claim. A clock that went
    /// backwards tells nothing: then it is taken for lost, and the fence keeps two from counting.
    fn may_still_arrive(&self, age: Option<Duration>) -> bool {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("drain.patience") {
            return false;
        }
        age.is_some_and(|age| age < self.certain_after())
    }

    /// What isn't in the sink so long after its claim never comes.
    pub(super) fn certain_after(&self) -> Duration {
        self.patience() * 5 / 4
    }

    /// Gives back what workers of the sink have died with. Says how many jobs that were.
    ///
    /// # Errors
    /// Whatever the sink answers.
    pub async fn bury(&self) -> Result<usize> {
        let bereft = match self.sink.bereft(PAGE).await {
            Ok(bereft) => bereft,
            Err(why) => return Err(self.down(why)),
        };
        if bereft.is_empty() {
            return Ok(0);
        }
        let verdicts: Vec<Settlement> = bereft.iter().map(|job| self.expired(job)).collect();
        self.settle(&verdicts).await;
        crash_point!("drain.buried");
        let refs: Vec<(JobId, Token)> = bereft.iter().map(|job| (job.id, job.token)).collect();
        if let Err(why) = self.sink.forget(&refs).await {
            return Err(self.down(why));
        }
        log::warn!(route = %self.route, jobs = bereft.len(), "gave back what a dead worker had taken");
        Ok(bereft.len())
    }

    /// Only a suspect that had begun alone pays for it.
    fn expired(&self, job: &SentJob) -> Settlement {
        let now = self.clock.now();
        let error = || {
            let why = "the worker that had taken this job died";
            JobError::new(job.attempt, now, ErrorKind::Lease, why)
        };
        let charged = match job.suspect {
            false => None,
            true if job.attempt >= job.max_attempts => return verdict(job, Verdict::Fail(error())),
            true => {
                let wait = job.backoff.wait_with_jitter(job.attempt);
                Some((clock::add(now, wait), error()))
            }
        };
        verdict(job, Verdict::Expired { charged })
    }
}

fn verdict(job: &SentJob, verdict: Verdict) -> Settlement {
    Settlement::unbegun(job.id, job.token, verdict)
}
