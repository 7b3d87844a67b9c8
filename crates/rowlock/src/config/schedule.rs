//! `[[pair]]` and `[[cron]]`: what is derived, and what recurs.

use std::time::Duration;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::job::{Cron, Missed, Name, Payload, spoken};
use crate::reconcile::{Cadence, Pair, States};

/// `[[pair]]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairSection {
    name: Option<Name>,
    kind: Name,
    query: String,
    #[serde(default)]
    pub(super) key: Vec<Name>,
    #[serde(default, deserialize_with = "spoken::optional::deserialize")]
    every: Option<Duration>,
    cron: Option<String>,
    tz: Option<String>,
    batch: Option<usize>,
    #[serde(default, deserialize_with = "spoken::optional::deserialize")]
    jitter: Option<Duration>,
    shards: Option<u16>,
    #[serde(default, deserialize_with = "spoken::optional::deserialize")]
    timeout: Option<Duration>,
    source: Option<String>,
    queue: Option<Name>,
    priority: Option<i16>,
    states: Option<StatesSection>,
    direct: Option<bool>,
    still_needed: Option<bool>,
    closed_loop: Option<bool>,
    #[serde(default, deserialize_with = "spoken::optional::deserialize")]
    hold_back: Option<Duration>,
}

impl PairSection {
    pub(super) fn name(&self) -> &Name {
        self.name.as_ref().unwrap_or(&self.kind)
    }

    pub(super) fn kind(&self) -> &Name {
        &self.kind
    }

    /// The pair, with the key of its kind.
    pub(super) fn pair(&self, key: &[Name]) -> Result<Pair> {
        let cadence = match (self.every, &self.cron) {
            (Some(_), Some(_)) => Err("it has both every and cron: keep one"),
            (None, None) => Err("it has neither every nor cron: write every = \"1m\""),
            (Some(_), None) if self.tz.is_some() => Err("tz is for cron only: take it out"),
            (Some(every), None) => Ok(Cadence::Every(every)),
            (None, Some(cron)) => Ok(Cadence::Cron {
                cron: cron.clone(),
                tz: self.tz.clone().unwrap_or_else(|| "UTC".to_owned()),
            }),
        };
        let cadence =
            cadence.map_err(|why| Error::invalid(format!("pair {}: {why}", self.name())))?;
        let plain = Pair::new(self.kind.clone(), key.to_vec(), &self.query);
        let pair = Pair {
            name: self.name().clone(),
            cadence,
            batch: self.batch.unwrap_or(plain.batch),
            jitter: self.jitter.unwrap_or(plain.jitter),
            shards: self.shards.unwrap_or(plain.shards),
            timeout: self.timeout.unwrap_or(plain.timeout),
            source: self.source.clone(),
            queue: self.queue.clone(),
            priority: self.priority,
            states: self.states.as_ref().map(StatesSection::states),
            direct: self.direct.unwrap_or(plain.direct),
            still_needed: self.still_needed.unwrap_or(plain.still_needed),
            closed_loop: self.closed_loop.unwrap_or(plain.closed_loop),
            hold_back: self.hold_back.unwrap_or(plain.hold_back),
            ..plain
        };
        pair.check()?;
        Ok(pair)
    }
}

/// `[pair.states]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatesSection {
    table: String,
    column: String,
    pending: Vec<String>,
    #[serde(default)]
    terminal: Vec<String>,
    #[serde(default)]
    other: Vec<String>,
}

impl StatesSection {
    fn states(&self) -> States {
        States {
            table: self.table.clone(),
            column: self.column.clone(),
            pending: self.pending.clone(),
            terminal: self.terminal.clone(),
            other: self.other.clone(),
        }
    }
}

/// `[[cron]]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CronSection {
    name: Name,
    kind: Name,
    cron: String,
    tz: Option<String>,
    #[serde(default)]
    missed: Missed,
    payload: Option<Payload>,
    queue: Option<Name>,
    priority: Option<i16>,
}

impl CronSection {
    pub(super) fn cron(&self) -> Result<Cron> {
        let mut cron = Cron::new(self.name.clone(), self.kind.clone(), &self.cron);
        if let Some(tz) = &self.tz {
            cron.tz.clone_from(tz);
        }
        cron.missed = self.missed;
        cron.payload = self.payload.clone().unwrap_or_default();
        cron.queue.clone_from(&self.queue);
        cron.priority = self.priority;
        cron.check()?;
        Ok(cron)
    }
}
