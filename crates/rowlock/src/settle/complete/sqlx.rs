//! Completing through sqlx.

use sqlx::sqlite::Sqlite;

use super::{Complete, Completion, held};
use crate::engine::sqlite::through_sqlx;
use crate::error::Result;

impl Complete for &mut sqlx::Transaction<'_, Sqlite> {
    async fn complete(self, completion: &Completion) -> Result<()> {
        held(through_sqlx::complete(self, completion).await?)
    }
}
