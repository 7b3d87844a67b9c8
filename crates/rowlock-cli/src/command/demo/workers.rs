//! Worker processes, and what is done to them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use anyhow::{Context, Result};
use rowlock::clock::Elapsed;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::home::Home;
use super::tail::Attempt;
use crate::{exit, show};

/// How much of a worker's words is looked at, from their end.
const WORDS: usize = 4_096;

/// A worker process. It is killed when this is dropped, and ends by itself when we are gone.
pub struct Worker {
    child: Child,
    /// What it says on stderr.
    words: File,
    pub fate: Fate,
}

/// What has happened to it.
pub enum Fate {
    /// It works.
    Works,
    /// It was stopped while it held these, under this name; others may have given it up since.
    Stopped {
        name: String,
        held: Vec<Attempt>,
        given_up: Option<Elapsed>,
    },
    /// It was given up, and woken up again.
    Woken { held: Vec<Attempt> },
    /// It was asked to end.
    Leaves,
}

impl Worker {
    pub fn start(home: &Home) -> Result<Self> {
        let words = home.words()?;
        let stderr = words.try_clone().context("can't share a file")?;
        let child = home
            .worker()?
            // The pipe's end is one leash: it closes when we are gone, however that happens. The other
            // is the system's, see `work --leashed`; it follows this thread, which is the main one.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(stderr)
            // A group of its own: a Ctrl-C is for us.
            .process_group(0)
            .spawn()
            .context("can't start a worker")?;
        let fate = Fate::Works;
        Ok(Self { child, words, fate })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal).context("can't signal a worker")
    }

    /// Whether it stands still.
    pub fn has_stopped(&self) -> Result<bool> {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(Pid::from_child(&self.child)), options);
        let status = status.context("can't look at a worker")?;
        Ok(status.is_some_and(|status| status.stopped()))
    }

    pub fn has_ended(&mut self) -> Result<bool> {
        let status = self.child.try_wait().context("can't look at a worker")?;
        Ok(status.is_some())
    }

    /// A worker must not end unless we end it.
    pub fn must_live(&mut self) -> Result<()> {
        match self.child.try_wait().context("can't look at a worker")? {
            None => Ok(()),
            Some(status) => Err(exit::with(
                exit::FAILED,
                format!("a worker ended by itself: {status}{}", self.last_words()),
            )),
        }
    }

    /// The last line that it wrote, as the end of a sentence; nothing if it was silent.
    pub fn last_words(&self) -> String {
        // Without moving the place at which it writes.
        let mut all = vec![0; WORDS];
        let size = self.words.metadata().map_or(0, |file| file.len());
        let from = size.saturating_sub(WORDS as u64);
        let read = self.words.read_at(&mut all, from).unwrap_or(0);
        let text = String::from_utf8_lossy(&all[..read]);
        match text.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("; its last words: {}", show::text(line.trim())),
            None => String::new(),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // SIGKILL also ends what stands still. It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
