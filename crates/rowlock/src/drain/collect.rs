//! From the sink to the store: what workers said is applied in bulk, each under its own fence.

use std::collections::{HashMap, HashSet};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use super::{Line, Report};
use crate::clock::{self, Elapsed};
use crate::error::{Error, Result};
use crate::event;
use crate::job::{Backoff, ErrorKind, JobError, JobId, Token};
use crate::log;
use crate::settle::{Settled, Settlement, UNWRITTEN, Verdict, pause, until_written};

/// The most reports at once.
const MOST: usize = 1_000;
/// How often it is looked for others while those that come are held.
const HELD_PAUSE: Duration = Duration::from_millis(200);

impl Line {
    /// Applies what workers have said; waits up to `wait` for the first of it. Says how many were
    /// accepted and how many refused.
    ///
    /// # Errors
    /// Whatever the sink answers. Reports come again until they are forgotten, and one that was applied
    /// already is refused.
    pub async fn collect(&self, wait: Duration) -> Result<(usize, usize)> {
        let reports = self.reported(wait).await?;
        self.apply(&reports).await
    }

    /// What workers have said; waits up to `wait` for the first of it. Whoever gives up waiting loses
    /// nothing: it comes again.
    pub(super) async fn reported(&self, wait: Duration) -> Result<Vec<Report>> {
        let held = self.refused().len();
        let most = MOST + held;
        let reports = self.sink.reports(most, wait).await;
        let mut reports = reports.map_err(|why| self.down(why))?;
        if held == 0 {
            return Ok(reports);
        }
        // What the store refuses stays in the sink and comes again each time, before all that is newer.
        let now = self.clock.elapsed();
        {
            let mut refused = self.refused();
            if reports.len() < most {
                let there: HashSet<_> = reports.iter().map(reference).collect();
                refused.retain(|job, _| there.contains(job));
            }
            reports.retain(|report| {
                let known = refused.get(&reference(report));
                known.is_none_or(|(_, at)| *at <= now)
            });
        }
        if reports.is_empty() {
            self.clock.sleep(wait.min(HELD_PAUSE)).await;
        }
        Ok(reports)
    }

    fn refused(&self) -> MutexGuard<'_, HashMap<(JobId, Token), (u32, Elapsed)>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is tried again after a growing pause; others go on meanwhile.
    fn hold(&self, report: &Report) {
        let now = self.clock.elapsed();
        let mut refused = self.refused();
        let (times, at) = refused.entry(reference(report)).or_default();
        *times += 1;
        *at = now + pause(*times);
    }

    /// What was begun here is to be ended: a report that was applied and isn't forgotten comes again, and
    /// would be refused then.
    pub(super) async fn apply(&self, reports: &[Report]) -> Result<(usize, usize)> {
        if reports.is_empty() {
            return Ok((0, 0));
        }
        crash_point!("drain.reported");
        let verdicts: Vec<Settlement> = reports
            .iter()
            .map(|report| report.settlement.clone())
            .collect();
        let written = until_written(&*self.engine, &self.clock, &verdicts).await;
        crash_point!("drain.settled");
        let (mut accepted, mut kept) = (0, HashSet::new());
        for (report, written) in reports.iter().zip(written) {
            let settled = match written {
                Ok(settled) => settled,
                Err(why) => match self.charge(report, &why).await {
                    Ok(()) => Settled::LeaseLost,
                    Err(_) => {
                        self.hold(report);
                        kept.insert(reference(report));
                        continue;
                    }
                },
            };
            self.note(report, settled);
            accepted += usize::from(settled == Settled::Accepted);
        }
        let refused = reports.len() - accepted - kept.len();
        event::collected(&self.route, accepted, refused);
        let mut done: Vec<(JobId, Token)> = unique(reports);
        done.retain(|each| !kept.contains(each));
        if !kept.is_empty() || !self.refused().is_empty() {
            let mut refused = self.refused();
            for job in &done {
                refused.remove(job);
            }
        }
        if let Err(why) = self.sink.forget(&done).await {
            return Err(self.down(why));
        }
        crash_point!("drain.forgotten");
        Ok((accepted, refused))
    }

    /// The store refuses what a worker said: this attempt is charged, and the job waits for another one or fails. If that
    /// is refused as well, the report stays where it is.
    async fn charge(&self, report: &Report, why: &Error) -> Result<()> {
        event::refused();
        // A lock that is held for long, or a statement that takes too long: they end.
        if let Error::Unavailable(why) = why {
            return Err(Error::Unavailable(why.clone()));
        }
        let (job, now) = (report.settlement.id, self.clock.now());
        let error = JobError::new(
            report.attempt,
            now,
            ErrorKind::Error,
            &format!("{UNWRITTEN}: {why}"),
        );
        let verdict = match &report.settlement.verdict {
            Verdict::Release => Verdict::Release,
            _ => match self.backoff(report).await? {
                None => Verdict::Fail(error),
                Some(backoff) => Verdict::Retry {
                    at: clock::add(now, backoff.wait_with_jitter(report.attempt)),
                    error,
                },
            },
        };
        let plainer = Settlement {
            verdict,
            ..report.settlement.clone()
        };
        let mut written = until_written(&*self.engine, &self.clock, &[plainer]).await;
        let charged = written.pop().unwrap_or(Ok(Settled::LeaseLost));
        match &charged {
            Ok(_) => {
                log::error!(%job, %why, "the verdict was not written, the attempt is charged");
            }
            Err(_) => {
                log::error!(%job, %why, "the store refuses a verdict, it stays in the sink")
            }
        }
        charged.map(|_| ())
    }

    /// How its next attempt waits, as its kind says; nothing after the last one, at which a worker that says "done"
    /// doesn't look.
    async fn backoff(&self, report: &Report) -> Result<Option<Backoff>> {
        let operate = self.rowlock.operate();
        let job = operate.job(report.settlement.id).await?;
        if job.is_some_and(|job| report.attempt >= job.max_attempts) {
            return Ok(None);
        }
        let mut kinds = operate.kinds().await?.into_iter();
        let kind = kinds.find(|kind| kind.name == report.kind);
        Ok(Some(kind.map(|kind| kind.backoff).unwrap_or_default()))
    }

    fn note(&self, report: &Report, settled: Settled) {
        let job = report.settlement.id;
        if let Some(ran) = &self.ran {
            ran.applied(report, settled, self.clock.now());
        }
        if settled == Settled::LeaseLost {
            log::warn!(%job, "a verdict came too late, the result is dropped");
            return;
        }
        log::debug!(%job, "settled");
        let done = report.settlement.verdict == Verdict::Done;
        if done
            && let (Some(questions), Some(answers)) = (&self.questions, &self.answers)
            && let Some(key) = questions.after_key(&report.kind, report.unique_key.as_deref())
        {
            answers.push(key);
        }
    }
}

fn reference(report: &Report) -> (JobId, Token) {
    (report.settlement.id, report.settlement.token)
}

/// A job may have been reported twice, under two tokens.
fn unique(reports: &[Report]) -> Vec<(JobId, Token)> {
    let all = reports.iter();
    let refs: HashSet<(JobId, Token)> = all.map(reference).collect();
    refs.into_iter().collect()
}
