//! Completing through diesel.

use diesel::sqlite::SqliteConnection;

use super::{CompleteBlocking, Completion, held, inside};
use crate::engine::sqlite::through_diesel;
use crate::error::Result;

impl CompleteBlocking for &mut SqliteConnection {
    fn complete_blocking(self, completion: &Completion) -> Result<()> {
        inside(through_diesel::in_transaction(self))?;
        held(through_diesel::complete(self, completion)?)
    }
}
