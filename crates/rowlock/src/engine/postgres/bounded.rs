//! Statements with a pair's query in them: they may take as long as the pair allows, and are ended on
//! the server then.

use std::time::Duration;

use deadpool::managed::Object;
use tokio_postgres::Row;

use super::ask::Value;
use super::connect::{Connection, Pool, take};
use super::error::{is_bad_value, is_blocked, is_worn_out, map_query, map_reading};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::io::Io;
use crate::log;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Stopped {
    /// Somebody's open transaction was in the way.
    Blocked(Error),
    /// A value that doesn't fit its type, of ours or in the query.
    BadValue(Error),
    Failed(Error),
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Blocked(why) | Stopped::BadValue(why) | Stopped::Failed(why) => why,
        }
    }
}

/// What a statement may do.
#[derive(Clone, Copy)]
pub(super) enum May {
    /// A function of ours, which sees to it that the query in it only reads.
    Write,
    /// The user's own query.
    Read,
}

/// Runs one statement within a time.
pub(super) async fn ask_within(
    (pool, io): (&Pool, &Io),
    text: &str,
    values: &[Value<'_>],
    doing: &str,
    (limit, may): (Duration, May),
) -> Result<Vec<Row>, Stopped> {
    let client = take(pool, limit).await.map_err(Stopped::Failed)?;
    let telling = client.cancel();
    let mut unheard = Unheard {
        io,
        client: Some(client),
    };
    let Some(client) = &unheard.client else {
        return Err(Stopped::Failed(Error::Bug("no connection".to_owned())));
    };
    let answer = async {
        match may {
            May::Write => client.ask(text, values).await.map(Some),
            May::Read => client.ask_reading(text, values).await,
        }
    };
    let asked = Clock::system().timeout(limit, answer).await;
    let Some(client) = unheard.client.take() else {
        return Err(Stopped::Failed(Error::Bug("no connection".to_owned())));
    };
    match asked {
        Some(Ok(Some(rows))) => Ok(rows),
        Some(Ok(None)) => Err(Stopped::Failed(Error::invalid(
            "a pair's query may only read: it switched transaction_read_only off",
        ))),
        Some(Err(why)) => {
            let error = match may {
                May::Write => map_query(&why, doing),
                May::Read => map_reading(&why, doing),
            };
            if is_worn_out(&error) {
                drop(Object::take(client));
            }
            Err(match () {
                () if is_blocked(&why) => Stopped::Blocked(error),
                () if is_bad_value(&why) => Stopped::BadValue(error),
                () => Stopped::Failed(error),
            })
        }
        None => {
            if let Err(why) = io.run("rowlock-cancel", |_| telling).await {
                log::debug!(%why, "a statement can't be cancelled");
            }
            drop(Object::take(client));
            Err(Stopped::Failed(Error::Invalid(format!(
                "timed out after {}",
                humantime::format_duration(limit)
            ))))
        }
    }
}

/// A statement whose answer nobody waits for any more: it is ended, and its connection with it.
pub(super) struct Unheard<'a> {
    pub(super) io: &'a Io,
    pub(super) client: Option<Connection>,
}

impl Drop for Unheard<'_> {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else {
            return;
        };
        let telling = client.cancel();
        drop(Object::take(client));
        if let Ok(starter) = self.io.starter() {
            starter.start("rowlock-cancel", telling);
        }
    }
}
