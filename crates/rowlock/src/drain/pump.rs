//! From the store to the sink: due rows are claimed in bulk and pushed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;

use super::Line;
use crate::claim::{Claim, ClaimedJob};
use crate::error::Result;
use crate::event;
use crate::job::{ErrorKind, JobError, JobId, Token};
use crate::log;
use crate::run::fetch::fetch;
use crate::settle::{Settlement, Verdict};

/// The most suspects in one claim.
const SUSPECTS: usize = 100;

/// What one round of pumping did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pumped {
    /// Jobs that the sink has now.
    pub sent: usize,
    /// Whether more may be waiting.
    pub more: bool,
    /// Whether the sink has no room: nothing was claimed.
    pub full: bool,
    /// When the next job is due, if that is known.
    pub next_due: Option<Timestamp>,
    /// How long to wait for a wake-up, if the engine has an opinion.
    pub rest: Option<Duration>,
}

impl Line {
    /// Claims what is due and sends it.
    ///
    /// # Errors
    /// Whatever the store or the sink answers. Nothing is lost: what was claimed and isn't in the sink
    /// goes back with the next [`adopt`](Self::adopt).
    pub async fn pump(&self) -> Result<Pumped> {
        let ready = self.ready.load(Ordering::Relaxed);
        let pace = self.pace.load(Ordering::Relaxed).clamp(1, self.batch);
        let limit = self.ahead.saturating_sub(ready).min(pace);
        if limit == 0 {
            let fill = match self.sink.fill().await {
                Ok(fill) => fill,
                Err(why) => return Err(self.down(why)),
            };
            let ready = usize::try_from(fill.ready + fill.reports).unwrap_or(usize::MAX);
            self.ready.store(ready, Ordering::Relaxed);
            return Ok(Pumped {
                full: ready >= self.ahead,
                more: ready < self.ahead,
                ..Pumped::default()
            });
        }
        // The time runs from before the claim, so that nobody can think it older than we do.
        let began = self.clock.elapsed();
        let (ordinary, suspects) = (self.wanted(limit, false)?, self.wanted(SUSPECTS, true)?);
        let haul = fetch(&*self.engine, ordinary, Some(suspects)).await;
        let mut haul = haul.inspect_err(|_| {
            // One of the two claims may have brought something all the same.
            self.doubt.store(true, Ordering::Relaxed);
        })?;
        let pumped = Pumped {
            sent: 0,
            more: haul.full,
            full: false,
            next_due: haul.next_due,
            rest: haul.rest,
        };
        if haul.jobs.is_empty() {
            return Ok(pumped);
        }
        crash_point!("drain.claimed");
        self.leave_out(&mut haul.jobs).await;
        let taken = self.clock.elapsed().saturating_sub(began);
        let sent = self
            .send(haul.jobs, self.patience().saturating_sub(taken))
            .await?;
        Ok(Pumped { sent, ..pumped })
    }

    /// Ends what its row needs no more.
    async fn leave_out(&self, jobs: &mut Vec<ClaimedJob>) {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("drain.claims") {
            self.forget_below_the_mark(jobs);
        }
        let Some(questions) = &self.questions else {
            return;
        };
        let gone = questions.not_needed(jobs).await;
        let gone: Vec<Settlement> = jobs
            .extract_if(.., |job| gone.contains(&job.id))
            .map(|job| verdict(&job, Verdict::NotNeeded))
            .collect();
        self.settle(&gone).await;
    }

    async fn send(&self, jobs: Vec<ClaimedJob>, within: Duration) -> Result<usize> {
        if jobs.is_empty() {
            return Ok(0);
        }
        if within.is_zero() {
            let back: Vec<Settlement> = jobs
                .iter()
                .map(|job| verdict(job, Verdict::Release))
                .collect();
            self.settle(&back).await;
            self.pace.store(jobs.len() / 2, Ordering::Relaxed);
            log::warn!(route = %self.route, jobs = jobs.len(), "a claim took too long to be sent");
            return Ok(0);
        }
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("drain.send_first") {
            let gone: Vec<Settlement> =
                jobs.iter().map(|job| verdict(job, Verdict::Sent)).collect();
            self.settle(&gone).await;
        }
        crash_point!("drain.sending");
        let pushed = match self.sink.push(&jobs, within).await {
            Ok(pushed) => pushed,
            Err(why) => {
                // It may be the size that it can't bear.
                self.pace.store(jobs.len() / 2, Ordering::Relaxed);
                return Err(self.down(why));
            }
        };
        crash_point!("drain.sent");
        let pace = self.pace.load(Ordering::Relaxed);
        self.pace.store(
            pace.saturating_mul(2).clamp(1, self.batch),
            Ordering::Relaxed,
        );
        self.ready.store(pushed.ready, Ordering::Relaxed);
        let mut ends = Vec::new();
        for job in &jobs {
            match pushed.refused.iter().find(|(id, _)| *id == job.id) {
                Some((id, why)) => {
                    let error = JobError::new(job.attempt, self.clock.now(), ErrorKind::Error, why);
                    ends.push(verdict(job, Verdict::Fail(error)));
                    log::error!(job = %id, kind = %job.kind, why, "a job can't be sent");
                }
                None if self.sink.reports_back() => {}
                None => ends.push(verdict(job, Verdict::Sent)),
            }
        }
        self.settle(&ends).await;
        let ended = |each: &&Settlement| each.verdict == Verdict::Sent;
        let gone: Vec<(JobId, Token)> = ends
            .iter()
            .filter(ended)
            .map(|each| (each.id, each.token))
            .collect();
        if !gone.is_empty()
            && let Err(why) = self.sink.forget(&gone).await
        {
            log::debug!(%why, "a sink remembers for longer that it was sent jobs");
        }
        let sent = jobs.len() - pushed.refused.len();
        event::drained(&self.route, sent);
        Ok(sent)
    }

    fn wanted(&self, limit: usize, suspect: bool) -> Result<Claim> {
        Ok(Claim {
            worker: self.holder.clone(),
            token: Token::random()?,
            kinds: Vec::new(),
            queues: Vec::new(),
            order: Default::default(),
            limit,
            caps: Default::default(),
            suspect,
            thorough: false,
            route: Some(self.route.clone()),
        })
    }

    /// What a drain would do that remembers how far it got instead of claiming.
    #[cfg(feature = "test-hooks")]
    fn forget_below_the_mark(&self, jobs: &mut Vec<ClaimedJob>) {
        let mark = self.highest.load(Ordering::Relaxed);
        let highest = jobs.iter().map(|job| job.id.0).max().unwrap_or(0);
        jobs.retain(|job| job.id.0 > mark);
        self.highest.fetch_max(highest, Ordering::Relaxed);
    }
}

pub(super) fn verdict(job: &ClaimedJob, verdict: Verdict) -> Settlement {
    Settlement::unbegun(job.id, job.token, verdict)
}
