//! Logs: on stderr, compact and with colours only on a terminal, or one object a line.

use std::io::IsTerminal;

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt;

use crate::cli::{Bench, Drain, Log, Verb, Volume};
use crate::out;

/// Starts logging as loud as the verb wants it.
pub fn start(form: Log, verb: &Verb) {
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
        .with_writer(std::io::stderr.with_max_level(shown));
    match form {
        Log::Text => log.compact().with_ansi(colours()).init(),
        Log::Json => {
            out::speak_json();
            log.json().flatten_event(true).init();
        }
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
