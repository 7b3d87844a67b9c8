//! From the sink to the store: what workers said is applied in bulk, each under its own fence.

use std::collections::HashSet;
use std::time::Duration;

use super::{Line, Report};
use crate::clock;
use crate::error::{Error, Result};
use crate::event;
use crate::job::{Backoff, ErrorKind, JobError, JobId, Token};
use crate::log;
use crate::settle::{Settled, Settlement, UNWRITTEN, Verdict, until_written};

/// The most reports at once.
const MOST: usize = 1_000;

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
        let reports = self.sink.reports(MOST, wait).await;
        reports.map_err(|why| self.down(why))
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
        let (mut accepted, mut kept, mut last) = (0, HashSet::new(), None);
        for (report, written) in reports.iter().zip(written) {
            let settled = match written {
                Ok(settled) => settled,
                Err(why) => match self.charge(report, &why).await {
                    Ok(()) => Settled::LeaseLost,
                    Err(why) => {
                        kept.insert((report.settlement.id, report.settlement.token));
                        last = Some(why);
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
        if let Err(why) = self.sink.forget(&done).await {
            return Err(self.down(why));
        }
        crash_point!("drain.forgotten");
        match last {
            // They come again; whoever collects takes its time.
            Some(why) if accepted == 0 => Err(why),
            _ => Ok((accepted, refused)),
        }
    }

    /// The store refuses what a worker said: the job waits for another attempt, and this one is charged. If that is
    /// refused as well, the report stays where it is.
    async fn charge(&self, report: &Report, why: &Error) -> Result<()> {
        event::refused();
        let (job, now) = (report.settlement.id, self.clock.now());
        let error = JobError::new(
            report.attempt,
            now,
            ErrorKind::Error,
            &format!("{UNWRITTEN}: {why}"),
        );
        let verdict = match &report.settlement.verdict {
            Verdict::Release => Verdict::Release,
            _ => Verdict::Retry {
                at: clock::add(now, Backoff::default().wait_with_jitter(report.attempt)),
                error,
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

/// A job may have been reported twice, under two tokens.
fn unique(reports: &[Report]) -> Vec<(JobId, Token)> {
    let all = reports.iter();
    let refs: HashSet<(JobId, Token)> = all
        .map(|report| (report.settlement.id, report.settlement.token))
        .collect();
    refs.into_iter().collect()
}
