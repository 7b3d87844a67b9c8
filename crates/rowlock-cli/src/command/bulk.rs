//! `rowlock enqueue --from`: many jobs, in batches, with a bounded memory.
//!
//! It stops at the first bad line. Everything before that line is committed, and the message says
//! how to go on; so a file can be mended and continued without adding anything twice.

mod interrupt;
pub mod line;
mod reader;

use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rowlock::config::Config;
use rowlock::verify::{Answer, Told};
use rowlock::{Enqueued, Error, Kind, NewJob, Rowlock, Status};

use self::interrupt::Interrupt;
use self::reader::{Lines, Read};
use super::enqueue::{Known, traced};
use crate::cli::Enqueue;
use crate::open::{Access, Setup, quoted};
use crate::{exit, out, show};

/// How many jobs are staged in one transaction.
const BATCH: usize = 1_000;
/// How many bytes of input a batch may have.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// How many unknown kinds are named before it gets boring.
const WARNINGS: usize = 10;

pub async fn run(setup: &Setup, what: &Enqueue, json: bool) -> Result<u8> {
    let Some(from) = &what.from else {
        return Err(exit::with(exit::USAGE, "--from FILE or --from -"));
    };
    let mut lines = Lines::open(from)?;
    let declared = setup.config.kinds()?;
    let told = what.told.as_ref().map(Told::open).transpose()?;
    let rowlock = setup.open(Access::Write).await?;
    let mut load = Load {
        known: Known::of(&rowlock, declared.clone()).await?,
        declared,
        trace: what.traceparent.clone(),
        config: &setup.config,
        rowlock,
        told,
        only_known: what.known,
        json,
        from,
        command: go_on_command(setup, what),
        over: false,
        batch: Vec::new(),
        bytes: 0,
        safe: 0,
        counts: [0; 4],
        warned: HashSet::new(),
        bar: bar(&lines),
    };
    let interrupt = Interrupt::listen()?;
    load.all(&mut lines, &interrupt).await?;
    load.bar.finish_and_clear();
    if !json {
        out::line(&load.summary())?;
    }
    Ok(exit::OK)
}

struct Load<'a> {
    rowlock: Rowlock,
    /// Where it is written down what we were told.
    told: Option<Told>,
    config: &'a Config,
    declared: Vec<Kind>,
    /// The trace that all of them are in.
    trace: Option<String>,
    known: Known,
    only_known: bool,
    json: bool,
    from: &'a Path,
    /// How to go on, as a command.
    command: String,
    /// Whether the last line was read.
    over: bool,
    /// Jobs that wait for their transaction, each with its line.
    batch: Vec<(u64, NewJob)>,
    bytes: usize,
    /// The last line up to which everything is committed.
    safe: u64,
    counts: [u64; 4],
    warned: HashSet<String>,
    bar: ProgressBar,
}

impl Load<'_> {
    async fn all(&mut self, lines: &mut Lines, interrupt: &Interrupt) -> Result<()> {
        loop {
            if interrupt.came() {
                let last = self.batch.last().map_or(self.safe, |(line, _)| *line);
                self.flush(last).await?;
                self.bar.finish_and_clear();
                let text = format!("stopped; {}", self.go_on(last + 1));
                return Err(exit::with(exit::FAILED, text));
            }
            match lines.next() {
                Ok(Read::Line(number, text)) => {
                    if text.trim_ascii().is_empty() {
                        continue;
                    }
                    match self.job(text) {
                        Ok(job) => self.batch.push((number, job)),
                        Err(why) => return self.bad(number, &why).await,
                    }
                    self.bytes += text.len();
                }
                Ok(Read::TooLong(number)) => {
                    let why = format!(
                        "is longer than {} bytes",
                        show::count(reader::LONGEST as u64)
                    );
                    return self.bad(number, &why).await;
                }
                Ok(Read::End(last)) => {
                    self.over = true;
                    return self.flush(last).await;
                }
                Err(why) => {
                    let last = self.batch.last().map_or(self.safe, |(line, _)| *line);
                    self.flush(last).await?;
                    return Err(exit::with(
                        exit::FAILED,
                        format!("can't read on: {why}; {}", self.go_on(last + 1)),
                    ));
                }
            }
            if self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES {
                let last = self.batch.last().map_or(self.safe, |(line, _)| *line);
                self.flush(last).await?;
                self.bar.set_position(lines.bytes());
                let queued = show::count(self.counts.iter().sum());
                self.bar.set_message(queued);
            }
        }
    }

    /// Reads a line as a job.
    fn job(&mut self, text: &[u8]) -> Result<NewJob, String> {
        let job = line::parse(text, &self.declared, self.config)?;
        let job = traced(job, self.trace.as_deref()).map_err(|why| why.to_string())?;
        let kind = job.kind();
        if !self.known.has(kind) {
            if self.only_known {
                return Err(self.known.complaint(kind));
            }
            if self.warned.len() < WARNINGS && self.warned.insert(kind.to_string()) {
                let complaint = self.known.complaint(kind);
                self.bar.suspend(|| out::warn(&complaint));
            }
        }
        Ok(job)
    }

    /// Commits what waits. Afterwards everything up to line `last` is safe.
    async fn flush(&mut self, last: u64) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        let (numbers, mut jobs): (Vec<u64>, Vec<NewJob>) = batch.into_iter().unzip();
        let (mut bad, mut logged) = (None, Ok(()));
        while !jobs.is_empty() {
            let answers = self.rowlock.enqueue_many(jobs.clone()).await;
            let written = self.write_down(&jobs, answers.as_deref().ok());
            match answers {
                Ok(answers) => {
                    // Only of what is in a line may not be missing.
                    logged = written;
                    self.say(&answers)?;
                    break;
                }
                // Nothing of the batch is in: everything before the bad one goes in without it.
                Err(Error::InvalidAt { index, why }) => {
                    jobs.truncate(index);
                    bad = numbers.get(index).map(|line| (*line, why));
                }
                Err(why) => return Err(self.failed(&why)),
            }
        }
        self.safe = bad.as_ref().map_or(last, |(line, _)| line - 1);
        match (bad, logged) {
            (None, Ok(())) => Ok(()),
            (Some((line, why)), Ok(())) => Err(self.complain(line, &why)),
            (bad, Err(why)) => Err(self.unlogged(bad.is_none(), &why)),
        }
    }

    /// Everything up to the safe line is in, and the log doesn't say so.
    fn unlogged(&self, all: bool, why: &Error) -> anyhow::Error {
        self.bar.finish_and_clear();
        if all && self.over {
            return exit::unlogged(&format!("every line is in ({})", self.summary()), why);
        }
        let done = format!("everything before line {} is in", self.safe + 1);
        let why = exit::unlogged(&done, why);
        let go_on = self.go_on(self.safe + 1);
        let text = format!("{why}; mend that or take a new log for --told, then {go_on}");
        exit::with(exit::FAILED, text)
    }

    /// A line that is no job: what came before it is committed, then it is named.
    async fn bad(&mut self, line: u64, why: &str) -> Result<()> {
        self.flush(line - 1).await?;
        Err(self.complain(line, why))
    }

    fn complain(&self, line: u64, why: &str) -> anyhow::Error {
        self.bar.finish_and_clear();
        exit::with(
            exit::USAGE,
            format!("line {line}: {why}; mend it, then {}", self.go_on(line)),
        )
    }

    fn failed(&self, why: &Error) -> anyhow::Error {
        self.bar.finish_and_clear();
        exit::explain(why, format!("{why}; {}", self.go_on(self.safe + 1)))
    }

    fn go_on(&self, line: u64) -> String {
        let safe = match line - 1 {
            0 => "nothing is in yet".to_owned(),
            1 => "the line before it is in".to_owned(),
            n => format!("the {} lines before it are in", show::count(n)),
        };
        match self.from.as_os_str() == "-" {
            true => format!(
                "send everything from line {line} on again ({safe}, {})",
                self.summary()
            ),
            false => format!(
                "go on with: tail -n +{line} {} | {} ({safe}, {})",
                quoted(&self.from.display().to_string()),
                self.command,
                self.summary()
            ),
        }
    }

    /// Before anything else happens: what isn't written down isn't looked for.
    fn write_down(&self, jobs: &[NewJob], answers: Option<&[Enqueued]>) -> Result<(), Error> {
        let Some(told) = &self.told else {
            return Ok(());
        };
        let now = self.rowlock.clock().now();
        let answer = |(n, job)| {
            let answer = answers.and_then(|answers| answers.get(n));
            Answer::enqueue(now, job, answer)
        };
        let lines: Vec<_> = jobs.iter().enumerate().map(answer).collect();
        told.write(&lines)
    }

    fn say(&mut self, answers: &[Enqueued]) -> Result<()> {
        let mut lines = String::new();
        for answer in answers {
            self.counts[answer.status as usize] += 1;
            if self.json {
                lines += &out::to_json(answer)?;
                lines.push('\n');
            }
        }
        match out::lines(&lines) {
            // Jobs matter more than words about them: it goes on without a listener.
            Err(why) if why.is::<out::Closed>() => Ok(()),
            other => other,
        }
    }

    fn summary(&self) -> String {
        let statuses = [
            Status::Queued,
            Status::Duplicate,
            Status::Held,
            Status::Rejected,
        ];
        let parts = statuses.into_iter().filter_map(|status| {
            let n = self.counts[status as usize];
            (n > 0 || status == Status::Queued)
                .then(|| format!("{} {}", status.as_str(), show::count(n)))
        });
        parts.collect::<Vec<_>>().join(" · ")
    }
}

/// The command that takes the rest from its stdin, with everything that was asked for.
fn go_on_command(setup: &Setup, what: &Enqueue) -> String {
    let mut verb = "enqueue --from -".to_owned();
    if what.known {
        verb += " --known";
    }
    if let Some(told) = &what.told {
        verb += &format!(" --told {}", quoted(&told.display().to_string()));
    }
    setup.line(&verb)
}

/// A progress bar on stderr, if that is a terminal.
fn bar(lines: &Lines) -> ProgressBar {
    let style = match lines.total() {
        Some(_) => "{wide_bar} {bytes} of {total_bytes}  {msg} jobs  {eta} left",
        None => "{spinner} {bytes} read  {msg} jobs",
    };
    // The target draws nothing unless stderr is a terminal.
    let bar = ProgressBar::with_draw_target(lines.total(), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
