//! The engine in the application's own PostgreSQL.
//!
//! Live jobs sit in a ring of four segments that are truncated in turn (sql/rotate.sql), so neither
//! speed nor space depends on how old the oldest snapshot is. Every step of the journey is one call of
//! one function, in a transaction of its own: nothing stays open between two messages, and nothing is
//! set per session, so PgBouncer may stand between. In: the journey's calls. Out: answers after the
//! commit. A crash in any of them leaves the database as of the last commit.

mod ask;
mod bounded;
mod browse;
mod cancel;
mod claim;
mod connect;
mod crons;
mod deep;
mod engine;
pub(crate) mod error;
mod examine;
pub(crate) mod guard;
mod health;
mod holdings;
mod host;
mod integrity;
mod keys;
mod lane;
mod lease;
mod link;
mod listen;
mod migrate;
mod operate;
mod outlook;
mod pairs;
mod part;
mod place;
mod posts;
mod ring;
mod roles;
mod routes;
mod row;
mod rows;
mod schedule;
mod sessions;
mod settle;
mod shared;
mod source;
pub(crate) mod stage;
pub(crate) mod statements;
mod sweep;
mod switches;
#[cfg(any(feature = "diesel-postgres", feature = "diesel-async-postgres"))]
pub(crate) mod through_diesel;
#[cfg(feature = "sea-orm-postgres")]
pub(crate) mod through_sea_orm;
#[cfg(feature = "sqlx-postgres")]
pub(crate) mod through_sqlx;
pub(crate) mod through_tokio_postgres;
mod tick;
mod vitals;
mod wanted;

pub use connect::{Address, Schema, ping};
pub use keys::{OrphanedKey, free_keys, orphaned_keys};
pub use listen::notifications_arrive;
pub use migrate::{
    LATEST, SchemaVersion, drop_schema, migrate_up, migration_sql, migrations, schema_version,
};
pub use part::part_sql;
pub use roles::{Role, Roles, grant_roles, roles_sql};
pub use shared::{InSchema, OnPrepared, Prepared};
pub use source::source;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::OnceCell;

use self::connect::Pool;
use self::deep::Deep;
use self::holdings::Holdings;
use self::listen::Listener;
use self::outlook::Outlook;
use self::ring::Ring;
use self::routes::Young;
use self::sessions::Sessions;
use self::source::Tables;
use super::Bell;
use crate::claim::{Observer, WorkerId};
use crate::clock::{Clock, Elapsed};
use crate::error::{Error, Result};
use crate::io::Io;
use crate::job::Name;

/// A handle on a store. Cheap to share, expensive to open: keep one per process.
pub struct Postgres {
    address: Address,
    clock: Clock,
    bell: Bell,
    pool: Pool,
    /// One connection for heartbeats: whoever asks long questions can't silence a worker.
    pulse: Pool,
    /// The tables of pairs, with connections of their own: a query of theirs may take long.
    tables: Arc<Tables>,
    /// The same for questions about single rows: a long tick must not keep jobs waiting.
    questions: Arc<Tables>,
    /// Whether all rows of a pair had live jobs when it was last looked at.
    all_live: Mutex<HashMap<Name, bool>>,
    listener: Listener,
    workers: Mutex<HashMap<WorkerId, i64>>,
    holdings: Holdings,
    /// By route; nothing stands for those that go by none.
    outlooks: Mutex<HashMap<Option<Name>, Arc<Outlook>>>,
    /// What routes hold in the ring, while a list of it is being read.
    young: Mutex<HashMap<WorkerId, Young>>,
    deep: Deep,
    ring: Mutex<Ring>,
    /// Rows that went through since the ring was looked at.
    flow: AtomicU64,
    turn: AtomicU64,
    /// Whether there may be suspects: asked for at every claim otherwise.
    suspects: AtomicBool,
    /// When each worker was last heard: a heartbeat that stands still is a death, whatever a clock says.
    observer: Mutex<Observer<WorkerId, Option<Timestamp>>>,
    /// When rows under no worker's name were searched for, and when under each worker's.
    searched: Mutex<Option<Elapsed>>,
    searched_by: Mutex<HashMap<WorkerId, Option<Elapsed>>>,
    errors_kept: i32,
    segment_bytes: i64,
    /// The store's own number, and since when it is known.
    store: Mutex<Option<(u64, Elapsed)>>,
    /// Its connections, as the server knows them.
    sessions: Sessions,
    /// Whether they are its own, once that was asked.
    own_sessions: OnceCell<bool>,
    // Last: connections end with it.
    io: Io,
}

/// A segment of this size is full.
const SEGMENT_BYTES: i64 = 64 * 1024 * 1024;

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Postgres {
    /// Opens a store whose schema is up to date.
    ///
    /// # Errors
    /// [`Error::Schema`] when it isn't, naming the remedy; [`Error::Unreachable`] when the server
    /// isn't there.
    pub async fn open(address: Address, clock: Clock) -> Result<Self> {
        let io = Io::start("rowlock-postgres")?;
        let sessions = Sessions::default();
        let make = |connections| connect::pool(&address, &io, connections, &sessions);
        let queries = address.for_queries();
        let make_for_queries = || connect::pool(&queries, &io, source::CONNECTIONS, &sessions);
        let pool = make(address.connections)?;
        let pulse = make(1)?;
        let tables = Arc::new(Tables::new(make_for_queries()?, io.clone()));
        let slow = make_for_queries()?;
        let questions = Arc::new(Tables::new(slow, io.clone()));
        let version = {
            let client = connect::take(&pool, ask::PATIENCE).await?;
            migrate::version(&client, &address.schema).await?
        };
        if version.stored < version.latest {
            return Err(Error::Schema(format!(
                "{address} has {}: run `rowlock migrate up`",
                match version.stored {
                    0 => "no rowlock tables".to_owned(),
                    old => format!("schema {old}, this rowlock needs {LATEST}"),
                }
            )));
        }
        Ok(Self {
            bell: Bell::default(),
            questions,
            all_live: Mutex::default(),
            listener: Listener::default(),
            workers: Mutex::default(),
            holdings: Holdings::default(),
            outlooks: Mutex::default(),
            young: Mutex::default(),
            deep: Deep::default(),
            ring: Mutex::default(),
            flow: AtomicU64::new(0),
            turn: AtomicU64::new(0),
            suspects: AtomicBool::new(true),
            observer: Mutex::default(),
            searched: Mutex::default(),
            searched_by: Mutex::default(),
            errors_kept: 10,
            segment_bytes: SEGMENT_BYTES,
            store: Mutex::default(),
            sessions,
            own_sessions: OnceCell::new(),
            address,
            clock,
            pool,
            pulse,
            tables,
            io,
        })
    }

    /// Keeps so many errors of a job instead of ten.
    #[must_use]
    pub fn keep_errors(mut self, errors: usize) -> Self {
        self.errors_kept = i32::try_from(errors).unwrap_or(i32::MAX);
        self
    }

    /// Goes on to the next segment at this size instead of 64 MB.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self
    }

    /// Where the store is.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether notifications arrive: not behind a pooler that hands out a connection per transaction.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.listening() == Some(true)
    }

    /// The same; nothing while that isn't known.
    #[must_use]
    pub fn listening(&self) -> Option<bool> {
        self.listener.hears()
    }
}

/// Locks, whatever happened to the last holder: what is in there are hints.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Milliseconds as the functions take them.
fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
