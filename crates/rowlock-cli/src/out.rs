//! The only place that writes: data to stdout, everything else to stderr.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use serde::Serialize;

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

/// Writes whole lines of data at once.
///
/// # Errors
/// As [`line`].
pub fn lines(text: &str) -> Result<()> {
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
    serde_json::to_string(value).context("can't write JSON")
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
    let _ = write!(stderr, "{text}").and_then(|()| stderr.flush());
}

fn say(level: &str, prefix: &str, text: &str) {
    let line = match AS_JSON.get() {
        None => format!("{prefix}{text}"),
        Some(()) => {
            let timestamp = rowlock::Clock::system().now();
            serde_json::json!({ "timestamp": timestamp, "level": level, "message": text })
                .to_string()
        }
    };
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
