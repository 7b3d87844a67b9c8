//! A store of the demonstration's own, in a folder or in a schema that is gone at the end.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rowlock::engine::postgres::{self, Postgres, Schema, drop_schema};
use rowlock::engine::sqlite;
use rowlock::job::Token;
use rowlock::{Clock, Rowlock};
use tempfile::TempDir;

use crate::cli::Crash;
use crate::open::{Store, parse};

/// The kind of all jobs.
pub const KIND: &str = "work";
/// How many jobs a worker runs at once.
pub const SLOTS: u32 = 4;

/// Where it happens: a folder for the logs, and a store of its own.
pub struct Home {
    folder: TempDir,
    store: Store,
    /// What workers are told.
    url: String,
    /// How long a job takes.
    pub nap: Duration,
}

impl Home {
    /// A new store, in the database of `server` or else in a SQLite file, and a configuration for the
    /// workers.
    pub async fn make(how: &Crash, lease: Duration, server: Option<&str>) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("rowlock_demo_")
            .tempdir()
            .context("can't make a temporary folder")?;
        let file = format!("sqlite:{}", folder.path().join("rowlock.db").display());
        let url = server.map_or(file, str::to_owned);
        let mut store = parse(&url)?;
        match &mut store {
            Store::Sqlite(address) => drop(sqlite::migrate_up(address, &Clock::system())?),
            Store::Postgres(address) => {
                let random = Token::random()?.get().unsigned_abs();
                address.schema = Schema::new(&format!("rowlock_demo_{random:x}"))?;
                postgres::migrate_up(address).await?;
            }
        }
        let home = Self {
            folder,
            store,
            url,
            nap: nap(how),
        };
        let config = format!(
            "[worker]\nconcurrency = {SLOTS}\nlease = \"{}ms\"\npoll = \"100ms\"\ngrace = \"5s\"\n\
             [handlers.{KIND}]\nbuiltin = \"sleep\"\nmax_attempts = 1000\n\
             backoff = {{ kind = \"fixed\", base = \"50ms\" }}\n",
            lease.as_millis()
        );
        match std::fs::write(home.config(), config) {
            Ok(()) => Ok(home),
            Err(why) => {
                home.remove().await?;
                Err(why).context("can't write the configuration")
            }
        }
    }

    pub async fn open(&self) -> Result<Rowlock> {
        match &self.store {
            Store::Sqlite(_) => Ok(Rowlock::open(&self.url)?),
            Store::Postgres(address) => {
                let clock = Clock::system();
                let engine = Postgres::open((**address).clone(), clock.clone()).await?;
                Ok(Rowlock::with(engine, clock))
            }
        }
    }

    /// Leaves nothing behind. A file goes with its folder.
    pub async fn remove(self) -> Result<()> {
        let Store::Postgres(address) = &self.store else {
            return Ok(());
        };
        drop_schema(address).await.with_context(|| {
            let schema = address.schema.as_str();
            format!("the demonstration's own schema {schema} is left over, drop it")
        })
    }

    pub fn told(&self) -> PathBuf {
        self.folder.path().join("told.ndjson")
    }

    pub fn ran(&self) -> PathBuf {
        self.folder.path().join("ran.ndjson")
    }

    /// A file for a worker's stderr. It has no name, and is gone when nobody has it open.
    pub fn words(&self) -> Result<File> {
        tempfile::tempfile_in(self.folder.path()).context("can't make a file for a worker's words")
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("rowlock.toml")
    }

    /// A worker of this store: this same binary.
    pub fn worker(&self) -> Result<Command> {
        let binary = std::env::current_exe().context("can't find this program's file")?;
        let mut command = Command::new(binary);
        command
            .args(["work", "--quiet", "--leashed"])
            .arg(std::process::id().to_string())
            .arg("--config")
            .arg(self.config())
            .arg("--ran")
            .arg(self.ran())
            .current_dir(self.folder.path())
            // Everybody may read a command line, and the URL may have a password in it.
            .env("ROWLOCK_URL", &self.url)
            .env_remove("ROWLOCK_CONFIG");
        match &self.store {
            Store::Sqlite(_) => command.env_remove("ROWLOCK_SCHEMA"),
            Store::Postgres(address) => command.env("ROWLOCK_SCHEMA", address.schema.as_str()),
        };
        Ok(command)
    }
}

/// Long enough that the jobs last about as long as the faults.
fn nap(how: &Crash) -> Duration {
    let faults = Duration::from_millis(150) * how.kills + Duration::from_millis(1_500);
    let jobs = u32::try_from(how.jobs).unwrap_or(u32::MAX).max(1);
    let nap = faults * (2 * SLOTS) / jobs;
    nap.clamp(Duration::from_millis(5), Duration::from_millis(120))
}
