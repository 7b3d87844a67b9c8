//! Staging through sqlx.

use sqlx::sqlite::{Sqlite, SqliteConnection};

use super::{Enqueued, Stage};
use crate::clock::Clock;
use crate::engine::sqlite::through_sqlx;
use crate::error::Result;
use crate::job::NewJob;

impl Stage for &mut SqliteConnection {
    async fn stage(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        through_sqlx::stage(self, jobs, Clock::system().now()).await
    }
}

impl Stage for &mut sqlx::Transaction<'_, Sqlite> {
    async fn stage(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        through_sqlx::stage(self, jobs, Clock::system().now()).await
    }
}
