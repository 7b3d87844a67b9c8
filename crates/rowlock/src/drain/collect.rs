//! From the sink to the store: what workers said is applied in bulk, each under its own fence.

use std::collections::HashSet;
use std::time::Duration;

use super::{Line, Report};
use crate::error::Result;
use crate::event;
use crate::job::{JobId, Token};
use crate::settle::{Settled, Settlement, Verdict};

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
        let settled = self.settle(&verdicts).await;
        crash_point!("drain.settled");
        let mut accepted = 0;
        for (report, settled) in reports.iter().zip(settled) {
            self.note(report, settled);
            accepted += usize::from(settled == Settled::Accepted);
        }
        let refused = reports.len() - accepted;
        event::collected(&self.route, accepted, refused);
        let done: Vec<(JobId, Token)> = unique(reports);
        if let Err(why) = self.sink.forget(&done).await {
            return Err(self.down(why));
        }
        crash_point!("drain.forgotten");
        Ok((accepted, refused))
    }

    fn note(&self, report: &Report, settled: Settled) {
        let job = report.settlement.id;
        if let Some(ran) = &self.ran {
            ran.applied(report, settled, self.clock.now());
        }
        if settled == Settled::LeaseLost {
            tracing::warn!(%job, "a verdict came too late, the result is dropped");
            return;
        }
        tracing::debug!(%job, "settled");
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
