//! The only place that writes: data to stdout, everything else to stderr.

use std::fmt;
use std::io::{BufRead, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::{exit, log, show};

/// Nobody reads our output any more.
#[derive(Debug)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the output was closed")
    }
}

impl std::error::Error for Closed {}

/// Writes a line of data.
///
/// # Errors
/// [`Closed`] when nobody reads, otherwise what the system says.
pub fn line(text: &str) -> Result<()> {
    lines(&format!("{text}\n"))
}

/// Writes whole lines of data at once. What is in them moves no cursor.
///
/// # Errors
/// As [`line`].
pub fn lines(text: &str) -> Result<()> {
    let text = show::lines(text);
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(why) if why.kind() == ErrorKind::BrokenPipe => Err(Closed.into()),
        other => other.context("can't write to stdout"),
    }
}

/// Writes a value as one line of JSON.
///
/// # Errors
/// As [`line`].
pub fn json(value: &impl Serialize) -> Result<()> {
    line(&to_json(value)?)
}

/// One line of JSON.
///
/// # Errors
/// When the value can't be written as JSON.
pub fn to_json(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(value).context("can't write JSON")?;
    Ok(show::json(text))
}

static AS_JSON: OnceLock<()> = OnceLock::new();

/// From here on everything on stderr is an object a line, as the logs are.
pub fn speak_json() {
    AS_JSON.get_or_init(|| ());
}

/// Says something on stderr. If nobody listens, nobody misses it.
pub fn note(text: &str) {
    say("INFO", "", text);
}

/// Says on stderr what the user should know before it hurts.
pub fn warn(text: &str) {
    say("WARN", "warning: ", text);
}

/// Says on stderr why it failed.
pub fn error(text: &str) {
    say("ERROR", "error: ", text);
}

/// Asks something of whoever sits at the terminal.
pub fn ask(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "{}", show::lines(text)).and_then(|()| stderr.flush());
}

/// Asks whether to go on; `yes` is the answer of whoever can't be asked.
///
/// # Errors
/// For no, which `unchanged` puts into words, and without a terminal.
pub fn confirm(question: &str, yes: bool, unchanged: &'static str) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(exit::with(
            exit::USAGE,
            format!("{question} Without a terminal to ask, it needs --yes"),
        ));
    }
    ask(&format!("{question} Go on? [y/N] "));
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("can't read the answer")?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(exit::with(exit::FAILED, unchanged)),
    }
}

/// Says on stderr that this process has a bug.
pub fn panicked(panic: &std::panic::PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("?");
    let mut text = format!("thread '{name}' {panic}");
    let trace = std::backtrace::Backtrace::capture();
    if trace.status() == std::backtrace::BacktraceStatus::Captured {
        text += &format!("\n{trace}");
    }
    say("ERROR", "", &text);
}

fn say(level: &str, prefix: &str, text: &str) {
    log::put(worded(level, prefix, text).as_bytes());
}

/// A line for stderr, in the form that the logs have.
pub fn worded(level: &str, prefix: &str, text: &str) -> String {
    match AS_JSON.get() {
        None => format!("{prefix}{}\n", show::lines(text)),
        Some(()) => {
            let timestamp = rowlock::Clock::system().now();
            let line =
                serde_json::json!({ "timestamp": timestamp, "level": level, "message": text });
            format!("{}\n", show::json(line.to_string()))
        }
    }
}
