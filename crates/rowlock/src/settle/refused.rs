//! Verdicts that the store refuses for good, as under a trigger that raises or a constraint that others added.
//!
//! The job stays claimed meanwhile: its handler has run, and running it again would not help. A verdict is tried again
//! after growing waits; then a plainer one is tried beside it, which charges the attempt and says why. While both are
//! refused the job is held, and the reason is written to its row for `doctor` and for people.

use std::sync::Arc;
use std::time::Duration;

use super::{Answer, Settled, Settlement, Verdict, after_error, until_written};
use crate::claim::ClaimedJob;
use crate::clock::{Clock, Elapsed};
use crate::engine::Dispatch;
use crate::error::Error;
use crate::event;
use crate::job::{ErrorKind, JobError, Name};
use crate::log;

/// What the error of such a job begins with.
pub const UNWRITTEN: &str = "the verdict could not be written";

/// So often a verdict is tried before another is.
const ALONE: u32 = 5;
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(120);

/// The wait after so many refusals.
pub(crate) fn pause(refusals: u32) -> Duration {
    SHORTEST
        .saturating_mul(1 << refusals.saturating_sub(1).min(16))
        .min(LONGEST)
}

/// A verdict that was refused.
pub(super) struct Refused {
    settlement: Settlement,
    job: Arc<ClaimedJob>,
    refusals: u32,
    noted: bool,
    /// When it is tried again.
    pub(super) at: Elapsed,
}

impl Refused {
    pub(super) fn new(
        settlement: Settlement,
        job: Arc<ClaimedJob>,
        why: &Error,
        now: Elapsed,
    ) -> Self {
        event::refused();
        log::error!(job = %job.id, kind = %job.kind, %why, "the store refuses a verdict, it is tried again");
        Self {
            settlement,
            job,
            refusals: 1,
            noted: false,
            at: now + pause(1),
        }
    }

    /// Whether nothing that could be said of the job was accepted.
    pub(super) fn is_held(&self) -> bool {
        self.refusals >= ALONE
    }

    /// What its job is.
    pub(super) fn kind(&self) -> &Name {
        &self.job.kind
    }

    /// The verdict.
    pub(super) fn settlement(&self) -> &Settlement {
        &self.settlement
    }

    /// Whether an attempt may be charged for it. What the store says of this very row it says again; any other error has
    /// to come back after the row has taken a note, so that no verdict is given up because the store was away.
    fn charges(&self, why: &Error) -> bool {
        match why {
            Error::Bug(_) | Error::Invalid(_) => true,
            // A lock that is held for long, or a statement that takes too long: they end.
            Error::Unavailable(_) => false,
            _ => self.noted,
        }
    }

    /// Another try. `last`: there will be no other, so that the plainer verdict is tried at once.
    pub(super) async fn again(
        mut self,
        engine: &dyn Dispatch,
        clock: &Clock,
        last: bool,
    ) -> Result<Answer, Self> {
        let (id, token) = (self.settlement.id, self.settlement.token);
        let why = match write(engine, clock, &self.settlement).await {
            Ok(settled) => return Ok((id, token, settled)),
            Err(why) => why,
        };
        if self.refusals + 1 >= ALONE || last {
            let now = clock.now();
            let error = JobError::new(
                self.job.attempt,
                now,
                ErrorKind::Error,
                &format!("{UNWRITTEN}: {why}"),
            );
            if self.charges(&why) {
                let plainer = Settlement {
                    verdict: plainer(&self.job, &self.settlement.verdict, error.clone(), now),
                    ..self.settlement.clone()
                };
                if write(engine, clock, &plainer).await.is_ok() {
                    log::error!(job = %id, kind = %self.job.kind, %why, "the verdict was not written, the attempt is charged");
                    return Ok((id, token, Settled::LeaseLost));
                }
            }
            // A dispatcher has no row of its own to write it to.
            if !self.noted && !engine.capabilities().drained {
                let verdict = Verdict::Note(error);
                let note = Settlement::unbegun(id, token, verdict);
                self.noted = engine.settle(vec![note]).await.is_ok();
            }
        }
        self.refusals = self.refusals.saturating_add(1);
        self.at = clock.elapsed() + pause(self.refusals);
        event::refused();
        log::error!(job = %id, kind = %self.job.kind, %why, refusals = self.refusals, "the store refuses a verdict, the job is held");
        Err(self)
    }
}

async fn write(
    engine: &dyn Dispatch,
    clock: &Clock,
    settlement: &Settlement,
) -> Result<Settled, Error> {
    let mut written = until_written(engine, clock, std::slice::from_ref(settlement)).await;
    written.pop().unwrap_or(Ok(Settled::LeaseLost))
}

/// What is said instead: another attempt, or the end if there is none. A job that no handler has begun pays nothing.
fn plainer(job: &ClaimedJob, verdict: &Verdict, error: JobError, now: jiff::Timestamp) -> Verdict {
    match verdict {
        Verdict::Release | Verdict::Sent | Verdict::Expired { .. } | Verdict::Note(_) => {
            verdict.clone()
        }
        Verdict::Done
        | Verdict::NotNeeded
        | Verdict::Retry { .. }
        | Verdict::Snooze(_)
        | Verdict::Fail(_)
        | Verdict::Cancelled => after_error(job, error, None, now),
    }
}
