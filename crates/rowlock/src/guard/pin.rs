//! What pins the horizon, as the server tells it.

use std::time::Duration;

/// What kind of thing it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A transaction of a session.
    #[default]
    Session,
    /// A transaction that was prepared and neither committed nor rolled back.
    Prepared,
    /// A replication slot.
    Slot,
    /// A standby that tells which rows its own readers need.
    Standby,
}

impl What {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Session, Self::Prepared, Self::Slot, Self::Standby];

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Prepared => "prepared",
            Self::Slot => "slot",
            Self::Standby => "standby",
        }
    }
}

/// One thing that keeps rows which others have deleted or replaced from being removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pin {
    /// What it is.
    pub what: What,
    /// The process of the server, if there is one.
    pub pid: Option<i32>,
    /// A prepared transaction's, a slot's or a standby's own name.
    pub name: Option<String>,
    /// What the session calls itself.
    pub application: Option<String>,
    /// Whom it has logged in as, or whose it is.
    pub role: Option<String>,
    /// The last statement, as far as the server keeps it.
    pub query: Option<String>,
    /// What the session is doing: `active`, `idle in transaction`.
    pub state: Option<String>,
    /// How long ago its transaction began; the server doesn't know it of slots and standbys.
    pub age: Option<Duration>,
    /// How many transactions have begun since the oldest one that it may still look at.
    pub transactions: u64,
    /// Whether only rows of the catalogue are kept for it.
    pub catalog_only: bool,
    /// The server's own word for the process: `client backend`, `autovacuum worker`.
    pub backend: Option<String>,
    /// Whether it has logged in as a superuser.
    pub superuser: bool,
    /// Whether its role may change jobs: only then can it be a worker, whatever it calls itself.
    pub changes_jobs: bool,
    /// Whether it is a connection of ours.
    pub ours: bool,
    /// Which transaction of its process this is: an action is for this one only.
    pub began: i64,
}

/// How much of a statement is shown.
const SHOWN: usize = 200;
/// How a program asks for its place in a budget; `rowlock` stands for the schema.
const ENTERING: &str = include_str!("../engine/postgres/sql/budget_enter_call.sql");
/// Each try is a short transaction: one that lasts longer runs, whatever it asked for.
const A_TRY: Duration = Duration::from_secs(5);

impl Pin {
    /// The first characters of its statement.
    #[must_use]
    pub fn excerpt(&self) -> Option<String> {
        let query = self.query.as_deref()?;
        Some(query.chars().take(SHOWN).collect())
    }

    /// Whether a cancel would end nothing, since nothing runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state
            .as_deref()
            .is_some_and(|state| state.starts_with("idle"))
    }

    /// Whether it only asks for its place in a budget: it doesn't run yet.
    pub(super) fn is_entering(&self) -> bool {
        let query = self.query.as_deref().unwrap_or_default();
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("guard.entering") {
            return query.contains("budget_enter(");
        }
        // Just this statement: a comment that has its words is no question.
        let Some((before, after)) = entering().split_once("rowlock") else {
            return false;
        };
        let schema = query.trim().strip_prefix(before);
        let schema = schema.and_then(|rest| rest.strip_suffix(after));
        let named = schema.is_some_and(|name| !name.contains(['(', '*', ';', ' ']));
        named && self.age.is_none_or(|age| age < A_TRY)
    }
}

/// The statement of such a question, without the lines that are for readers.
pub(super) fn entering() -> &'static str {
    let mut lines = ENTERING.lines();
    lines
        .find(|line| !line.starts_with("--"))
        .unwrap_or_default()
}
