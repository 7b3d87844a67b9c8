//! Logs: on stderr, compact, with colours only on a terminal.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;

use crate::cli::{Verb, Volume};

/// Starts logging as loud as the verb wants it.
pub fn start(verb: &Verb) {
    let level = match verb {
        Verb::Work(work) => level(work.volume),
        Verb::Dev(dev) => level(dev.volume),
        _ => LevelFilter::WARN,
    };
    tracing_subscriber::fmt()
        .compact()
        .with_target(false)
        .with_max_level(level)
        .with_ansi(colours())
        .with_writer(std::io::stderr)
        .init();
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
