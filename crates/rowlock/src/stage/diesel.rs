//! Staging through diesel.

use diesel::sqlite::SqliteConnection;

use super::{Enqueued, StageBlocking};
use crate::clock::Clock;
use crate::engine::sqlite::through_diesel;
use crate::error::Result;
use crate::job::NewJob;

impl StageBlocking for &mut SqliteConnection {
    fn stage_blocking(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        through_diesel::stage(self, jobs, Clock::system().now())
    }
}
