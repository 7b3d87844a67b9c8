//! The sections of rowlock.toml.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::error::{Error, Result};
use crate::job::{Backoff, Kind, Name, NewJob, Payload, Retention, UniqueUntil, spoken};
use crate::run::{Builtin, Options, Runner};

/// `[worker]`: how this process works.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Work {
    /// How many jobs run at once.
    pub concurrency: usize,
    /// How long others wait before they take over from a silent worker.
    #[serde(with = "spoken::duration")]
    pub lease: Duration,
    /// How long running jobs may take to finish once the worker was asked to stop.
    #[serde(with = "spoken::duration")]
    pub grace: Duration,
    /// How often to look for due jobs when nothing rings.
    #[serde(with = "spoken::duration")]
    pub poll: Duration,
    /// How long a process that starts waits for a database that isn't there yet.
    #[serde(with = "spoken::duration")]
    pub wait: Duration,
}

impl Default for Work {
    fn default() -> Self {
        let options = Options::default();
        Self {
            concurrency: options.concurrency,
            lease: options.lease,
            grace: options.grace,
            poll: options.poll,
            wait: Duration::from_secs(60),
        }
    }
}

/// The most slots of a process.
const MOST_SLOTS: usize = 10_000;

impl Work {
    pub(super) fn check(&self) -> Result<()> {
        slots("[worker]", self.concurrency)?;
        Options::check_times(self.lease, self.poll)
            .map_err(|err| Error::invalid(format!("[worker]: {err}")))
    }
}

fn slots(section: &str, concurrency: usize) -> Result<()> {
    if (1..=MOST_SLOTS).contains(&concurrency) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{section}: concurrency is {concurrency}: use 1 to {MOST_SLOTS}"
    )))
}

/// `[queues.NAME]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Queue {
    /// How many of this queue's jobs run at once in this process.
    pub concurrency: Option<usize>,
    /// Its share of a claim when several queues have work; 1 unless said.
    pub weight: Option<u32>,
}

impl Queue {
    pub(super) fn check(&self, name: &Name) -> Result<()> {
        if self
            .weight
            .is_some_and(|weight| !(1..=1_000).contains(&weight))
        {
            return Err(Error::invalid(format!(
                "[queues.{name}]: weight must be from 1 to 1000"
            )));
        }
        self.concurrency
            .map_or(Ok(()), |n| slots(&format!("[queues.{name}]"), n))
    }
}

/// `[handlers.NAME]`: a kind, and what runs it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Handler {
    /// One of the handlers that come with rowlock.
    #[serde(deserialize_with = "builtin")]
    pub builtin: Option<Builtin>,
    /// A program with its arguments.
    pub exec: Option<Vec<String>>,
    /// What the program gets of the worker's environment.
    pub env: Option<Env>,
    /// A server's URL.
    pub http: Option<String>,
    /// The names, addresses and ranges that the server may have.
    pub allow: Option<Vec<String>>,
    /// How long one attempt may run.
    #[serde(deserialize_with = "spoken::optional::deserialize")]
    pub timeout: Option<Duration>,
    /// Where its jobs wait.
    pub queue: Option<Name>,
    /// Higher goes first.
    pub priority: Option<i16>,
    /// How many attempts a job may use.
    pub max_attempts: Option<u32>,
    /// How long it waits between them.
    pub backoff: Option<Backoff>,
    /// The payload fields that make a job unique.
    pub key: Vec<Name>,
    /// How long the key stays taken.
    pub unique_until: UniqueUntil,
    /// How long finished jobs are kept.
    pub retention: Option<Retention>,
}

/// `env`: `"inherit"`, or the names of variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Env {
    /// Everything but the worker's own.
    Inherit,
    /// These and the few that every program gets.
    Only(Vec<String>),
}

impl<'de> Deserialize<'de> for Env {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Word(String),
            Names(Vec<String>),
        }
        match Written::deserialize(deserializer) {
            Ok(Written::Word(word)) if word == "inherit" => Ok(Self::Inherit),
            Ok(Written::Names(names)) => Ok(Self::Only(names)),
            _ => Err(serde::de::Error::custom(
                "env is \"inherit\" or a list of names, like [\"API_TOKEN\"]",
            )),
        }
    }
}

fn builtin<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Builtin>, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map(Some).map_err(serde::de::Error::custom)
}

impl Handler {
    pub(super) fn check(&self) -> Result<()> {
        if let Some(attempts) = self.max_attempts
            && !(1..=NewJob::MAX_ATTEMPTS).contains(&attempts)
        {
            return Err(Error::invalid(format!(
                "max_attempts is {attempts}: use 1 to {}",
                NewJob::MAX_ATTEMPTS
            )));
        }
        if self.timeout.is_some_and(|time| time.is_zero()) {
            return Err(Error::invalid(
                "timeout is zero: no attempt could end in time",
            ));
        }
        Ok(())
    }

    /// What runs it: the one of builtin, exec and http that the section has. With none of them the
    /// section only declares the kind, which a program in Rust runs.
    pub(super) fn runner(&self, folder: &Path, limits: &Limits) -> Result<Option<Runner>> {
        if self.allow.is_some() && self.http.is_none() {
            return Err(Error::invalid("allow is for http only: take it out"));
        }
        if self.env.is_some() && self.exec.is_none() {
            return Err(Error::invalid("env is for exec only: take it out"));
        }
        match (self.builtin, &self.exec, &self.http) {
            (Some(builtin), None, None) => Ok(Some(Runner::Builtin(builtin))),
            (None, Some(line), None) => exec(line, self.env.as_ref(), folder, limits).map(Some),
            (None, None, Some(url)) => {
                http(url, self.allow.as_deref().unwrap_or_default()).map(Some)
            }
            (None, None, None) => Ok(None),
            _ => Err(Error::invalid(
                "it has more than one of exec, http and builtin: keep one",
            )),
        }
    }

    pub(super) fn kind(&self, name: &Name, retention: Retention) -> Result<Kind> {
        let mut kind = Kind::new(name.as_str())?;
        kind.queue = self.queue.clone().unwrap_or(kind.queue);
        kind.priority = self.priority.unwrap_or(kind.priority);
        kind.max_attempts = self.max_attempts.unwrap_or(kind.max_attempts);
        kind.backoff = self.backoff.clone().unwrap_or(kind.backoff);
        kind.timeout = self.timeout.unwrap_or(kind.timeout);
        kind.key.clone_from(&self.key);
        kind.unique_until = self.unique_until;
        kind.retention = self.retention.unwrap_or(retention);
        Ok(kind)
    }
}

#[cfg(feature = "exec")]
fn exec(line: &[String], env: Option<&Env>, folder: &Path, limits: &Limits) -> Result<Runner> {
    use crate::run::{Environment, Exec};
    let environment = match env {
        Some(Env::Only(names)) => Environment::only(names.clone())?,
        Some(Env::Inherit) | None => Environment::Inherit,
    };
    let exec = Exec::new(line, folder, limits.output_bytes)?;
    Ok(Runner::Exec(exec.environment(environment)))
}

#[cfg(not(feature = "exec"))]
fn exec(_: &[String], _: Option<&Env>, _: &Path, _: &Limits) -> Result<Runner> {
    Err(Error::invalid(
        "exec needs the feature `exec` of the crate rowlock",
    ))
}

#[cfg(feature = "http")]
fn http(url: &str, allow: &[String]) -> Result<Runner> {
    crate::run::Http::new(url, allow).map(Runner::Http)
}

#[cfg(not(feature = "http"))]
fn http(_: &str, _: &[String]) -> Result<Runner> {
    Err(Error::invalid(
        "http needs the feature `http` of the crate rowlock",
    ))
}

/// `[limits]`: what is too large.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The largest payload, in bytes.
    #[serde(deserialize_with = "size")]
    pub payload: usize,
    /// How many errors a job keeps.
    pub errors_kept: usize,
    /// How much of a program's output is kept, in bytes: its end.
    #[serde(deserialize_with = "size")]
    pub output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload: Payload::MAX_BYTES,
            errors_kept: 10,
            output_bytes: 65_536,
        }
    }
}

impl Limits {
    const MOST_OUTPUT: usize = 16 * 1024 * 1024;

    pub(super) fn check(&self) -> Result<()> {
        if !(1..=Self::MOST_OUTPUT).contains(&self.output_bytes) {
            return Err(Error::invalid(
                "[limits]: output_bytes must be from 1 byte to 16MiB",
            ));
        }
        if !(1..=Payload::MAX_BYTES).contains(&self.payload) {
            return Err(Error::invalid(
                "[limits]: payload must be from 1 byte to 1MiB, the limit of every engine",
            ));
        }
        if !(1..=1_000).contains(&self.errors_kept) {
            return Err(Error::invalid(
                "[limits]: errors_kept must be from 1 to 1000",
            ));
        }
        Ok(())
    }
}

/// `65536`, `64KiB` or `1MiB`.
fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Bytes(usize),
        Spoken(String),
    }
    let text = match Size::deserialize(deserializer)? {
        Size::Bytes(bytes) => return Ok(bytes),
        Size::Spoken(text) => text,
    };
    let (number, unit) = text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    );
    let unit = match unit.trim() {
        "" | "B" => Some(1_usize),
        "KiB" => Some(1024),
        "MiB" => Some(1024 * 1024),
        _ => None,
    };
    number
        .parse::<usize>()
        .ok()
        .zip(unit)
        .and_then(|(number, unit)| number.checked_mul(unit))
        .ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{text:?} is not a size: write it like 65536, 64KiB or 1MiB"
            ))
        })
}
