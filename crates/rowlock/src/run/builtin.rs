//! Handlers that need no program: for trying things out, demonstrations and benchmarks.

use std::io::Write;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};

use super::task::Thread;
use super::{Context, Handler};
use crate::claim::ClaimedJob;
use crate::error::{Error, Result};
use crate::job::parse_duration;
use crate::settle::Outcome;

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// Does nothing.
    Noop,
    /// Writes the payload to stdout, one line a job.
    Echo,
    /// Waits for `{"for": "1s"}`.
    Sleep,
    /// Fails the first `{"failures": 1}` attempts, then succeeds.
    Flaky,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Noop, Self::Echo, Self::Sleep, Self::Flaky];

    /// Its name in rowlock.toml.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Echo => "echo",
            Self::Sleep => "sleep",
            Self::Flaky => "flaky",
        }
    }

    /// The handler.
    #[must_use]
    pub fn handler(self) -> impl Handler {
        Running(self)
    }
}

impl FromStr for Builtin {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|builtin| builtin.as_str() == text)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "{text:?} is not a builtin handler: use noop, echo, sleep or flaky"
                ))
            })
    }
}

struct Running(Builtin);

#[derive(Deserialize)]
struct Nap {
    #[serde(rename = "for", default = "one_second")]
    time: String,
}

fn one_second() -> String {
    "1s".to_owned()
}

#[derive(Deserialize)]
struct Mood {
    #[serde(default = "once")]
    failures: u32,
}

fn once() -> u32 {
    1
}

/// A line, and who waits for it.
type Line = (String, oneshot::Sender<std::io::Result<()>>);

/// So many lines wait for stdout; further jobs wait for a place.
const LINES: usize = 64;

/// Writes a line on a thread of its own: a pipe that is full blocks whatever writes to it, which must be neither a slot
/// nor a heartbeat. A job whose time is up leaves its line.
async fn echo(line: String) -> std::io::Result<()> {
    static LINES_OUT: OnceLock<Option<mpsc::Sender<Line>>> = OnceLock::new();
    let start = || {
        let (sender, mut lines) = mpsc::channel::<Line>(LINES);
        let write = move || {
            while let Some((line, waiting)) = lines.blocking_recv() {
                if !waiting.is_closed() {
                    let _ = waiting.send(std::io::stdout().write_all(line.as_bytes()));
                }
            }
        };
        let thread = Thread::start("rowlock-echo", write).ok()?;
        // It may be blocked for ever, and ends with the process.
        std::mem::forget(thread);
        Some(sender)
    };
    let gone = || std::io::Error::other("there is no thread for it");
    let sender = LINES_OUT.get_or_init(start).as_ref().ok_or_else(gone)?;
    let (waiting, written) = oneshot::channel();
    sender
        .send((line, waiting))
        .await
        .map_err(std::io::Error::other)?;
    written.await.map_err(std::io::Error::other)?
}

#[async_trait]
impl Handler for Running {
    async fn run(&self, job: &Context) -> Outcome {
        match self.0 {
            Builtin::Noop => Outcome::Done,
            Builtin::Echo => {
                // One write, so that lines of several slots don't mix.
                let line = format!("{}\n", job.payload);
                match echo(line).await {
                    Ok(()) => Outcome::Done,
                    Err(why) => retry(format!("can't write to stdout: {why}")),
                }
            }
            Builtin::Sleep => match nap(job) {
                Ok(time) => {
                    job.clock().sleep(time).await;
                    Outcome::Done
                }
                Err(why) => Outcome::Fail(why.to_string()),
            },
            Builtin::Flaky => match job.payload.to::<Mood>() {
                Ok(mood) if job.attempt <= mood.failures => {
                    retry(format!("attempt {} fails on purpose", job.attempt))
                }
                Ok(_) => Outcome::Done,
                Err(why) => Outcome::Fail(why.to_string()),
            },
        }
    }
}

fn nap(job: &ClaimedJob) -> Result<Duration> {
    parse_duration(&job.payload.to::<Nap>()?.time)
}

fn retry(error: String) -> Outcome {
    Outcome::Retry { error, after: None }
}
