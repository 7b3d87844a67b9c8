//! `rowlock work --from`: jobs come from a sink that a drain fills, and no database is opened.

use std::sync::Arc;

use anyhow::Result;
use rowlock::Clock;
use rowlock::drain::sinks::redis::Redis;
use rowlock::run::Tally;

use super::{Beside, Declared, From, Start, block, serve, worker_line};
use crate::open::{Setup, Waited, sink};
use crate::{exit, out};

pub async fn run(setup: &Setup, url: &str, start: Start) -> Result<Tally> {
    let Start {
        handlers,
        options,
        listen,
        quiet,
        mut wait,
    } = start;
    let clock = Clock::system();
    let dispatcher = open(url, &clock)?;
    if !setup.config.pairs()?.is_empty() || !setup.config.crons()?.is_empty() {
        out::note(
            "the pairs and crons of the configuration are led by a drain or a worker with a database, \
             not here",
        );
    }
    let redis = Waited::Sink(sink(url));
    wait.until(&redis, async || Ok(dispatcher.ping().await?))
        .await?;
    let beside = Beside::listen(setup, listen).await?;
    drop(wait);
    if !quiet {
        let lines = [("from", sink(url)), worker_line(&handlers, &options)];
        block(&lines, beside.http.as_ref());
    }
    let declared = Declared {
        handlers,
        pairs: Vec::new(),
        crons: Vec::new(),
    };
    serve(From::Sink(dispatcher, clock), declared, options, beside).await
}

/// The sink, as a worker sees it; nothing is connected yet.
fn open(url: &str, clock: &Clock) -> Result<Arc<Redis>> {
    match url.split_once(':') {
        Some(("redis", _)) => Ok(Arc::new(Redis::open(url, clock.clone())?)),
        Some(("sidekiq+redis", _)) => Err(exit::with(
            exit::USAGE,
            "what goes to Sidekiq is run by Sidekiq: --from is for redis://...",
        )),
        // It may have a password in it, so it isn't repeated.
        _ => Err(exit::with(
            exit::USAGE,
            "--from: write redis://HOST:PORT/DB, as in the [[drain]] that fills it",
        )),
    }
}
