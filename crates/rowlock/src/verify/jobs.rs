//! The invariants, job by job.

use std::collections::{HashMap, HashSet};

use super::claims::RanLog;
use super::ran::Ending;
use super::report::{Invariant, Report};
use super::told::{ToldLog, Word};
use crate::engine::Fact;
use crate::job::{JobId, JobState, Token};

use Invariant::{I1, I2, I3, I4, I5};

/// A check that is under way: the store's rows go in, by rising id.
pub(super) struct Look<'a> {
    report: Report,
    told: Option<&'a ToldLog>,
    ran: Option<&'a RanLog>,
    /// Jobs of the logs that the store has.
    seen: HashSet<JobId>,
    /// Who holds rows under a token.
    holders: HashMap<Token, String>,
}

impl<'a> Look<'a> {
    pub(super) fn new(report: Report, told: Option<&'a ToldLog>, ran: Option<&'a RanLog>) -> Self {
        Self {
            report,
            told,
            ran,
            seen: HashSet::new(),
            holders: HashMap::new(),
        }
    }

    /// All rows of one job.
    pub(super) fn stored(&mut self, rows: &[Fact]) {
        let [row, more @ ..] = rows else { return };
        let id = row.id;
        self.report.jobs += 1;
        if !more.is_empty() {
            self.report.job(I3, "both live and ended", id);
        }
        for row in rows {
            self.row(row);
        }
        let word = self.word(id);
        if word.is_some() || self.claims(id).is_some() {
            self.seen.insert(id);
        }
        if more.is_empty() {
            self.outcome(id, Some(row));
        }
        self.attempts(row);
        if word.is_some_and(|word| word.ok) {
            let waits = row.state == Some(JobState::Pending) && row.due;
            if waits {
                self.report.job(I5, "still waiting", id);
            }
            if row.state == Some(JobState::Processing) {
                self.report.job(I5, "still in a worker's hands", id);
            }
            let ended = row.state.is_some_and(JobState::is_terminal);
            self.report.ended += u64::from(ended);
        }
    }

    /// What a row can contradict by itself.
    fn row(&mut self, row: &Fact) {
        let id = row.id;
        let wrong = match (row.live, row.state) {
            (_, None) => Some("in no known state"),
            (true, Some(state)) if state.is_terminal() => Some("ended and still among the live"),
            (false, Some(state)) if !state.is_terminal() => Some("not ended and in the history"),
            _ => None,
        };
        if let Some(wrong) = wrong {
            self.report.job(I3, wrong, id);
        }
        if row.attempt < 0 || row.attempt > row.max_attempts {
            self.report.job(I4, "more attempts than it may have", id);
        }
        match (row.state, row.token, &row.locked_by) {
            (Some(JobState::Processing), Some(token), Some(worker)) => {
                let holder = self.holders.entry(token).or_insert_with(|| worker.clone());
                if holder != worker {
                    self.report.job(I4, "two workers hold the same token", id);
                }
            }
            (Some(JobState::Processing), ..) => {
                self.report.job(I4, "processing in nobody's hands", id);
            }
            (_, None, None) => {}
            _ => self.report.job(I4, "waiting and in a worker's hands", id),
        }
    }

    /// What the ran log says about attempts and tokens.
    fn attempts(&mut self, row: &Fact) {
        let Some(claims) = self.claims(row.id) else {
            return;
        };
        let most = claims.iter().map(|claim| i64::from(claim.attempt)).max();
        if most.is_some_and(|most| most > row.max_attempts) {
            self.report
                .job(I4, "ran more attempts than it may have", row.id);
        }
    }

    /// Compares the accepted outcomes with each other and with the store.
    fn outcome(&mut self, id: JobId, row: Option<&Fact>) {
        let Some(ran) = self.ran else { return };
        let accepted = ran.accepted(id);
        let ends = |ending: &&Ending| ending.is_terminal();
        let terminal = accepted.iter().filter(ends).count();
        let redrives = self.word(id).map_or(0, |word| word.redrives);
        let redrives = usize::try_from(redrives).unwrap_or(usize::MAX);
        let last = accepted.last().filter(ends);
        if terminal > redrives.saturating_add(1) {
            self.report.job(I3, "more than one accepted outcome", id);
            return;
        }
        // A redrive opens a job again; whether it came before or after the last outcome is known
        // only once there are as many outcomes as it allows.
        if terminal != redrives.saturating_add(1) {
            return;
        }
        let Some(last) = last else {
            self.report.job(I3, "went on after its end", id);
            return;
        };
        let Some(row) = row else { return };
        let state = match last {
            Ending::Fail => JobState::Failed,
            Ending::Cancelled => JobState::Cancelled,
            _ => JobState::Completed,
        };
        if row.state != Some(state) || row.live {
            self.report
                .job(I3, "the store and the accepted outcome disagree", id);
        }
    }

    /// What was found so far; what the store doesn't have is not known.
    pub(super) fn stop(self) -> Report {
        self.report
    }

    /// What the store doesn't have, and what the logs say by themselves.
    pub(super) fn finish(mut self) -> Report {
        self.missing();
        let Some(ran) = self.ran else {
            return self.report;
        };
        for (id, claims) in &ran.jobs {
            if !self.seen.contains(id) {
                self.outcome(*id, None);
            }
            if claims.iter().any(|claim| claim.shared) {
                self.report.job(I4, "two workers used the same token", *id);
            } else if claims.iter().any(|claim| claim.starts > 1) {
                self.report.job(I4, "begun twice under one token", *id);
            }
            let word = self.word(*id).unwrap_or_default();
            if word.ok {
                continue;
            }
            if word.rolled_back {
                self.report.job(I2, "rolled back, and ran", *id);
            } else if !self.seen.contains(id) && !ran.has_ended(*id) && !word.may_be_missing {
                // Whatever the store has accepted, called off or removed, it once had.
                self.report.job(I2, "ran, and nobody staged it", *id);
            }
        }
        self.report
    }

    fn missing(&mut self) {
        let Some(told) = self.told else { return };
        for (id, word) in &told.jobs {
            if !word.ok || self.seen.contains(id) {
                continue;
            }
            // An end that was accepted, and pruned since, is no loss.
            let ended = self.ran.is_some_and(|ran| ran.has_ended(*id));
            self.report.ended += u64::from(ended);
            if !ended && !word.may_be_missing {
                self.report.lost += 1;
                self.report.job(I1, "acknowledged and missing", *id);
            }
        }
    }

    fn word(&self, id: JobId) -> Option<Word> {
        self.told.and_then(|told| told.jobs.get(&id)).copied()
    }

    fn claims(&self, id: JobId) -> Option<&'a [super::claims::Claim]> {
        let claims = self.ran?.jobs.get(&id)?;
        Some(claims)
    }
}
