//! Migrations: append-only, recorded with a checksum, applied under the write lock.

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::error::map;
use super::statements::{Sql, sql};
use crate::error::{Error, Result};

/// One step of the schema.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Its number, from 1 on without gaps.
    pub version: u32,
    /// What it is called.
    pub name: &'static str,
    /// Its statements.
    pub(crate) sql: Sql,
}

macro_rules! migration {
    ($version:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            sql: Sql {
                name: $name,
                text: include_str!(concat!("migrations/", $name, ".sql")),
            },
        }
    };
}

/// Every migration, oldest first.
pub const MIGRATIONS: &[Migration] = &[
    migration!(1, "0001_jobs"),
    migration!(2, "0002_pairs"),
    migration!(3, "0003_routes"),
];

/// The version this build works with.
pub const LATEST: u32 = MIGRATIONS.len() as u32;

impl Migration {
    /// The statements as they are run.
    #[must_use]
    pub fn text(&self) -> &'static str {
        self.sql.text
    }

    /// Tells whether a stored schema came from the same text (FNV-1a; nobody attacks this).
    #[must_use]
    pub fn checksum(&self) -> String {
        let hash = self
            .sql
            .text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("{hash:016x}")
    }
}

/// The stored schema, compared with what this build knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaVersion {
    /// What the file has; 0 for nothing.
    pub stored: u32,
    /// What this build works with.
    pub latest: u32,
}

/// Reads the version, and refuses a schema that is newer or was changed.
pub(super) fn version(connection: &Connection) -> Result<SchemaVersion> {
    let stored = applied(connection)?;
    for (version, name, checksum) in &stored {
        let known = MIGRATIONS.iter().find(|step| step.version == *version);
        match known {
            None => {
                return Err(Error::Schema(format!(
                    "the database has schema {version}, this rowlock knows up to {LATEST}: \
                     install a newer rowlock"
                )));
            }
            Some(step) if step.checksum() != *checksum => {
                return Err(Error::Schema(format!(
                    "migration {version} ({name}) was applied in another form (checksum {checksum}, \
                     expected {}): use the rowlock that made this database",
                    step.checksum()
                )));
            }
            Some(_) => {}
        }
    }
    Ok(SchemaVersion {
        stored: stored.last().map_or(0, |(version, _, _)| *version),
        latest: LATEST,
    })
}

fn applied(connection: &Connection) -> Result<Vec<(u32, String, String)>> {
    // A statement, and not a look at the connection's copy of the schema: that one may be older than
    // the lock we have waited for, and another process may have migrated in the meantime.
    let exists: bool = sql!("migration_exists")
        .on(connection)?
        .query_row([], |row| row.get(0))
        .map_err(|why| map(why, "migration_exists"))?;
    if !exists {
        return Ok(Vec::new());
    }
    let mut read = sql!("migration_list").on(connection)?;
    let rows = read
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .map_err(|why| map(why, "migration_list"))?;
    rows.collect::<rusqlite::Result<_>>()
        .map_err(|why| map(why, "migration_list"))
}

/// Applies what is missing; says which versions. Two processes may try at once: the lock decides.
pub(super) fn up(connection: &mut Connection, now: Timestamp) -> Result<Vec<u32>> {
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(|why| map(why, "migrating"))?;
    let stored = version(&transaction)?.stored;
    transaction
        .execute_batch(&sql!("migration_table").text())
        .map_err(|why| map(why, "migration_table"))?;
    let mut done = Vec::new();
    for step in MIGRATIONS.iter().filter(|step| step.version > stored) {
        transaction
            .execute_batch(&step.sql.text())
            .map_err(|why| map(why, step.name))?;
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("migrate.one_transaction") {
            let _ = transaction.execute_batch("COMMIT; BEGIN IMMEDIATE");
        }
        crash_point!("migrate.applied");
        let values = params![
            step.version,
            step.name,
            step.checksum(),
            now.as_millisecond()
        ];
        sql!("migration_add")
            .on(&transaction)?
            .execute(values)
            .map_err(|why| map(why, "migration_add"))?;
        done.push(step.version);
    }
    crash_point!("migrate.written");
    transaction.commit().map_err(|why| map(why, "migrating"))?;
    crash_point!("migrate.committed");
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_saw_the_file_before_somebody_migrated_it_does_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            let connection = Connection::open(dir.path().join("x.db")).unwrap();
            let _: i64 = connection
                .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
                .unwrap();
            connection
        };
        let (mut first, mut second) = (open(), open());
        assert_eq!(up(&mut first, Timestamp::UNIX_EPOCH).unwrap(), [1, 2, 3]);
        assert!(up(&mut second, Timestamp::UNIX_EPOCH).unwrap().is_empty());
    }
}
