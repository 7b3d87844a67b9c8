//! One line of a bulk file.

use jiff::Timestamp;
use rowlock::config::Config;
use rowlock::job::UniqueUntil;
use rowlock::{Error, Kind, Name, NewJob, Payload};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::command::enqueue::bare;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    kind: Name,
    // As it was written: numbers and the order of fields are the caller's.
    #[serde(default, borrow, deserialize_with = "written")]
    payload: Option<&'a RawValue>,
    queue: Option<Name>,
    priority: Option<i16>,
    scheduled_at: Option<Timestamp>,
    max_attempts: Option<u32>,
    unique_key: Option<String>,
    unique_until: Option<UniqueUntil>,
    #[serde(default)]
    tags: Vec<Name>,
}

/// A payload of null is a payload.
fn written<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Reads a line as a job.
///
/// # Errors
/// The rule it breaks, in words.
pub fn parse(text: &[u8], declared: &[Kind], config: &Config) -> Result<NewJob, String> {
    let text = std::str::from_utf8(text).map_err(|_| "is not UTF-8".to_owned())?;
    let line: Line<'_> = serde_json::from_str(text).map_err(|why| explain(&why))?;
    line.job(declared, config).map_err(|why| why.to_string())
}

/// serde's words, with the place in our line instead of its own.
fn explain(why: &serde_json::Error) -> String {
    let words = why.to_string();
    let words = words.split(" at line ").next().unwrap_or(&words);
    format!("{words} (column {})", why.column())
}

impl Line<'_> {
    fn job(self, declared: &[Kind], config: &Config) -> Result<NewJob, Error> {
        let mut job = bare(&self.kind, declared)?;
        if let Some(payload) = self.payload {
            job = job.payload(Payload::parse_within(payload.get(), config.limits.payload)?);
        }
        if let Some(queue) = self.queue {
            job = job.queue(queue);
        }
        if let Some(priority) = self.priority {
            job = job.priority(priority);
        }
        if let Some(at) = self.scheduled_at {
            job = job.at(at);
        }
        if let Some(attempts) = self.max_attempts {
            job = job.max_attempts(attempts)?;
        }
        if let Some(key) = self.unique_key {
            job = job.unique(key)?;
        }
        if let Some(until) = self.unique_until {
            job = job.unique_until(until);
        }
        Ok(self.tags.into_iter().fold(job, NewJob::tag))
    }
}
