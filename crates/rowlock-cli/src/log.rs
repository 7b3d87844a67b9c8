//! Logs: on stderr, compact and with colours only on a terminal, or one object a line.

mod stderr;

pub use stderr::{flush, put};

use std::cell::Cell;
use std::fmt::{self, Write};
use std::io::IsTerminal;

use anyhow::Result;
use tracing::Level;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::writer::MakeWriterExt;

use self::stderr::Stderr;
use crate::cli::{Bench, Drain, Log, Verb, Volume};
use crate::{out, show};

/// Starts logging as loud as the verb wants it.
///
/// # Errors
/// When the system has no thread to give.
pub fn start(form: Log, verb: &Verb) -> Result<()> {
    if form == Log::Json {
        out::speak_json();
    }
    if runs_for_long(verb) {
        stderr::start(|lost| {
            out::worded(
                "WARN",
                "warning: ",
                &format!("stderr took nothing for a while: {lost} lines of the log are lost"),
            )
        })?;
        // The usual hook writes to stderr by itself, and would wait for it.
        std::panic::set_hook(Box::new(out::panicked));
    }
    let level = match verb {
        Verb::Work(work) => level(work.volume),
        Verb::Dev(dev) => level(dev.volume),
        Verb::Drain(Drain::Run(run)) => level(run.volume),
        // Silent workers are what it is about.
        Verb::Demo(_) => LevelFilter::ERROR,
        // A line in the middle of the screen helps nobody; what is wrong is shown at its bottom.
        Verb::Top(_) if std::io::stderr().is_terminal() => LevelFilter::OFF,
        // It measures a worker as it is started, logs and all.
        Verb::Bench(_) => LevelFilter::INFO,
        _ => LevelFilter::WARN,
    };
    let shown = match verb {
        // Its jobs fail on purpose.
        Verb::Bench(Bench::SoakWorker { .. }) => Level::ERROR,
        Verb::Bench(_) => Level::WARN,
        _ => Level::TRACE,
    };
    let log = tracing_subscriber::fmt()
        .with_target(false)
        .with_max_level(level)
        .with_writer((|| Stderr).with_max_level(shown));
    match form {
        Log::Text => log.compact().with_ansi(colours()).fmt_fields(Plain).init(),
        Log::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}

/// Whether something else waits for this process: it goes on without a log.
fn runs_for_long(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::Work(_)
            | Verb::Dev(_)
            | Verb::Drain(Drain::Run(_))
            | Verb::Dashboard(_)
            | Verb::Guard(_)
    )
}

/// Fields as they are, without colours. Those of a job are written down when it begins, whether or not anything is logged of
/// it then: so it has to be quick, and the usual way takes twice as long.
struct Plain;

thread_local! {
    /// Grows once to what is usual.
    static TEXT: Cell<String> = const { Cell::new(String::new()) };
}

impl<'a> FormatFields<'a> for Plain {
    fn format_fields<R: RecordFields>(&self, mut to: Writer<'a>, fields: R) -> fmt::Result {
        let mut all = Fields(TEXT.take());
        all.0.clear();
        fields.record(&mut all);
        let written = match all.0.bytes().any(may_be_control) {
            false => to.write_str(&all.0),
            true => to.write_str(&show::lines(&all.0)),
        };
        TEXT.set(all.0);
        written
    }
}

/// Whether a byte is a control character, or begins one or whatever else is spelled out.
fn may_be_control(byte: u8) -> bool {
    byte < b' ' || matches!(byte, 0x7f | 0xc2 | 0xe2 | 0xef)
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Where it was said, of what others log: known already.
        if field.name().starts_with("log.") {
            return;
        }
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        if field.name() != "message" {
            self.0.push_str(field.name());
            self.0.push('=');
        }
        // Nothing can go wrong with a string.
        let _ = write!(self.0, "{value:?}");
    }
}

fn level(volume: Volume) -> LevelFilter {
    match volume {
        Volume { verbose: true, .. } => LevelFilter::DEBUG,
        Volume { quiet: true, .. } => LevelFilter::WARN,
        _ => LevelFilter::INFO,
    }
}

/// Whether stderr is a terminal whose owner wants colours (no-color.org).
fn colours() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelled_out() {
        let text = "a\u{1b}[2Jb\u{9b}c\u{7f} grün\n\tx";
        assert!(text.bytes().any(may_be_control));
        assert_eq!(show::lines(text), "a\\u{1b}[2Jb\\u{9b}c\\u{7f} grün\n\tx");
        assert!(!"job=1 kind=größe".bytes().any(may_be_control));
    }
}
