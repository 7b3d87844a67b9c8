//! Numbers about the store as a whole, for a scrape: cheap to ask for, whatever the store holds.

use std::time::Duration;

/// What an engine can tell without reading jobs; what it doesn't have is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vitals {
    /// What only a server has.
    pub server: Option<ServerVitals>,
    /// Bytes of a file's write-ahead log.
    pub log_bytes: Option<u64>,
}

/// What only a server has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerVitals {
    /// How many transactions have begun since the oldest that somebody may still look at.
    pub horizon_transactions: u64,
    /// How long the oldest transaction has been open that holds the horizon, as far as this role sees.
    pub horizon_age: Duration,
    /// How often the ring has turned since the store was made.
    pub rotations: u64,
    /// Bytes that the server has written to its log since it was made.
    pub wal_bytes: u64,
    /// Dead rows in all tables of the database.
    pub database_dead_rows: u64,
    /// Bytes of each segment of the ring.
    pub segments: Vec<u64>,
    /// Dead rows of our own tables.
    pub dead_rows: Vec<(String, u64)>,
}
