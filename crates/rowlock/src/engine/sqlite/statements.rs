//! Loads the statements. One statement, one file.

use std::borrow::Cow;

use rusqlite::{CachedStatement, Connection};

use super::error::map;
use crate::error::Result;

/// A statement: its name, and the text of its file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sql {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

/// `sql!("claim")` is the statement in `sql/claim.sql`.
macro_rules! sql {
    ($name:literal) => {
        $crate::engine::sqlite::statements::Sql {
            name: $name,
            text: include_str!(concat!("sql/", $name, ".sql")),
        }
    };
}
pub(crate) use sql;

impl Sql {
    /// The text, or what a test has put in its place.
    pub(crate) fn text(self) -> Cow<'static, str> {
        #[cfg(feature = "test-hooks")]
        if let Some(mutated) = crate::hooks::statement("sqlite", self.name, self.text) {
            return Cow::Owned(mutated);
        }
        Cow::Borrowed(self.text)
    }

    /// Prepared once per connection.
    pub(crate) fn on(self, connection: &Connection) -> Result<CachedStatement<'_>> {
        connection
            .prepare_cached(&self.text())
            .map_err(|why| map(why, self.name))
    }
}
