//! Waits, at the start of what runs for long, for a database that isn't there yet: both may start with the machine.

use std::time::Duration;

use anyhow::Result;
use rowlock::clock::Elapsed;
use rowlock::engine::postgres;
use rowlock::run::Signals;
use rowlock::run::task::Tasks;
use rowlock::{Clock, Error};

use super::{Setup, Store};
use crate::{exit, out, show};

/// How long after the first attempt comes the second; each pause is twice the one before.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(2);

/// How long, and since when. While it waits, a signal ends the process at once: nothing has begun.
#[derive(Debug)]
pub struct Wait {
    limit: Duration,
    clock: Clock,
    began: Elapsed,
    /// Ends the process at a signal; until this is dropped.
    signals: Tasks,
    /// How the process ends then.
    code: u8,
}

impl Wait {
    /// As the flag says, else the configuration. What runs once is waited for by others: it waits only when told to.
    pub fn new(setup: &Setup, flag: Option<Duration>, once: bool) -> Self {
        let otherwise = if once {
            Duration::ZERO
        } else {
            setup.config.worker.wait
        };
        let clock = Clock::system();
        Self {
            limit: flag.unwrap_or(otherwise),
            began: clock.elapsed(),
            clock,
            signals: Tasks::default(),
            code: if once { exit::UNREACHABLE } else { exit::OK },
        }
    }

    /// Tries until it succeeds, fails for a reason that doesn't pass by itself, or the time is over.
    pub async fn until<T>(
        &mut self,
        what: &Waited<'_>,
        mut step: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        let (mut told, mut pause, mut doubted) = (false, PAUSE, false);
        loop {
            let why = match step().await {
                Ok(done) => return Ok(done),
                Err(why) => why,
            };
            let left = self.left();
            if left.is_zero() {
                return Err(why);
            }
            match what.judge(&why).await {
                Judged::Passes => {}
                // It may have come back between the step and the question: once more tells.
                Judged::Answers if !doubted => {
                    doubted = true;
                    continue;
                }
                Judged::Answers | Judged::Stays => return Err(why),
            }
            if !told {
                self.tell(what, &why)?;
                told = true;
            }
            self.clock.sleep(pause.min(left)).await;
            pause = (pause * 2).min(LONGEST);
        }
    }

    fn left(&self) -> Duration {
        let waited = self.clock.elapsed().saturating_sub(self.began);
        self.limit.saturating_sub(waited)
    }

    fn tell(&mut self, what: &Waited<'_>, why: &anyhow::Error) -> Result<()> {
        let limit = show::span(self.limit);
        out::warn(&format!("waiting for {what} (up to {limit}): {why:#}"));
        let (mut signals, code) = (Signals::listen()?, self.code);
        self.signals.start("rowlock-wait", async move {
            signals.next().await;
            out::note("stopped before it had begun");
            std::process::exit(i32::from(code));
        });
        Ok(())
    }
}

/// What is waited for.
#[derive(Debug)]
pub enum Waited<'a> {
    Store(&'a Store),
    /// A Redis that jobs are taken from, as it is shown.
    Sink(String),
}

impl std::fmt::Display for Waited<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(store) => write!(f, "the database {}", store.shown()),
            Self::Sink(shown) => f.write_str(shown),
        }
    }
}

/// What an error means to a caller that would rather wait.
enum Judged {
    /// It may pass by itself.
    Passes,
    /// It doesn't.
    Stays,
    /// The server takes connections, so it doesn't, unless it has just come back.
    Answers,
}

impl Waited<'_> {
    async fn judge(&self, why: &anyhow::Error) -> Judged {
        #[cfg(feature = "test-hooks")]
        if rowlock::hooks::switched_off("wait.judge") {
            return Judged::Passes;
        }
        match (why.downcast_ref(), self) {
            (Some(Error::Unavailable(_)), _) => Judged::Passes,
            // The words alone don't tell a server that is away from one that refuses us.
            (Some(Error::Unreachable(_)), Self::Store(Store::Postgres(address))) => {
                match postgres::ping(address).await {
                    Ok(()) => Judged::Answers,
                    Err(Error::Unavailable(_)) => Judged::Passes,
                    Err(_) => Judged::Stays,
                }
            }
            _ => Judged::Stays,
        }
    }
}
