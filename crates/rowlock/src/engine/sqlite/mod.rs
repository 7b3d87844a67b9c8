//! The embedded engine: a SQLite file of its own, or tables beside the application's.
//!
//! One writer thread per process commits what waits together, and notices other processes' commits;
//! two more read, for operators and for workers that look for due jobs, and two run users' queries,
//! which may be told to stop. In: the journey's calls. Out: answers after the commit. A crash in any
//! of them leaves the file as of the last commit.

mod bounded;
mod browse;
mod claim;
mod connect;
mod crons;
mod desk;
mod done;
pub(crate) mod error;
mod examine;
mod health;
mod held_back;
mod integrity;
mod lane;
mod lease;
mod migrate;
mod opened;
mod operate;
mod pairs;
mod plain_select;
mod posts;
mod query;
mod readers;
mod routes;
mod row;
mod rows;
mod schedule;
pub(crate) mod settle;
mod source;
pub(crate) mod stage;
pub(crate) mod statements;
mod switches;
#[cfg(feature = "diesel-sqlite")]
pub(crate) mod through_diesel;
#[cfg(feature = "sqlx-sqlite")]
pub(crate) mod through_sqlx;
mod tick;
mod value;
mod waiting;
mod watch;
mod writer;

pub use connect::{Address, Owner, Synchronous, owner};
pub use health::part_sql;
pub use migrate::{LATEST, MIGRATIONS, Migration, SchemaVersion};
pub use source::source;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;

use self::connect::Create;
use self::desk::{Desk, Lane, Next};
use self::opened::{Files, Opened};
use self::settle::Terms;
use self::source::Tables;
use super::{
    Applied, Bell, Cancel, Capabilities, Dispatch, Drift, Engine, Fact, Filter, Health, Integrity,
    Operate,
};
use super::{QueueRow, Stats, Wakeups, WorkerRow};
use crate::claim::{Claim, Claimed, Expired, Heartbeat, Observer, WorkerId};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::job::{JobId, JobState, Kind, NewJob, Record, Token};
use crate::settle::{Settled, Settlement};
use crate::stage::Enqueued;

/// A handle on a store. Cheap to share, expensive to open: keep one per process.
pub struct Sqlite {
    address: Address,
    clock: Clock,
    bell: Bell,
    writer: Desk,
    reader: Desk,
    peeker: Desk,
    tables: Arc<Tables>,
    observer: Arc<Mutex<Observer>>,
    turn: AtomicUsize,
    was_idle: AtomicBool,
    errors_kept: i64,
}

impl std::fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Looks at the schema without changing anything; a missing file has version 0.
///
/// # Errors
/// [`Error::Schema`] for a schema that is newer or was changed, and whatever opening can meet.
pub fn schema_version(address: &Address) -> Result<SchemaVersion> {
    if owner(address)? != Owner::Rowlock {
        let latest = LATEST;
        return Ok(SchemaVersion { stored: 0, latest });
    }
    migrate::version(&connect::open(address, Create::No)?)
}

/// What is broken in the file itself. It reads all of it, so it may take a while.
///
/// # Errors
/// Whatever opening and reading can meet.
pub fn damage(address: &Address) -> Result<Vec<String>> {
    health::damage(&connect::open(address, Create::No)?)
}

/// Brings the schema up to date, making the file if need be; says which versions were applied.
///
/// # Errors
/// [`Error::Schema`] for a schema that is newer or was changed, and whatever opening can meet.
pub fn migrate_up(address: &Address, clock: &Clock) -> Result<Vec<u32>> {
    let mut connection = connect::open(address, Create::Yes)?;
    migrate::up(&mut connection, clock.now())
}

impl Sqlite {
    /// Opens a store whose schema is up to date.
    ///
    /// # Errors
    /// [`Error::Schema`] when it isn't, naming the remedy; whatever opening can meet.
    pub fn open(address: Address, clock: Clock) -> Result<Self> {
        let address = address.followed();
        // Looked at first: opening would turn WAL on, in somebody else's file too.
        let version = schema_version(&address)?;
        if version.stored < version.latest {
            return Err(Error::Schema(format!(
                "{} has {}: run `rowlock migrate up`",
                address.path.display(),
                match version.stored {
                    0 => "no rowlock tables".to_owned(),
                    old => format!("schema {old}, this rowlock needs {LATEST}"),
                }
            )));
        }
        let opened = Opened::new(connect::open(&address, Create::No)?, &address)?;
        let files = opened.files();
        let bell = Bell::default();
        let rings = bell.clone();
        let writer = Desk::start("rowlock-write", move |inbox| {
            writer::serve(&opened, inbox, &rings);
        })?;
        let reader = reading(&address, &files, "rowlock-read")?;
        let peeker = reading(&address, &files, "rowlock-peek")?;
        let tables = Arc::new(Tables::beside_jobs(&address, &clock, move || {
            files.in_place()
        })?);
        Ok(Self {
            address,
            clock,
            bell,
            writer,
            reader,
            peeker,
            tables,
            observer: Arc::default(),
            turn: AtomicUsize::new(0),
            was_idle: AtomicBool::new(false),
            errors_kept: 10,
        })
    }

    /// Keeps so many errors of a job instead of ten.
    #[must_use]
    pub fn keep_errors(mut self, errors: usize) -> Self {
        self.errors_kept = i64::try_from(errors).unwrap_or(i64::MAX);
        self
    }

    /// Where the store is.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// How the writer really commits, asked of SQLite itself: the journal's mode, and whether a
    /// commit waits for the disk.
    ///
    /// # Errors
    /// Whatever the database answers.
    pub async fn durability(&self) -> Result<(String, Synchronous)> {
        self.write(1, false, connect::durability).await
    }

    fn terms(&self) -> Terms {
        Terms {
            now: self.clock.now(),
            errors_kept: self.errors_kept,
        }
    }

    async fn write<T: Send + 'static>(
        &self,
        weight: usize,
        rings: bool,
        work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.writer.ask(Lane::Work, weight, rings, work).await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.reader.ask(Lane::Work, 1, false, work).await
    }
}

/// A thread that reads. Operators' questions may take long, so a claim's look has one of its own.
fn reading(address: &Address, files: &Arc<Files>, name: &'static str) -> Result<Desk> {
    let opened = Opened::beside(connect::open(address, Create::No)?, files);
    Desk::start(name, move |inbox| {
        while let Next::Group(group) = inbox.next(None) {
            for mut errand in group {
                // A file that was removed still answers, with what is nobody's any more.
                let outcome = opened
                    .check()
                    .and_then(|()| errand.run(opened.connection()));
                errand.answer(outcome);
            }
        }
    })
}

#[async_trait]
impl Dispatch for Sqlite {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "sqlite",
            server_clock: false,
            prunes_by_day: false,
            drained: false,
        }
    }

    async fn join(&self, worker: &WorkerId, lease: Duration) -> Result<()> {
        let (worker, now) = (worker.clone(), self.clock.now());
        self.write(1, false, move |on| lease::join(on, &worker, lease, now))
            .await?;
        crash_point!("join.committed");
        Ok(())
    }

    async fn heartbeat(&self, worker: &WorkerId, held: Vec<Token>) -> Result<Heartbeat> {
        let (worker, terms) = (worker.clone(), self.terms());
        let answer = self
            .write(1, false, move |on| {
                lease::heartbeat(on, &worker, &held, terms)
            })
            .await?;
        crash_point!("heartbeat.committed");
        Ok(answer)
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        let clock = self.clock.clone();
        // After an empty answer a look without the write lock comes first: every commit wakes every
        // idle worker, and they would only stand in each other's way. Whether there are suspects, or
        // jobs of a route, is another question each time.
        let looks_always = claim.suspect || claim.route.is_some();
        if looks_always || self.was_idle.load(Ordering::Relaxed) {
            let (wanted, now) = (claim.clone(), self.clock.now());
            let look = move |on: &Connection| claim::peek(on, &wanted, now);
            let (due, next_due) = self.peeker.ask(Lane::Work, 1, false, look).await?;
            if !due {
                let jobs = Vec::new();
                let rest = None;
                return Ok(Claimed {
                    jobs,
                    next_due,
                    rest,
                });
            }
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let weight = claim.limit;
        let claimed = self
            .write(weight, false, move |on| {
                let claimed = claim::claim(on, &claim, clock.now(), turn)?;
                crash_point!("claim.written");
                Ok(claimed)
            })
            .await?;
        crash_point!("claim.committed");
        if !looks_always {
            self.was_idle
                .store(claimed.jobs.is_empty(), Ordering::Relaxed);
        }
        Ok(claimed)
    }

    async fn start_suspect(&self, worker: &WorkerId, id: JobId, token: Token) -> Result<()> {
        let worker = worker.clone();
        self.write(1, false, move |on| {
            lease::start_suspect(on, &worker, id, token)
        })
        .await?;
        crash_point!("suspect.committed");
        Ok(())
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<Settled>> {
        let terms = self.terms();
        // Whoever waits for work need not hear of a job that has ended.
        let ends = |each: &Settlement| each.verdict.is_end();
        let rings = !settlements.iter().all(ends);
        let answers = self
            .write(settlements.len(), rings, move |on| {
                let answers = done::settle_all(on, &settlements, terms)?;
                crash_point!("settle.written");
                Ok(answers)
            })
            .await?;
        crash_point!("settle.committed");
        Ok(answers)
    }

    async fn leave(&self, worker: &WorkerId) -> Result<()> {
        let (worker, terms) = (worker.clone(), self.terms());
        self.write(1, true, move |on| lease::leave(on, &worker, terms))
            .await?;
        crash_point!("leave.committed");
        Ok(())
    }

    fn wakeups(&self) -> Wakeups {
        self.writer.watch();
        self.bell.listen()
    }
}

#[async_trait]
impl Engine for Sqlite {
    async fn add_kinds(&self, kinds: &[Kind]) -> Result<Vec<Drift>> {
        let kinds = kinds.to_vec();
        self.write(1, true, move |on| operate::add_kinds(on, &kinds))
            .await
    }

    async fn stage(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        let clock = self.clock.clone();
        let weight = jobs.len();
        let work = move |on: &Connection| stage::stage(on, &jobs, clock.now());
        let staged = self.writer.ask(Lane::Stage, weight, true, work).await?;
        crash_point!("stage.committed");
        Ok(staged)
    }

    async fn expire(&self) -> Result<Expired> {
        let (clock, errors_kept) = (self.clock.clone(), self.errors_kept);
        let observer = Arc::clone(&self.observer);
        let find = {
            let clock = clock.clone();
            move |on: &Connection| {
                let mut observer = observer.lock().unwrap_or_else(PoisonError::into_inner);
                lease::find_dead(on, &mut observer, clock.elapsed(), clock.now())
            }
        };
        let bury = move |on: &Connection, dead: lease::Dead| {
            let now = clock.now();
            lease::bury(on, dead, Terms { now, errors_kept })
        };
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("expire.under_one_lock") {
            let found = self.write(1, false, find).await?;
            found.crash_point();
            let mut found = Some(found);
            return self
                .write(1, true, move |on| {
                    bury(on, found.take().unwrap_or_default())
                })
                .await;
        }
        let expired = self
            .write(1, true, move |on| {
                let found = find(on)?;
                found.crash_point();
                bury(on, found)
            })
            .await
            .inspect_err(|why| {
                let mut observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
                observer.refused(why);
            })?;
        if !expired.workers.is_empty() {
            crash_point!("expire.committed");
        }
        Ok(expired)
    }

    async fn cancel(&self, ids: Vec<JobId>) -> Result<Vec<Result<Cancel>>> {
        let now = self.clock.now();
        self.write(ids.len(), false, move |on| {
            ids.iter().map(|id| settle::cancel(on, *id, now)).collect()
        })
        .await
    }

    async fn redrive(&self, ids: Vec<JobId>) -> Result<Vec<Result<()>>> {
        let now = self.clock.now();
        self.write(ids.len(), true, move |on| {
            ids.iter().map(|id| settle::redrive(on, *id, now)).collect()
        })
        .await
    }

    async fn delete(&self, ids: Vec<JobId>) -> Result<Vec<Result<()>>> {
        self.write(ids.len(), false, move |on| {
            ids.iter().map(|id| settle::delete(on, *id)).collect()
        })
        .await
    }

    async fn prune(&self, limit: usize) -> Result<usize> {
        let now = self.clock.now();
        let pruned = self
            .write(limit, false, move |on| {
                let pruned = settle::prune(on, now, limit)?;
                crash_point!("prune.written");
                Ok(pruned)
            })
            .await?;
        crash_point!("prune.committed");
        Ok(pruned)
    }
}

#[async_trait]
impl Operate for Sqlite {
    async fn job(&self, id: JobId) -> Result<Option<Record>> {
        self.read(move |on| operate::job(on, id)).await
    }

    async fn jobs(&self, filter: Filter) -> Result<Vec<Record>> {
        self.read(move |on| operate::jobs(on, &filter)).await
    }

    async fn running(&self, limit: usize) -> Result<Vec<Record>> {
        self.read(move |on| operate::running(on, limit)).await
    }

    async fn ended(&self, state: JobState, limit: usize) -> Result<Vec<Record>> {
        self.read(move |on| operate::ended(on, state, limit)).await
    }

    async fn stats(&self) -> Result<Stats> {
        let now = self.clock.now();
        self.read(move |on| operate::stats(on, now)).await
    }

    async fn queues(&self) -> Result<Vec<QueueRow>> {
        let now = self.clock.now();
        self.read(move |on| operate::queues(on, now)).await
    }

    async fn kinds(&self) -> Result<Vec<Kind>> {
        self.read(operate::kinds).await
    }

    async fn apply(&self, kinds: &[Kind]) -> Result<Vec<Applied>> {
        let (kinds, now) = (kinds.to_vec(), self.clock.now());
        self.write(1, true, move |on| operate::apply(on, &kinds, now))
            .await
    }

    async fn workers(&self) -> Result<Vec<WorkerRow>> {
        self.read(operate::workers).await
    }

    async fn health(&self) -> Result<Health> {
        let now = self.clock.now();
        let path = self.address.path.clone();
        self.read(move |on| health::health(on, &path, now)).await
    }

    async fn facts(&self, after: Option<JobId>, limit: usize) -> Result<Vec<Fact>> {
        let now = self.clock.now();
        self.read(move |on| integrity::facts(on, after, now, limit))
            .await
    }

    async fn integrity(&self) -> Result<Integrity> {
        let now = self.clock.now();
        self.read(move |on| integrity::integrity(on, now)).await
    }
}
