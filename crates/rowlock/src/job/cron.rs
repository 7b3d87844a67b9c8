//! Calendars: when something that recurs is due. Pure: time comes in as an argument.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::{Name, Payload};
use crate::error::{Error, Result};

/// A pattern and the zone it is read in.
#[derive(Debug, Clone)]
pub struct Calendar {
    pattern: croner::Cron,
    zone: TimeZone,
}

impl Calendar {
    /// Reads a pattern of five fields, and a time zone such as `Europe/Berlin`.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the pattern or the zone.
    pub fn new(cron: &str, tz: &str) -> Result<Self> {
        let pattern = cron.parse::<croner::Cron>().map_err(|why| {
            Error::invalid(format!(
                "{cron:?} is not a cron pattern ({why}): write it like \"*/5 * * * *\""
            ))
        })?;
        let zone = TimeZone::get(tz).map_err(|_| {
            Error::invalid(format!(
                "{tz:?} is not a time zone that this machine knows: write it like \"Europe/Berlin\""
            ))
        })?;
        Ok(Self { pattern, zone })
    }

    /// The first tick after `time`; nothing when there is none in the years to come.
    #[must_use]
    pub fn after(&self, time: Timestamp) -> Option<Timestamp> {
        let from = time.to_zoned(self.zone.clone());
        let next = self.pattern.find_next_occurrence(&from, false).ok()?;
        Some(next.timestamp())
    }
}

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

/// A job that recurs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

    /// When it is due.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the cron and what is wrong with its pattern or zone.
    pub fn calendar(&self) -> Result<Calendar> {
        Calendar::new(&self.cron, &self.tz)
            .map_err(|why| Error::invalid(format!("cron {}: {why}", self.name)))
    }

    /// Whether the declaration keeps the rules.
    ///
    /// # Errors
    /// As [`Cron::calendar`].
    pub fn check(&self) -> Result<()> {
        self.calendar().map(|_| ())
    }
}
