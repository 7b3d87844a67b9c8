//! The ran log: what workers did. Fed by the worker itself, see [`Options::ran`](crate::run::Options).

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::lines::Log;
use crate::claim::{ClaimedJob, WorkerId};
use crate::drain::Report;
use crate::error::Result;
use crate::job::{JobId, Token};
use crate::log;
use crate::settle::{Settled, Verdict};

/// Whether an attempt begins or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The handler is about to run.
    Start,
    /// The store has answered to what came of it.
    End,
}

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The work is done.
    Done,
    /// There was nothing left to do.
    NotNeeded,
    /// Completed in a transaction of the handler's.
    CompletedIn,
    /// It will never work.
    Fail,
    /// Called off.
    #[serde(alias = "cancel")]
    Cancelled,
    /// A foreign system has it now.
    Sent,
    /// To be tried again.
    Retry,
    /// Not now.
    Snooze,
    /// Given back by a worker that stops.
    Release,
    /// The worker heard that its lease was lost, and asked for nothing.
    Dropped,
}

impl Ending {
    /// Whether the job has ended by it, if it was accepted.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        !matches!(
            self,
            Self::Retry | Self::Snooze | Self::Release | Self::Dropped
        )
    }
}

impl From<&Verdict> for Ending {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Done => Self::Done,
            Verdict::NotNeeded => Self::NotNeeded,
            Verdict::Retry { .. } => Self::Retry,
            Verdict::Snooze(_) => Self::Snooze,
            Verdict::Fail(_) => Self::Fail,
            Verdict::Cancelled => Self::Cancelled,
            Verdict::Release => Self::Release,
            Verdict::Sent => Self::Sent,
            Verdict::Expired { .. } | Verdict::Note(_) => Self::Dropped,
        }
    }
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event<'a> {
    /// When.
    pub t: Timestamp,
    /// The job.
    pub id: JobId,
    /// The claim's fence.
    pub token: Token,
    /// The attempt's number.
    pub attempt: u32,
    /// Who ran it.
    pub worker: Cow<'a, str>,
    /// Whether it begins or has ended.
    pub event: Phase,
    /// What came of it, at an end.
    #[serde(default)]
    pub outcome: Option<Ending>,
    /// Whether the store took it, at an end.
    #[serde(default)]
    pub accepted: Option<bool>,
}

/// Writes the ran log. Clones share the file, and so may other processes.
#[derive(Debug, Clone)]
pub struct Ran(Arc<Mutex<Running>>);

#[derive(Debug)]
struct Running {
    log: Log,
    open: HashMap<(JobId, Token), Open>,
}

/// An attempt that has begun and isn't answered.
#[derive(Debug)]
struct Open {
    attempt: u32,
    worker: WorkerId,
    asked: Option<Asked>,
}

/// What an ended attempt asks of the store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) ending: Ending,
    /// Its handler says that it was completed in a transaction of its own; if that was committed, the
    /// store refuses everything else.
    pub(crate) completed: bool,
}

impl Ran {
    /// Opens the log at its end, or makes it.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) when the file can't be opened, or ends in the middle
    /// of a line.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Running {
            log: Log::open(path.as_ref())?,
            open: HashMap::new(),
        }))))
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handler is about to run.
    pub(crate) fn start(&self, job: &ClaimedJob, worker: &WorkerId, t: Timestamp) {
        let mut running = self.running();
        let open = Open {
            attempt: job.attempt,
            worker: worker.clone(),
            asked: None,
        };
        running.write(t, (job.id, job.token), &open, Phase::Start, None);
        running.open.insert((job.id, job.token), open);
    }

    /// It has ended, and asks for this. Nothing: it was dropped, and no answer will come.
    pub(crate) fn ended(&self, job: &ClaimedJob, asked: Option<Asked>, t: Timestamp) {
        let mut running = self.running();
        let attempt = (job.id, job.token);
        if asked.is_none() {
            running.close(attempt, Ending::Dropped, false, t);
        } else if let Some(open) = running.open.get_mut(&attempt) {
            open.asked = asked;
        }
    }

    /// The store has answered. Verdicts on jobs that never began are nothing that ran.
    pub(crate) fn answered(&self, id: JobId, token: Token, settled: Settled, t: Timestamp) {
        let mut running = self.running();
        let asked = running.open.get(&(id, token)).and_then(|open| open.asked);
        let Some(asked) = asked else { return };
        let (ending, accepted) = match settled {
            Settled::LeaseLost if asked.completed => (Ending::CompletedIn, true),
            settled => (asked.ending, settled == Settled::Accepted),
        };
        running.close((id, token), ending, accepted, t);
    }
}

impl Ran {
    /// Its answer will be written down by the drain that applies it.
    pub(crate) fn handed_on(&self, id: JobId, token: Token) {
        self.running().open.remove(&(id, token));
    }

    /// A drain has applied what a worker said.
    pub(crate) fn applied(&self, report: &Report, settled: Settled, t: Timestamp) {
        let open = Open {
            attempt: report.attempt,
            worker: report.worker.clone(),
            asked: None,
        };
        let end = (
            Ending::from(&report.settlement.verdict),
            settled == Settled::Accepted,
        );
        let attempt = (report.settlement.id, report.taken);
        self.running()
            .write(t, attempt, &open, Phase::End, Some(end));
    }
}

impl Running {
    fn close(&mut self, attempt: (JobId, Token), ending: Ending, accepted: bool, t: Timestamp) {
        if let Some(open) = self.open.remove(&attempt) {
            self.write(t, attempt, &open, Phase::End, Some((ending, accepted)));
        }
    }

    fn write(
        &mut self,
        t: Timestamp,
        (id, token): (JobId, Token),
        open: &Open,
        event: Phase,
        end: Option<(Ending, bool)>,
    ) {
        if self.log.is_given_up() {
            return;
        }
        let event = Event {
            t,
            id,
            token,
            attempt: open.attempt,
            worker: open.worker.as_str().into(),
            event,
            outcome: end.map(|(ending, _)| ending),
            accepted: end.map(|(_, accepted)| accepted),
        };
        // Work matters more than the log of it.
        if let Err(why) = self.log.append(&[event]) {
            log::error!(
                job = %id,
                %why,
                "the ran log is incomplete from here on: this worker writes no more of it"
            );
        }
    }
}
