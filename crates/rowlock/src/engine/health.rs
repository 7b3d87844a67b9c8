//! What a checkup of the store finds.

use std::time::Duration;

use jiff::SignedDuration;

use crate::job::Name;

/// The store's condition. Whether it is good enough is for the reader to say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Health {
    /// Tables, indexes, views and triggers that are missing or differ from those we made.
    pub drift: Vec<String>,
    /// Committed pages that are still in the log only, because somebody reads an old state.
    pub log_backlog: u64,
    /// Pending jobs of kinds that have no row, by kind.
    pub unknown_kinds: Vec<(Name, AtLeast)>,
    /// Whether more is set aside than was looked at: a kind of which nobody knows may have been missed.
    pub unseen: bool,
    /// How far the server's clock is ahead of this process's, if that is too far to overlook.
    pub clock_ahead: Option<SignedDuration>,
    /// What a worker must be allowed and the role that asks isn't.
    pub missing_rights: Vec<String>,
    /// Who keeps segments of the ring from being emptied.
    pub blockers: Vec<Blocker>,
    /// Sequences that would give numbers out again: its name, the highest stored number, its own.
    pub sequences_behind: Vec<(String, i64, i64)>,
    /// The isolation that transactions have unless they say otherwise, if it isn't the usual one.
    pub isolation: Option<String>,
    /// Known kinds whose jobs have been due for long while none of them runs.
    pub unhandled: Vec<Unhandled>,
    /// Settings that autovacuum needs and the server has switched off.
    pub no_autovacuum: Vec<String>,
    /// Our tables that autovacuum leaves out, or doesn't get to.
    pub uncleaned: Vec<Uncleaned>,
    /// Publications that send the ring to their subscribers, each with the statement that leaves it out.
    pub published: Vec<(String, String)>,
    /// What a server has only so much of, where it is used up.
    pub shortages: Vec<Shortage>,
    /// Who keeps the log of a file from being copied back, as far as the system tells: the process, and its
    /// program.
    pub readers: Vec<(u32, String)>,
}

/// As many rows of a lane, or of what is set aside, does a checkup look at: it must stay cheap however many jobs there
/// are.
pub(crate) const HEAD: u32 = 1_000;

/// How many there are, as far as somebody has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtLeast {
    /// So many were counted.
    pub n: u64,
    /// Whether there may be more.
    pub more: bool,
}

impl AtLeast {
    /// So many and no more.
    #[must_use]
    pub fn exactly(n: u64) -> Self {
        Self { n, more: false }
    }
}

/// Jobs that are due and nobody takes, though nothing stops them.
#[derive(Debug, Clone, PartialEq)]
pub struct Unhandled {
    /// Their kind.
    pub kind: Name,
    /// How many are due.
    pub jobs: AtLeast,
    /// For how long the first of them has been.
    pub oldest: Duration,
}

/// A table whose dead rows nobody removes.
#[derive(Debug, Clone, PartialEq)]
pub struct Uncleaned {
    /// The table.
    pub table: String,
    /// Its dead rows.
    pub dead_rows: u64,
    /// Whether autovacuum is switched off for it.
    pub off: bool,
    /// How long ago it was cleaned up last; nothing if it never was.
    pub cleaned: Option<Duration>,
}

/// A transaction whose lock keeps a segment of the ring from being emptied.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocker {
    /// The segment.
    pub segment: i32,
    /// What it takes up.
    pub bytes: u64,
    /// Whose transaction it is.
    pub holder: Holder,
    /// How long it has been open, if this role may know.
    pub age: Option<Duration>,
}

/// Whoever holds a lock.
#[derive(Debug, Clone, PartialEq)]
pub enum Holder {
    /// A session.
    Session {
        /// The server's process.
        pid: i32,
        /// What the client calls itself.
        application: String,
    },
    /// A transaction that was prepared, and neither committed nor rolled back.
    Prepared(String),
}

/// Something that a server has only so much of is used up.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortage {
    /// What it is.
    pub of: Scarce,
    /// How much there is of it, or for notifications how full their queue is in percent.
    pub most: u64,
    /// Who has it; nothing where nothing of the server's tells.
    pub takers: Vec<Taker>,
}

/// What a server has only so much of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scarce {
    /// Places of this workload class.
    Places(String),
    /// Room for notifications that a session hasn't read yet.
    Notifications,
    /// Connections.
    Connections,
}

/// A session, or several of a role, that have a part of what is scarce.
#[derive(Debug, Clone, PartialEq)]
pub struct Taker {
    /// The server's process; nothing for a prepared transaction, and for several sessions.
    pub pid: Option<i32>,
    /// Its role.
    pub role: String,
    /// What the client calls itself, or the name of the prepared transaction.
    pub name: String,
    /// How much of it it has.
    pub n: u64,
    /// For how long, if the role that asks may know.
    pub age: Option<Duration>,
}
