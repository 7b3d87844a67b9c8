//! The only place that writes: data to stdout, everything else to stderr.

use std::fmt;
use std::io::{ErrorKind, Write};

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

/// Says something on stderr. If nobody listens, nobody misses it.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Says on stderr what the user should know before it hurts.
pub fn warn(text: &str) {
    note(&format!("warning: {text}"));
}
