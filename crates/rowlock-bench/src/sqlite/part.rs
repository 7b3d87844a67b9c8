//! The other processes of a measurement: this binary again, as a producer or as a worker.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rowlock::Rowlock;

use super::ours::open;
use crate::parent::until_it_is_done;
use crate::starts::{FIRST, Pace, Times, produce, work};

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Enqueues jobs, and tells when each call returned.
    Producer(Pace),
    /// Works until its stdin is closed, and tells when each handler was entered.
    Worker,
}

/// What a worker says then.
pub(super) const READY: &str = "ready";

impl Part {
    /// Plays the part.
    ///
    /// # Errors
    /// When the store can't be used.
    pub async fn play(self, path: &Path) -> Result<()> {
        let rowlock = open(path)?;
        let times = match self {
            Self::Producer(pace) => produce(&rowlock, pace).await?,
            Self::Worker => work_until_closed(rowlock).await?,
        };
        let mut text = String::new();
        for (n, at) in times {
            text.push_str(&format!("{n} {}\n", at.as_nanos()));
        }
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }
}

/// What a process has told, back as times.
pub(super) fn read(text: &str) -> Result<Times> {
    let number = |line: &str| {
        let (n, at) = line.split_once(' ')?;
        Some((n.parse().ok()?, Duration::from_nanos(at.parse().ok()?)))
    };
    text.lines()
        .filter(|line| *line != READY)
        .map(|line| number(line).with_context(|| format!("not a time: {line:?}")))
        .collect()
}

async fn work_until_closed(rowlock: Rowlock) -> Result<Times> {
    let (stopper, _watching) = until_it_is_done()?;
    work(rowlock, &stopper, |n| {
        if n == FIRST {
            // A parent that is gone closes stdin as well.
            let _ = writeln!(std::io::stdout().lock(), "{READY}");
        }
    })
    .await
}
