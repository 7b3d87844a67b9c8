//! What a check has found.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::job::JobId;

/// How many jobs, or sentences, are shown of each finding.
pub const SHOWN: usize = 10;

/// What must always hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Invariant {
    /// No acknowledged job is missing.
    I1,
    /// Nothing from a rolled-back transaction ran.
    I2,
    /// One accepted outcome per job, and terminal stays terminal.
    I3,
    /// A token is used by one claim only, and charged attempts never pass the maximum.
    I4,
    /// The queue has drained.
    I5,
    /// No tick of a cron ran twice.
    I6,
    /// The store's own integrity check is clean.
    I7,
}

impl Invariant {
    /// What holds, in words.
    #[must_use]
    pub fn holds(self) -> &'static str {
        match self {
            Self::I1 => "no acknowledged job is missing",
            Self::I2 => "nothing from a rolled-back transaction ran",
            Self::I3 => "one accepted outcome per job, and terminal stays terminal",
            Self::I4 => "a token is used by one claim only, and attempts never pass the maximum",
            Self::I5 => "the queue has drained",
            Self::I6 => "no tick of a cron ran twice",
            Self::I7 => "the store's own integrity check is clean",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// One way in which an invariant is broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What is wrong.
    pub what: String,
    /// How many jobs it is about; none when it is about the store as a whole.
    pub jobs: u64,
    /// The first of them.
    pub ids: Vec<JobId>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.jobs == 0 {
            return Ok(());
        }
        let s = if self.jobs == 1 { "" } else { "s" };
        let ids: Vec<String> = self.ids.iter().map(JobId::to_string).collect();
        write!(f, ": {} job{s}: {}", self.jobs, ids.join(", "))?;
        match usize::try_from(self.jobs) {
            Ok(jobs) if jobs == ids.len() => Ok(()),
            _ => f.write_str(", ..."),
        }
    }
}

/// What a check says about one invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Which one.
    pub invariant: Invariant,
    /// In which ways it is broken; nothing when it holds.
    pub findings: Vec<Finding>,
}

impl Serialize for Checked {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Line<'a> {
            invariant: Invariant,
            ok: bool,
            what: &'static str,
            findings: &'a [Finding],
        }
        let line = Line {
            invariant: self.invariant,
            ok: self.findings.is_empty(),
            what: self.invariant.holds(),
            findings: &self.findings,
        };
        line.serialize(serializer)
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.findings.is_empty() {
            return write!(f, "ok    {}  {}", self.invariant, self.invariant.holds());
        }
        let found: Vec<String> = self.findings.iter().map(Finding::to_string).collect();
        write!(f, "FAIL  {}  {}", self.invariant, found.join("; "))
    }
}

/// What a check says about everything it could look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// By invariant; those that need a log that wasn't given are left out. When the store is too damaged
    /// to be read through, only those are left that are known to be broken.
    pub checked: Vec<Checked>,
    /// How many jobs the store holds.
    pub jobs: u64,
    /// Of the jobs that were told to be enqueued, how many are missing.
    pub lost: u64,
    /// Of the jobs that were told to be enqueued, how many have ended.
    pub ended: u64,
}

impl Report {
    /// Whether everything holds.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.checked.iter().all(|each| each.findings.is_empty())
    }

    /// From here on this invariant is looked at.
    pub(super) fn look_at(&mut self, invariant: Invariant) {
        self.checked.push(Checked {
            invariant,
            findings: Vec::new(),
        });
    }

    /// This one couldn't be looked at.
    pub(super) fn leave_out(&mut self, invariant: Invariant) {
        self.checked.retain(|each| each.invariant != invariant);
    }

    /// Nothing is said to hold that wasn't looked at to the end.
    pub(super) fn keep_broken(&mut self) {
        self.checked.retain(|each| !each.findings.is_empty());
    }

    /// Notes that a job breaks an invariant, unless that isn't looked at.
    pub(super) fn job(&mut self, invariant: Invariant, what: &str, id: JobId) {
        let Some(findings) = self.findings(invariant) else {
            return;
        };
        let at = findings.iter().position(|finding| finding.what == what);
        let at = at.unwrap_or_else(|| {
            findings.push(Finding {
                what: what.to_owned(),
                jobs: 0,
                ids: Vec::new(),
            });
            findings.len() - 1
        });
        let finding = &mut findings[at];
        finding.jobs += 1;
        // The smallest, so that two runs say the same.
        let place = finding.ids.partition_point(|known| *known < id);
        finding.ids.insert(place, id);
        finding.ids.truncate(SHOWN);
    }

    /// Notes that the store as a whole breaks an invariant.
    pub(super) fn whole(&mut self, invariant: Invariant, what: String) {
        if let Some(findings) = self.findings(invariant)
            && findings.len() < SHOWN
        {
            let (jobs, ids) = (0, Vec::new());
            findings.push(Finding { what, jobs, ids });
        }
    }

    fn findings(&mut self, invariant: Invariant) -> Option<&mut Vec<Finding>> {
        let mut checked = self.checked.iter_mut();
        let checked = checked.find(|each| each.invariant == invariant)?;
        Some(&mut checked.findings)
    }
}
