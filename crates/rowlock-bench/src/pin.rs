//! A transaction that stays open: what is dead can't be cleaned up meanwhile.

use anyhow::{Context, Result, ensure};

use crate::server::{Server, Session};

/// How it keeps what is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pin {
    /// It has looked at something and keeps its snapshot.
    Reading,
    /// It has written something.
    Writing,
}

/// One that is open.
pub(crate) struct Pinned(Session);

impl Pinned {
    pub(crate) async fn new(server: &Server, pin: Pin) -> Result<Self> {
        let session = server.session().await?;
        let text = server.put(match pin {
            Pin::Reading => include_str!("pin/reading.sql"),
            Pin::Writing => include_str!("pin/writing.sql"),
        });
        session.client.batch_execute(&text).await?;
        Ok(Self(session))
    }

    /// One that has ended meanwhile kept nothing.
    pub(crate) async fn still_holds(&self) -> Result<()> {
        let row = self.0.client.query_one(include_str!("pin/age.sql"), &[]);
        let age: i64 = row.await.context("the old transaction has ended")?.get(0);
        ensure!(age > 0, "the old transaction is not old");
        Ok(())
    }
}
