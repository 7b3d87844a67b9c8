//! A job that recurs, and which of its ticks get a job. Pure: time comes in as an argument.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Calendar, Job, Name, NewJob, Payload};
use crate::error::{Error, Result};

/// What becomes of ticks that nobody was there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missed {
    /// They are left out.
    Skip,
    /// One job stands for all of them.
    #[default]
    One,
    /// Each gets its job.
    All,
}

impl Missed {
    /// The word that is shown and written in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::One => "one",
            Self::All => "all",
        }
    }
}

/// A tick that is later than this was missed.
pub const LATE: Duration = Duration::from_secs(60);
/// The most ticks that get a job, or are counted, at once.
pub const MOST_TICKS: usize = 1_000;

/// What is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueTicks {
    /// The ticks that get a job, by time.
    pub ticks: Vec<Timestamp>,
    /// How many ticks were missed, whether they get a job or not; counted no further than
    /// [`MOST_TICKS`].
    pub missed: usize,
    /// The tick that comes after them.
    pub next_at: Timestamp,
}

/// The ticks from `next_at` to `now` that get a job, and where to go on. Whoever looks next looks from
/// there, so a clock that was put back brings no tick twice.
#[must_use]
pub fn due(calendar: &Calendar, next_at: Timestamp, now: Timestamp, policy: Missed) -> DueTicks {
    // Five fields without an end always go on.
    let after = |tick| calendar.after(tick).unwrap_or(Timestamp::MAX);
    let late = now.saturating_sub(LATE).unwrap_or(Timestamp::MIN);
    let mut due = DueTicks {
        ticks: Vec::new(),
        missed: 0,
        next_at,
    };
    let mut last = None;
    while due.next_at < late && due.missed < MOST_TICKS {
        due.missed += 1;
        last = Some(due.next_at);
        if policy == Missed::All {
            due.ticks.push(due.next_at);
        }
        due.next_at = after(due.next_at);
    }
    if policy != Missed::All {
        if let Some(later) = calendar.last_before(late, due.next_at) {
            last = Some(later);
            due.next_at = after(later);
        }
        due.ticks.extend(last.filter(|_| policy == Missed::One));
    }
    while due.next_at <= now && due.ticks.len() < MOST_TICKS {
        due.ticks.push(due.next_at);
        due.next_at = after(due.next_at);
    }
    due
}

/// A job that recurs. What a process declares is written to the table of crons; from then on the table
/// rules, and any process that works may fire it.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Report { of: String }
/// # impl rowlock::Job for Report { const KIND: &'static str = "report"; }
/// # fn main() -> rowlock::Result<()> {
/// use rowlock::Cron;
/// let report = Report { of: "sales".to_owned() };
/// let nightly = Cron::of("nightly", &report, "0 3 * * *")?.tz("Europe/Berlin");
/// # nightly.check()?; Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cron {
    /// What it is called.
    pub name: Name,
    /// The kind of its jobs.
    pub kind: Name,
    /// Their payload.
    pub payload: Payload,
    /// The pattern.
    pub cron: String,
    /// The time zone's name.
    pub tz: String,
    /// What becomes of ticks that nobody was there for.
    pub missed: Missed,
    /// Another queue than the kind's.
    pub queue: Option<Name>,
    /// Another priority than the kind's.
    pub priority: Option<i16>,
}

impl Cron {
    /// A job of a kind that recurs, in UTC.
    #[must_use]
    pub fn new(name: Name, kind: Name, cron: impl Into<String>) -> Self {
        Self {
            name,
            kind,
            payload: Payload::default(),
            cron: cron.into(),
            tz: "UTC".to_owned(),
            missed: Missed::default(),
            queue: None,
            priority: None,
        }
    }

    /// This very job, whenever the pattern comes, in UTC.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a name or the payload breaks a rule.
    pub fn of<J: Job>(name: impl Into<String>, job: &J, cron: impl Into<String>) -> Result<Self> {
        let plain = Self::new(Name::new(name)?, Name::new(J::KIND)?, cron);
        Ok(plain.payload(Payload::of(job)?))
    }

    /// The payload of its jobs.
    #[must_use]
    pub fn payload(mut self, payload: Payload) -> Self {
        self.payload = payload;
        self
    }

    /// Reads the pattern in another time zone, such as `Europe/Berlin`.
    #[must_use]
    pub fn tz(mut self, tz: impl Into<String>) -> Self {
        self.tz = tz.into();
        self
    }

    /// What becomes of ticks that nobody was there for.
    #[must_use]
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// Another queue than the kind's.
    #[must_use]
    pub fn queue(mut self, queue: Name) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Another priority than the kind's.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = Some(priority);
        self
    }

    /// When it is due.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the cron and what is wrong with its pattern or zone.
    pub fn calendar(&self) -> Result<Calendar> {
        Calendar::new(&self.cron, &self.tz)
            .map_err(|why| Error::invalid(format!("cron {}: {why}", self.name)))
    }

    /// The settings in which `declared` differs from this row, as "setting: row -> declared".
    #[must_use]
    pub fn differences(&self, declared: &Self) -> Vec<String> {
        super::differences(&super::spelled(self), &super::spelled(declared))
    }

    /// Its job for a tick.
    pub(crate) fn job(&self, tick: Timestamp) -> Result<NewJob> {
        let mut job = NewJob::new(self.kind.as_str())?
            .payload(self.payload.clone())
            .at(tick);
        job.queue.clone_from(&self.queue);
        job.priority = self.priority;
        Ok(job)
    }

    /// Whether the declaration keeps the rules.
    ///
    /// # Errors
    /// As [`Cron::calendar`].
    pub fn check(&self) -> Result<()> {
        self.calendar().map(|_| ())
    }
}

#[cfg(test)]
mod tests;
