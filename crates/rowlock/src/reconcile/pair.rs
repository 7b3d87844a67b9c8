//! A pair: a kind, and the query over the user's own tables that says which rows need it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::job::{Job, Kind, Name, UniqueUntil, spoken};

use super::{query, shown};

/// A declaration. What a process declares is written to the table of pairs; from then on the table
/// rules, and any process that works may run it.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct CreateDatabase { id: i64 }
/// # impl rowlock::Job for CreateDatabase {
/// #     const KIND: &'static str = "create_database";
/// #     const KEY: &'static [&'static str] = &["id"];
/// # }
/// # fn main() -> rowlock::Result<()> {
/// use rowlock::{MINUTE, Pair};
/// let pair = Pair::of::<CreateDatabase>("SELECT id FROM databases WHERE state = 'pending'")
///     .every(MINUTE);
/// # pair.check()?; Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Pair {
    /// What `reconcile`, `switch` and the held-back keys call it.
    pub name: Name,
    /// The kind of the jobs it makes.
    pub kind: Name,
    /// Which rows need one; its columns become the payload.
    pub query: String,
    /// The columns that tell one row from another: the kind's key.
    pub key: Vec<Name>,
    /// How often it looks.
    pub cadence: Cadence,
    /// How many rows one statement takes.
    pub batch: usize,
    /// The window that the jobs of a tick are spread over.
    #[serde(with = "spoken::duration")]
    pub jitter: Duration,
    /// How many leaders share its rows.
    pub shards: u16,
    /// How long one tick may take before it goes on in the next.
    #[serde(with = "spoken::duration")]
    pub timeout: Duration,
    /// Where the rows are, if not beside the jobs. The store keeps no more of it than is safe to show.
    pub source: Option<String>,
    /// Another queue than the kind's.
    pub queue: Option<Name>,
    /// Another priority than the kind's.
    pub priority: Option<i16>,
    /// What the states of the rows mean.
    pub states: Option<States>,
    /// Whether the application enqueues as well, so that what only a tick finds was lost.
    pub direct: bool,
    /// Whether the row is asked again just before a job runs.
    pub still_needed: bool,
    /// Whether the row is asked again after a job is done.
    pub closed_loop: bool,
    /// How long a key is held back after its job failed for good or did nothing; zero: not at all.
    #[serde(with = "spoken::duration")]
    pub hold_back: Duration,
}

/// How often a pair looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cadence {
    /// Always after the same time.
    Every(#[serde(with = "spoken::duration")] Duration),
    /// As a calendar says.
    Cron {
        /// The pattern.
        cron: String,
        /// The time zone's name.
        tz: String,
    },
}

/// The coverage contract: every value of a column is somebody's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct States {
    /// The table.
    pub table: String,
    /// Its column.
    pub column: String,
    /// Values that need work: the query must find them.
    pub pending: Vec<String>,
    /// Values that need none.
    #[serde(default)]
    pub terminal: Vec<String>,
    /// Values that are another pair's, or another system's.
    #[serde(default)]
    pub other: Vec<String>,
}

impl Pair {
    /// The most rows of a statement.
    pub const MOST_BATCH: usize = 10_000;
    /// How long a key is held back the first time.
    pub const HOLD_BACK: Duration = Duration::from_secs(5 * 60);
    /// The most leaders of a pair.
    pub const MOST_SHARDS: u16 = 64;

    /// A pair of a type: its kind and its key are the type's. Names that break a rule are refused by
    /// [`Pair::check`].
    #[must_use]
    pub fn of<J: Job>(query: impl Into<String>) -> Self {
        let name = |text: &&str| Name::stored((*text).to_owned());
        Self::new(name(&J::KIND), J::KEY.iter().map(name).collect(), query)
    }

    /// A pair of a kind, keyed by these columns; once a minute.
    #[must_use]
    pub fn new(kind: Name, key: Vec<Name>, query: impl Into<String>) -> Self {
        Self {
            name: kind.clone(),
            kind,
            query: query.into(),
            key,
            cadence: Cadence::Every(crate::MINUTE),
            batch: Self::MOST_BATCH,
            jitter: Duration::ZERO,
            shards: 1,
            timeout: Duration::from_secs(30),
            source: None,
            queue: None,
            priority: None,
            states: None,
            direct: true,
            still_needed: true,
            closed_loop: true,
            hold_back: Self::HOLD_BACK,
        }
    }

    /// Another name than the kind's: a kind may have several pairs.
    #[must_use]
    pub fn name(mut self, name: Name) -> Self {
        self.name = name;
        self
    }

    /// Looks always after the same time.
    #[must_use]
    pub fn every(mut self, time: Duration) -> Self {
        self.cadence = Cadence::Every(time);
        self
    }

    /// Looks as a calendar says, in a time zone such as `Europe/Berlin`.
    #[must_use]
    pub fn cron(mut self, cron: impl Into<String>, tz: impl Into<String>) -> Self {
        self.cadence = Cadence::Cron {
            cron: cron.into(),
            tz: tz.into(),
        };
        self
    }

    /// Spreads the jobs of a tick over a window.
    #[must_use]
    pub fn jitter(mut self, window: Duration) -> Self {
        self.jitter = window;
        self
    }

    /// Takes so many rows with one statement.
    #[must_use]
    pub fn batch(mut self, rows: usize) -> Self {
        self.batch = rows;
        self
    }

    /// Shares the rows among so many leaders.
    #[must_use]
    pub fn shards(mut self, shards: u16) -> Self {
        self.shards = shards;
        self
    }

    /// Reads the rows from another database.
    #[must_use]
    pub fn source(mut self, url: impl Into<String>) -> Self {
        self.source = Some(url.into());
        self
    }

    /// Says what the states of the rows mean, so that a forgotten one is noticed.
    #[must_use]
    pub fn states(mut self, states: States) -> Self {
        self.states = Some(states);
        self
    }

    /// Only ticks make these jobs: what they find isn't counted as lost.
    #[must_use]
    pub fn scheduler_only(mut self) -> Self {
        self.direct = false;
        self
    }

    /// Doesn't ask before a run. Lost: a job whose row has changed its mind meanwhile runs all the
    /// same.
    #[must_use]
    pub fn without_still_needed(mut self) -> Self {
        self.still_needed = false;
        self
    }

    /// Doesn't ask after a run. Lost: a handler that says it is done and did nothing is run again by
    /// every tick, for ever.
    #[must_use]
    pub fn without_closed_loop(mut self) -> Self {
        self.closed_loop = false;
        self
    }

    /// Holds keys back for another time at first; zero: not at all, and a job that failed for good
    /// comes back with every tick.
    #[must_use]
    pub fn hold_back(mut self, time: Duration) -> Self {
        self.hold_back = time;
        self
    }

    /// Whether the declaration keeps the rules that need no database.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the rule and the remedy.
    pub fn check(&self) -> Result<()> {
        let wrong = |why: String| Err(Error::invalid(format!("pair {}: {why}", self.name)));
        for name in [&self.name, &self.kind].into_iter().chain(&self.key) {
            Name::new(name.as_str())?;
        }
        if self.key.is_empty() {
            return wrong(
                "it has no key: name the columns that tell one row from another (key = [\"id\"])"
                    .to_owned(),
            );
        }
        if !(1..=Self::MOST_BATCH).contains(&self.batch) {
            return wrong(format!("batch must be from 1 to {}", Self::MOST_BATCH));
        }
        if !(1..=Self::MOST_SHARDS).contains(&self.shards) {
            return wrong(format!("shards must be from 1 to {}", Self::MOST_SHARDS));
        }
        if self.timeout < Duration::from_millis(100) {
            return wrong("timeout is too short: use 100ms or more".to_owned());
        }
        match &self.cadence {
            Cadence::Every(time) if *time < Duration::from_millis(100) => {
                return wrong("every is too short: use 100ms or more".to_owned());
            }
            Cadence::Every(_) => {}
            Cadence::Cron { cron, tz } => {
                if let Err(why) = crate::job::Calendar::new(cron, tz) {
                    return wrong(why.to_string());
                }
            }
        }
        if let Err(why) = query::check(&self.query) {
            return wrong(why);
        }
        Ok(())
    }

    /// As it is stored: without what only its owner may know.
    pub(crate) fn stored(&self) -> Self {
        let mut pair = self.clone();
        pair.source = self.source.as_deref().map(shown);
        pair
    }

    /// Whether ticks can rely on the kind's row.
    ///
    /// # Errors
    /// [`Error::NotFound`] without one, [`Error::Invalid`] for one that doesn't fit; both with the remedy.
    pub(crate) fn fits(&self, kind: Option<&Kind>) -> Result<()> {
        let Some(kind) = kind else {
            return Err(Error::NotFound(format!(
                "kind {} of pair {} (write it with `rowlock apply` first)",
                self.kind, self.name
            )));
        };
        match self.misfit(kind) {
            None => Ok(()),
            Some(why) => Err(Error::invalid(format!(
                "pair {}: kind {} {why}: declare them alike and run `rowlock apply`",
                self.name, kind.name
            ))),
        }
    }

    /// Whether ticks can still rely on the kind once it is written like this.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the remedy.
    pub(crate) fn allows(&self, kind: &Kind) -> Result<()> {
        match self.misfit(kind) {
            Some(why) if self.kind == kind.name => Err(Error::invalid(format!(
                "kind {} {why}, and its pair {} relies on that: leave the kind as it is, or take the \
                 pair away first (`rowlock reconcile remove {}`)",
                kind.name, self.name, self.name
            ))),
            _ => Ok(()),
        }
    }

    fn misfit(&self, kind: &Kind) -> Option<String> {
        let listed = |key: &[Name]| {
            let names: Vec<&str> = key.iter().map(Name::as_str).collect();
            format!("[{}]", names.join(", "))
        };
        if kind.key != self.key {
            let (theirs, ours) = (listed(&kind.key), listed(&self.key));
            return Some(format!("has the key {theirs}, the pair {ours}"));
        }
        (kind.unique_until != UniqueUntil::Finished).then(|| {
            "has unique_until = \"start\", so a tick would enqueue what still runs".to_owned()
        })
    }

    /// What is lost by what the declaration has switched off, in words.
    #[must_use]
    pub fn warnings(&self) -> Vec<&'static str> {
        let all = [
            (
                !self.still_needed,
                "still_needed is off: a job whose row needs nothing any more runs all the same",
            ),
            (
                !self.closed_loop,
                "closed_loop is off: a handler that says done and does nothing is run by every tick",
            ),
            (
                self.hold_back.is_zero(),
                "hold_back is off: a job that failed for good comes back with every tick",
            ),
        ];
        all.into_iter()
            .filter_map(|(off, word)| off.then_some(word))
            .collect()
    }
}
