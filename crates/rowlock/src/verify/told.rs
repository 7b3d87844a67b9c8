//! The told log: what producers were told about their jobs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::lines::{self, Log};
use crate::error::Result;
use crate::job::{JobId, NewJob};
use crate::stage::Enqueued;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// A new job.
    Enqueue,
    /// An ended job gets all its attempts again.
    Redrive,
    /// A job is called off, or its worker was asked to stop.
    Cancel,
    /// A job is removed.
    Delete,
}

/// One answer that somebody was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer<'a> {
    /// When.
    pub t: Timestamp,
    /// What was asked for.
    pub op: Op,
    /// The job, if it got a number. With `ok: false` it is one that was rolled back and must never run.
    #[serde(default)]
    pub id: Option<JobId>,
    /// The key that was asked for.
    #[serde(default)]
    pub unique_key: Option<Cow<'a, str>>,
    /// Whether it is so: committed, as far as whoever asked was told.
    pub ok: bool,
}

impl<'a> Answer<'a> {
    /// The answer to an enqueue; nothing when it failed.
    #[must_use]
    pub fn enqueue(t: Timestamp, job: &'a NewJob, answer: Option<&Enqueued>) -> Self {
        let id = answer.and_then(|answer| answer.id);
        Self {
            t,
            op: Op::Enqueue,
            id,
            unique_key: job.unique_key.as_deref().map(Cow::Borrowed),
            ok: id.is_some(),
        }
    }
}

/// Writes the told log. Clones share the file, and so may other processes.
#[derive(Debug, Clone)]
pub struct Told(Arc<Mutex<Log>>);

impl Told {
    /// Opens the log at its end, or makes it.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) when the file can't be opened, or ends in the middle
    /// of a line.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Log::open(path.as_ref())?))))
    }

    /// Writes answers. Call it as soon as they are known and before anything else happens: a job
    /// whose answer isn't written is not looked for.
    ///
    /// # Errors
    /// [`Error::Log`](crate::Error::Log) when the file can't be written, from then on always. What was
    /// answered stays true.
    pub fn write(&self, answers: &[Answer<'_>]) -> Result<()> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.append(answers)
    }
}

/// What a told log says about each job.
#[derive(Debug, Default)]
pub struct ToldLog {
    pub(super) jobs: HashMap<JobId, Word>,
}

/// What somebody was told about one job.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Word {
    /// It was enqueued.
    pub(super) ok: bool,
    /// It was rolled back.
    pub(super) rolled_back: bool,
    /// How often it was given its attempts again.
    pub(super) redrives: u32,
    /// It was called off or removed: it may have ended without a line in the ran log, and be gone.
    pub(super) may_be_missing: bool,
}

impl ToldLog {
    /// Reads a log.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) with the line that isn't one.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let mut log = Self::default();
        lines::read(path.as_ref(), |answer: Answer<'static>| log.add(&answer))?;
        Ok(log)
    }

    /// Takes an answer into account.
    pub fn add(&mut self, answer: &Answer<'_>) {
        let Some(id) = answer.id else { return };
        let word = self.jobs.entry(id).or_default();
        match (answer.op, answer.ok) {
            (Op::Enqueue, true) => word.ok = true,
            (Op::Enqueue, false) => word.rolled_back = true,
            (Op::Redrive, true) => word.redrives += 1,
            (Op::Cancel | Op::Delete, true) => word.may_be_missing = true,
            (Op::Redrive | Op::Cancel | Op::Delete, false) => {}
        }
    }

    /// How many jobs were told to be enqueued.
    #[must_use]
    pub fn enqueued(&self) -> usize {
        self.jobs.values().filter(|word| word.ok).count()
    }
}
