//! A store of the demonstration's own, in a folder that is gone at the end.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rowlock::engine::sqlite::{Address, migrate_up};
use rowlock::{Clock, Rowlock};
use tempfile::TempDir;

use crate::cli::Crash;

/// The kind of all jobs.
pub const KIND: &str = "work";
/// How many jobs a worker runs at once.
pub const SLOTS: u32 = 4;

/// Where it happens. Another engine makes its private store here and says its URL.
pub struct Home {
    folder: TempDir,
    url: String,
    /// How long a job takes.
    pub nap: Duration,
}

impl Home {
    /// A new SQLite file, and a configuration for the workers.
    pub fn sqlite(how: &Crash, lease: Duration) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("rowlock_demo_")
            .tempdir()
            .context("can't make a temporary folder")?;
        let url = format!("sqlite:{}", folder.path().join("rowlock.db").display());
        migrate_up(&Address::parse(&url)?, &Clock::system())?;
        let home = Self {
            folder,
            url,
            nap: nap(how),
        };
        let config = format!(
            "[worker]\nconcurrency = {SLOTS}\nlease = \"{}ms\"\npoll = \"100ms\"\ngrace = \"5s\"\n\
             [handlers.{KIND}]\nbuiltin = \"sleep\"\nmax_attempts = 1000\n\
             backoff = {{ kind = \"fixed\", base = \"50ms\" }}\n",
            lease.as_millis()
        );
        std::fs::write(home.config(), config).context("can't write the configuration")?;
        Ok(home)
    }

    pub fn open(&self) -> Result<Rowlock> {
        Ok(Rowlock::open(&self.url)?)
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
            .args(["work", "--quiet", "--url", &self.url, "--leashed"])
            .arg(std::process::id().to_string())
            .arg("--config")
            .arg(self.config())
            .arg("--ran")
            .arg(self.ran())
            .current_dir(self.folder.path())
            .env_remove("ROWLOCK_URL")
            .env_remove("ROWLOCK_CONFIG");
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
