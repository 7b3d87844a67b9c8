//! What the figures were measured on.

use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::server::Server;

/// Told beside the figures, because they mean little without it.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Of rowlock.
    pub version: &'static str,
    /// Of the source, when it was built in its repository.
    pub commit: Option<String>,
    /// How many.
    pub cpus: usize,
    /// Its name.
    pub cpu: Option<String>,
    /// Of the folder that was measured in.
    pub file_system: String,
    /// Of the bundled SQLite.
    pub sqlite: &'static str,
    /// The server that was measured: its version, and the settings that figures depend on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgres: Option<String>,
    /// How many processes wanted a processor in the minute before: what is not near zero is others'.
    pub load: Option<f64>,
    /// Whether the compiler optimised.
    pub optimised: bool,
}

impl Machine {
    /// Looks around.
    #[must_use]
    pub fn here(folder: &Path) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: commit(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: cpu(),
            file_system: file_system(folder).unwrap_or_else(|| "unknown".to_owned()),
            sqlite: rusqlite::version(),
            postgres: None,
            load: load(),
            optimised: !cfg!(debug_assertions),
        }
    }

    /// The same beside a server, which is asked.
    ///
    /// # Errors
    /// If it can't be reached.
    pub async fn beside(self, url: &str) -> anyhow::Result<Self> {
        let session = Server::new(url)?.session().await?;
        let text = include_str!("postgres/sql/settings.sql");
        let told = session.client.query_one(text, &[]).await?;
        Ok(Self {
            postgres: told.get(0),
            ..self
        })
    }

    /// Whether others use so much of it that the figures are about them as well.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.load.is_some_and(|load| load > 0.5)
    }

    /// Whether a commit in that folder waits for a disk at all.
    #[must_use]
    pub fn has_disk(&self) -> bool {
        !["tmpfs", "ramfs"].contains(&self.file_system.as_str())
    }
}

fn commit() -> Option<String> {
    let told = Command::new("git")
        .args(["-C", env!("CARGO_MANIFEST_DIR")])
        .args([
            "describe",
            "--always",
            "--dirty",
            "--abbrev=12",
            "--exclude=*",
        ])
        .output()
        .ok()?;
    let text = String::from_utf8(told.stdout).ok()?.trim().to_owned();
    (told.status.success() && !text.is_empty()).then_some(text)
}

fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn cpu() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The type of the mount that a folder is below.
fn file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let mut best: Option<(usize, String)> = None;
    for line in mounts.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (Some(at), Some(kind)) = (words.next(), words.next()) else {
            continue;
        };
        // The later of two mounts at one place hides the earlier.
        let longer = best.as_ref().is_none_or(|(length, _)| at.len() >= *length);
        if folder.starts_with(at) && longer {
            best = Some((at.len(), kind.to_owned()));
        }
    }
    best.map(|(_, kind)| kind)
}
