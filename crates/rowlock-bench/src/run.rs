//! A run's name, and what is left of runs that were killed.
//!
//! Everything that a run makes on a server is called `rowlock_bench_tTIME_RANDOM_NUMBER`, and the run keeps a session
//! of the name `rowlock_bench_tTIME_RANDOM` for as long as it lives. What is called so and has no such session is
//! left over: the next run, or `--clean`, removes it. Nothing else is ever touched.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use rowlock::Clock;
use rowlock::engine::postgres::{Schema, drop_schema};
use rowlock::job::Token;

use crate::Progress;
use crate::databases::in_database;
use crate::server::{Server, Session};

/// What every name begins with.
pub(crate) const PREFIX: &str = "rowlock_bench_t";

/// The name of this process's run.
pub(crate) fn name() -> Result<&'static str> {
    static NAME: OnceLock<String> = OnceLock::new();
    if let Some(name) = NAME.get() {
        return Ok(name);
    }
    let seconds = Clock::system().now().as_second();
    // Half of it is enough beside the time, and leaves room for what comes after.
    let random = Token::random()?.get().unsigned_abs() >> 32;
    Ok(NAME.get_or_init(|| format!("{PREFIX}{seconds:x}_{random:x}")))
}

/// A name for the next thing that it makes.
pub(crate) fn next() -> Result<String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Ok(format!("{}_{number}", name()?))
}

/// A run on a server, until it is dropped.
pub struct Run(#[allow(dead_code, reason = "it is held, not used")] Session);

impl Run {
    /// Begins, and removes what others have left; what this role can't remove is named.
    ///
    /// # Errors
    /// When the server can't be reached.
    pub async fn begin(url: &str, say: Progress<'_>) -> Result<Self> {
        let run = Self(Server::named(url, name()?.to_owned())?.session().await?);
        for (left, removed) in clean(url).await? {
            say(&match removed {
                Ok(()) => format!("removed {left}, left over from a run that was killed"),
                Err(why) => format!("{left} is left over from a run that was killed: {why:#}"),
            });
        }
        Ok(run)
    }
}

/// Removes from a server what runs have left that are no more; says what, and whether it could.
///
/// # Errors
/// When the server can't be reached.
pub async fn clean(url: &str) -> Result<Vec<(String, Result<()>)>> {
    let server = Server::named(url, name()?.to_owned())?;
    let session = server.session().await?;
    let rows = session
        .client
        .query(include_str!("leftover.sql"), &[])
        .await?;
    let mut all = Vec::new();
    for row in rows {
        let (what, name, place): (String, String, String) = (row.get(0), row.get(1), row.get(2));
        let removed = remove(&server, &session, &what, &name, &place).await;
        all.push((format!("the {what} {name}"), removed));
    }
    Ok(all)
}

async fn remove(
    server: &Server,
    session: &Session,
    what: &str,
    name: &str,
    place: &str,
) -> Result<()> {
    // The names are of our own form: nothing in them needs a quote.
    let text = match what {
        "schema" => {
            let address = server.address.clone().schema(Schema::new(name)?);
            return Ok(drop_schema(&address).await?);
        }
        "database" => {
            let text = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            return Ok(session.client.batch_execute(&text).await?);
        }
        "prepared transaction" => format!("ROLLBACK PREPARED '{name}'"),
        _ => format!("SELECT pg_drop_replication_slot('{name}')"),
    };
    // Both belong to a database, and only a session there can end them.
    let there = Server::named(&in_database(&server.url, place), server.schema.clone())?;
    let session = there.session().await.context("can't reach its database")?;
    Ok(session.client.batch_execute(&text).await?)
}
