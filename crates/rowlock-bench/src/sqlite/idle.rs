//! What a worker costs that has nothing to do; and processes of a measurement, seen from outside.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use rowlock::Clock;

use super::ours;
use super::part::{Part, READY};
use crate::starts::{FIRST, Pace, timed};
use crate::stopwatch::Stopwatch;
use crate::{Bound, Measurement, Place, Progress, Size};

/// Processor time of a worker without work, as a share of one core.
pub(super) async fn measure(size: &Size, place: &Place, say: Progress<'_>) -> Result<Measurement> {
    say("idle worker");
    let path = place.file("idle.db");
    place.remove(&path);
    let rowlock = ours::create(&path)?;
    rowlock.enqueue(&timed(FIRST)?).await?;
    drop(rowlock);
    let mut worker = Child::start(Part::Worker, &path)?;
    worker.ready()?;
    let clock = Clock::system();
    // The looks for work grow rarer first.
    clock.sleep(size.idle / 10).await;
    let (before, watch) = (worker.ticks(), Stopwatch::start());
    clock.sleep(size.idle).await;
    let (after, time) = (worker.ticks(), watch.elapsed());
    worker.end()?;
    let share = match (before, after) {
        (Some(before), Some(after)) => (after - before) / TICKS / time.as_secs_f64(),
        // Only Linux tells.
        _ => f64::NAN,
    };
    Ok(Measurement::new("idle_worker", "% of a core", 0)
        .ours(&[share * 100.0])
        .goal("ours", Bound::AtMost(1.0)))
}

/// Ticks of a second in /proc, the same on every Linux.
const TICKS: f64 = 100.0;

/// This binary again. It is killed when this is dropped.
pub(super) struct Child {
    process: std::process::Child,
    stdout: BufReader<ChildStdout>,
}

impl Child {
    pub(super) fn start(part: Part, path: &Path) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "part"]).arg(path);
        match part {
            Part::Worker => &mut command,
            Part::Producer(Pace::Often(jobs)) => command.args(["--produce", &jobs.to_string()]),
            Part::Producer(Pace::Rarely(jobs)) => {
                command.args(["--rarely", "--produce", &jobs.to_string()])
            }
        };
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("can't start a process")?;
        let stdout = process.stdout.take().context("no stdout")?;
        let stdout = BufReader::new(stdout);
        Ok(Self { process, stdout })
    }

    /// Waits until the worker has run its first job.
    pub(super) fn ready(&mut self) -> Result<()> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        ensure!(line.trim_end() == READY, "the worker said {line:?}");
        Ok(())
    }

    /// Lets it end; what it said.
    pub(super) fn end(mut self) -> Result<String> {
        drop(self.process.stdin.take());
        let mut text = String::new();
        self.stdout.read_to_string(&mut text)?;
        ensure!(self.process.wait()?.success(), "a process failed: {text}");
        Ok(text)
    }

    /// User and system time so far.
    fn ticks(&self) -> Option<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).ok()?;
        // The name in the middle may have spaces and brackets.
        let (_, rest) = text.rsplit_once(')')?;
        let mut numbers = rest.split_whitespace().skip(11);
        let user: f64 = numbers.next()?.parse().ok()?;
        let system: f64 = numbers.next()?.parse().ok()?;
        Some(user + system)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It has ended already, unless something failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
