//! The tables that pairs are about: beside the jobs, or in a file of their own.

use std::sync::Arc;

use async_trait::async_trait;

use super::bounded::{Bounded, Open};
use super::connect::{self, Address, Create};
use super::examine;
use super::opened::Opened;
use super::rows::{self, Part};
use crate::clock::Clock;
use crate::engine::{Column, Examined, Lines, Source};
use crate::error::Result;
use crate::reconcile::Pair;

/// A file with the user's tables. A worker that asks about one row doesn't wait for a batch.
pub(super) struct Tables {
    pub(super) batches: Bounded,
    single: Bounded,
}

/// The user's tables in a file of their own, which is never written to and needs no table of ours.
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) for what is no SQLite URL.
pub fn source(url: &str) -> Result<Arc<dyn Source>> {
    let address = Address::parse(url)?;
    let open = {
        let address = address.clone();
        move || connect::look(&address)
    };
    Ok(Arc::new(Tables::start(&address, &Clock::system(), open)?))
}

impl Tables {
    /// The user's tables in the file that the jobs are in. It is opened for as long as the jobs' own connections are
    /// good: a new one would make a new log where theirs was removed.
    pub(super) fn beside_jobs(
        address: &Address,
        clock: &Clock,
        good: impl Fn() -> Result<()> + Clone + Send + 'static,
    ) -> Result<Self> {
        let theirs = address.clone();
        Self::start(address, clock, move || {
            good()?;
            connect::open(&theirs, Create::No)
        })
    }

    fn start(
        address: &Address,
        clock: &Clock,
        open: impl Fn() -> Result<rusqlite::Connection> + Clone + Send + 'static,
    ) -> Result<Self> {
        let opening = || -> Open {
            let (address, open) = (address.clone(), open.clone());
            Box::new(move || {
                let connection = open()?;
                connect::never_write(&connection)?;
                Opened::new(connection, &address)
            })
        };
        Ok(Self {
            batches: Bounded::start("rowlock-derive", clock.clone(), opening())?,
            single: Bounded::start("rowlock-ask", clock.clone(), opening())?,
        })
    }
}

#[async_trait]
impl Source for Tables {
    async fn columns(&self, pair: &Pair) -> Result<Vec<Column>> {
        let asked = pair.clone();
        let look = move |on: &rusqlite::Connection| rows::columns(on, &asked);
        self.single.ask(pair.timeout, look).await
    }

    async fn derive(
        &self,
        pair: &Pair,
        shard: u16,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Lines> {
        let asked = pair.clone();
        let part = Part {
            shard,
            cursor: cursor.map(str::to_owned),
            limit,
        };
        let look = move |on: &rusqlite::Connection| rows::elsewhere(on, &asked, &part);
        let found = self.batches.ask(pair.timeout, look).await?;
        Ok(found.lines)
    }

    async fn ask(&self, pair: &Pair, keys: &[String]) -> Result<Vec<bool>> {
        let (asked, keys) = (pair.clone(), keys.to_vec());
        let look = move |on: &rusqlite::Connection| rows::ask(on, &asked, &keys);
        self.single.ask(pair.timeout, look).await
    }

    async fn examine(&self, pair: &Pair) -> Result<Examined> {
        let asked = pair.clone();
        let look = move |on: &rusqlite::Connection| examine::examine(on, &asked);
        self.batches.ask(pair.timeout, look).await
    }
}
