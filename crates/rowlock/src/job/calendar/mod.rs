//! Calendars: when something that recurs is due. Pure: time comes in as an argument.

#[cfg(test)]
pub(super) mod tests;

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::error::{Error, Result};

/// A pattern and the zone it is read in.
///
/// A pattern with a `*` in its minutes or hours goes by interval: it ticks whenever a clock on the wall
/// shows such a time, so an hour that comes twice ticks twice, and one that is left out not at all. Any
/// other names times of the day, and each of them comes once a day: of a time that comes twice the first
/// counts, and a time that is left out comes when the clock is put forward.
#[derive(Debug, Clone)]
pub struct Calendar {
    pattern: croner::Cron,
    zone: TimeZone,
    by_interval: bool,
}

/// Patterns that have a name.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Every pattern that comes at all comes after this; five fields know no year.
const SOME_YEAR: DateTime = DateTime::constant(2000, 1, 1, 0, 0, 0, 0);

impl Calendar {
    /// Reads a pattern of five fields or a nickname such as `@hourly`, and a time zone such as
    /// `Europe/Berlin`.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the pattern or the zone, and what is wrong with it.
    pub fn new(cron: &str, tz: &str) -> Result<Self> {
        let fields = spelled_out(cron)?;
        let pattern = fields.join(" ").parse::<croner::Cron>().map_err(|why| {
            Error::invalid(format!(
                "{cron:?} is not a cron pattern ({why}): write it like \"*/5 * * * *\""
            ))
        })?;
        let zone = TimeZone::get(tz).map_err(|_| {
            Error::invalid(format!(
                "{tz:?} is not a time zone that this machine knows: write it like \"Europe/Berlin\""
            ))
        })?;
        let by_interval = fields[..2].iter().any(|field| field.contains(['*', '?']));
        let calendar = Self {
            pattern,
            zone,
            by_interval,
        };
        match calendar.reading_after(SOME_YEAR) {
            Some(_) => Ok(calendar),
            None => Err(Error::invalid(format!(
                "{cron:?} never comes: no month of any year has such a day"
            ))),
        }
    }

    /// The first tick after `time`; nothing when there is none in the years to come.
    #[must_use]
    pub fn after(&self, time: Timestamp) -> Option<Timestamp> {
        match self.by_interval {
            true => self.interval_after(time),
            false => self.time_of_day_after(time),
        }
    }

    /// The last tick from `first` on that is before `end`; `first` is a tick.
    pub(super) fn last_before(&self, end: Timestamp, first: Timestamp) -> Option<Timestamp> {
        if first >= end {
            return None;
        }
        // From near to far: a year of minutes isn't walked through.
        let mut window = Duration::from_secs(60);
        loop {
            let from = end.saturating_sub(window).unwrap_or(Timestamp::MIN);
            if from <= first {
                return self.walk(first, end);
            }
            match self.after(from) {
                Some(tick) if tick < end => return self.walk(tick, end),
                _ => window = window.saturating_mul(4),
            }
        }
    }

    fn walk(&self, mut tick: Timestamp, end: Timestamp) -> Option<Timestamp> {
        while let Some(next) = self.after(tick).filter(|next| *next < end) {
            tick = next;
        }
        Some(tick)
    }

    /// The next reading of a clock that is never put forward or back.
    fn reading_after(&self, reading: DateTime) -> Option<DateTime> {
        let from = reading.to_zoned(TimeZone::UTC).ok()?;
        let next = self.pattern.find_next_occurrence(&from, false).ok()?;
        Some(next.datetime())
    }

    fn time_of_day_after(&self, time: Timestamp) -> Option<Timestamp> {
        let mut reading = self.zone.to_datetime(time);
        loop {
            reading = self.reading_after(reading)?;
            let at = match self.zone.to_ambiguous_timestamp(reading).offset() {
                AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(reading).ok()?,
                AmbiguousOffset::Fold { before, .. } => before.to_timestamp(reading).ok()?,
                AmbiguousOffset::Gap { after, .. } => {
                    let early = after.to_timestamp(reading).ok()?;
                    self.zone.following(early).next()?.timestamp()
                }
            };
            // Within an hour that comes again, the first time is over.
            if at > time {
                return Some(at);
            }
        }
    }

    fn interval_after(&self, time: Timestamp) -> Option<Timestamp> {
        let mut from = time;
        let mut reading = self.zone.to_datetime(time);
        loop {
            let at = self.reading_after(reading)?;
            let at = self.zone.to_offset(from).to_timestamp(at).ok()?;
            match self.zone.following(from).next() {
                Some(change) if at >= change.timestamp() => {
                    from = change.timestamp();
                    // The change itself may be a tick.
                    reading = self.zone.to_datetime(from);
                    reading = reading.checked_sub(Duration::from_secs(1)).ok()?;
                }
                _ => return Some(at),
            }
        }
    }
}

/// The five fields.
fn spelled_out(cron: &str) -> Result<Vec<&str>> {
    let text = cron.trim();
    let known = NICKNAMES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text));
    let fields: Vec<&str> = known
        .map_or(text, |(_, fields)| fields)
        .split_whitespace()
        .collect();
    let wrong = match fields.len() {
        5 => return Ok(fields),
        _ if text.starts_with('@') => {
            "is not a nickname: use @hourly, @daily, @weekly, @monthly or @yearly".to_owned()
        }
        6 => "has six fields, and the first would be seconds: a minute is the shortest step, \
              write it like \"*/5 * * * *\""
            .to_owned(),
        n => format!("has {n} fields instead of five: write it like \"*/5 * * * *\""),
    };
    Err(Error::invalid(format!("the cron pattern {cron:?} {wrong}")))
}
