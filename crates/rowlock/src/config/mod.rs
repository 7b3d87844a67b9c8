//! rowlock.toml: read exactly, or refused with the line and the remedy.

mod dashboard;
mod drain;
mod guard;
mod schedule;
mod section;

pub use dashboard::{Dashboard, Metrics};
pub use drain::{DrainSection, SidekiqSection};
pub use guard::{BudgetSection, GuardSection};
pub use schedule::{CronSection, PairSection};
pub use section::{Env, Handler, Limits, Queue, Work};

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::claim::QueueOrder;
use crate::drain::Route;
use crate::error::{Error, Result};
use crate::guard::{Class, Policy};
use crate::job::{Cron, Kind, Name, Retention};
use crate::reconcile::Pair;
use crate::run::{Options, Runner};

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where the store is.
    pub url: Option<String>,
    /// The schema that everything of ours is in; PostgreSQL only.
    pub schema: Option<String>,
    /// How this process works.
    pub worker: Work,
    /// Settings of queues.
    pub queues: BTreeMap<Name, Queue>,
    /// Kinds, and what runs them.
    pub handlers: BTreeMap<Name, Handler>,
    /// How long finished jobs are kept, unless a handler says otherwise.
    pub retention: Retention,
    /// What is too large.
    pub limits: Limits,

    /// Where relative paths start.
    #[serde(skip)]
    folder: PathBuf,
    pair: Vec<PairSection>,
    cron: Vec<CronSection>,
    drain: Vec<DrainSection>,
    budget: BTreeMap<Name, BudgetSection>,
    guard: Option<GuardSection>,
    dashboard: Dashboard,
    metrics: Metrics,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the file, the line and the remedy.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|why| Error::invalid(format!("can't read {}: {why}", path.display())))?;
        let mut config = Self::parse(&text, &path.display().to_string())?;
        config.folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(config)
    }

    /// Reads a text; `file` is what errors call it.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the file, the line and the remedy.
    pub fn parse(text: &str, file: &str) -> Result<Self> {
        let config: Self = toml::from_str(text).map_err(|why| explain(&why, text, file))?;
        config
            .check()
            .map_err(|why| Error::invalid(format!("{file}: {why}")))?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        self.check_schema()?;
        self.worker.check()?;
        for (name, queue) in &self.queues {
            queue.check(name)?;
        }
        for (name, handler) in &self.handlers {
            handler
                .check()
                .and_then(|()| handler.runner(&self.folder, &self.limits))
                .map_err(|why| Error::invalid(format!("[handlers.{name}]: {why}")))?;
        }
        self.check_names()?;
        self.pairs()?;
        self.crons()?;
        self.routes()?;
        self.classes()?;
        self.guard.as_ref().map_or(Ok(()), GuardSection::check)?;
        self.dashboard.check()?;
        self.limits.check()
    }

    /// What is declared twice would fight over one row.
    fn check_names(&self) -> Result<()> {
        let mut seen = std::collections::BTreeSet::new();
        let pairs = self.pair.iter().map(|each| ("pair", each.name().clone()));
        let crons = self
            .cron
            .iter()
            .filter_map(|each| Some(("cron", each.cron().ok()?.name)));
        for (what, name) in pairs.chain(crons) {
            if !seen.insert((what, name.clone())) {
                return Err(Error::invalid(format!(
                    "there are two [[{what}]] called {name}: give one another name"
                )));
            }
        }
        Ok(())
    }

    /// The pairs as declared, each with the key of its kind.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a declaration breaks a rule.
    pub fn pairs(&self) -> Result<Vec<Pair>> {
        let kinds = self.kinds()?;
        self.pair
            .iter()
            .map(
                |each| match kinds.iter().find(|kind| kind.name == *each.kind()) {
                    Some(kind) => each.pair(&kind.key),
                    None => each.pair(&each.key),
                },
            )
            .collect()
    }

    /// The crons as declared.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a declaration breaks a rule.
    pub fn crons(&self) -> Result<Vec<Cron>> {
        self.cron.iter().map(CronSection::cron).collect()
    }

    /// The routes as declared.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a declaration breaks a rule.
    pub fn routes(&self) -> Result<Vec<Route>> {
        drain::routes(&self.drain)
    }

    /// The workload classes as declared.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a declaration breaks a rule.
    pub fn classes(&self) -> Result<Vec<Class>> {
        let sections = self.budget.iter();
        sections.map(|(name, each)| each.class(name)).collect()
    }

    /// What a guard inside a worker does; none: there is none.
    #[must_use]
    pub fn guard(&self) -> Option<Policy> {
        self.guard.as_ref().map(GuardSection::policy)
    }

    /// How it is looked at over HTTP.
    #[must_use]
    pub fn dashboard(&self) -> Dashboard {
        self.dashboard.relative_to(&self.folder)
    }

    /// Who may read the numbers of /metrics.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.metrics.relative_to(&self.folder)
    }

    /// A pair's key is its kind's: it sets it if the kind has none.
    fn keyed(&self, mut kind: Kind) -> Result<Kind> {
        for pair in self.pair.iter().filter(|pair| *pair.kind() == kind.name) {
            if kind.key.is_empty() {
                kind.key.clone_from(&pair.key);
            } else if !pair.key.is_empty() && pair.key != kind.key {
                let spell = |key: &[Name]| {
                    key.iter()
                        .map(|field| format!("{:?}", field.as_str()))
                        .collect::<Vec<_>>()
                        .join(", ")
                };
                return Err(Error::invalid(format!(
                    "pair {}: its key is [{}], that of kind {} is [{}]: make them the same",
                    pair.name(),
                    spell(&pair.key),
                    kind.name,
                    spell(&kind.key)
                )));
            }
            if kind.unique_until == crate::job::UniqueUntil::Start {
                return Err(Error::invalid(format!(
                    "pair {}: kind {} has unique_until = \"start\", so a tick could enqueue a row whose \
                     job runs: take it out",
                    pair.name(),
                    kind.name
                )));
            }
        }
        Ok(kind)
    }

    #[cfg(feature = "postgres")]
    fn check_schema(&self) -> Result<()> {
        match &self.schema {
            Some(name) => crate::engine::postgres::Schema::new(name).map(|_| ()),
            None => Ok(()),
        }
    }

    #[cfg(not(feature = "postgres"))]
    fn check_schema(&self) -> Result<()> {
        match &self.schema {
            Some(_) => Err(not_yet("schema")),
            None => Ok(()),
        }
    }

    /// The kinds as declared.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a default breaks a rule.
    pub fn kinds(&self) -> Result<Vec<Kind>> {
        let mut kinds = Vec::new();
        for (name, handler) in &self.handlers {
            kinds.push(self.keyed(handler.kind(name, self.retention)?)?);
        }
        // A pair may be of a kind that a program in Rust runs, or that runs elsewhere.
        for pair in &self.pair {
            if !kinds.iter().any(|kind| kind.name == *pair.kind()) {
                kinds.push(self.keyed(Kind::new(pair.kind().as_str())?)?);
            }
        }
        Ok(kinds)
    }

    /// The kinds with what runs them.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a default breaks a rule.
    pub fn runners(&self) -> Result<Vec<(Kind, Runner)>> {
        let mut found = Vec::new();
        for (name, handler) in &self.handlers {
            if let Some(runner) = handler.runner(&self.folder, &self.limits)? {
                found.push((self.keyed(handler.kind(name, self.retention)?)?, runner));
            }
        }
        Ok(found)
    }

    fn queue_order(&self) -> QueueOrder {
        let weights: BTreeMap<Name, u32> = self
            .queues
            .iter()
            .filter_map(|(name, queue)| Some((name.clone(), queue.weight?)))
            .collect();
        match weights.is_empty() {
            true => QueueOrder::Fair,
            false => QueueOrder::Weighted(weights),
        }
    }

    /// How a worker of this file works.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            concurrency: self.worker.concurrency,
            queue_concurrency: self
                .queues
                .iter()
                .filter_map(|(name, queue)| Some((name.clone(), queue.concurrency?)))
                .collect(),
            queue_order: self.queue_order(),
            lease: self.worker.lease,
            grace: self.worker.grace,
            poll: self.worker.poll,
            ..Options::default()
        }
    }
}

/// The error for a part of the design that this build lacks.
#[cfg(not(feature = "postgres"))]
fn not_yet(part: &str) -> Error {
    Error::invalid(format!(
        "{part} needs a part that rowlock {} doesn't have yet: take it out",
        env!("CARGO_PKG_VERSION")
    ))
}

/// Names the line, and for an unknown key the nearest known one.
fn explain(why: &toml::de::Error, text: &str, file: &str) -> Error {
    let line = why.span().map_or(1, |span| line_of(text, span));
    let message = why.message().trim();
    // serde says: unknown field `a`, expected one of `b`, `c`
    let mut quoted = message.split('`').skip(1).step_by(2);
    let message = match (message.starts_with("unknown "), quoted.next()) {
        (true, Some(unknown)) => {
            let what = message.split_whitespace().nth(1).unwrap_or("field");
            let what = if what == "field" { "key" } else { what };
            match nearest(unknown, quoted) {
                Some(known) => format!("unknown {what} `{unknown}`: did you mean `{known}`?"),
                None => format!("unknown {what} `{unknown}`: take it out"),
            }
        }
        _ => message.replace('\n', " "),
    };
    Error::invalid(format!("{file}:{line}: {message}"))
}

fn line_of(text: &str, span: Range<usize>) -> usize {
    let before = &text.as_bytes()[..span.start.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// The known name that looks most like an unknown one; nothing when none is known.
pub fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (strsim::jaro_winkler(unknown, known), known))
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests;
