//! SQLite's codes, sorted by remedy. The only place that knows them.

use rusqlite::ffi::ErrorCode;

use crate::error::Error;

/// SQLITE_BUSY_SNAPSHOT
const BUSY_SNAPSHOT: i32 = 517;

/// Turns a driver's error into ours; `doing` says what was tried.
pub(crate) fn map(why: rusqlite::Error, doing: &str) -> Error {
    let Some(code) = why.sqlite_error_code() else {
        return Error::Bug(format!("{doing}: {why}"));
    };
    let text = match &why {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        other => other.to_string(),
    };
    match code {
        _ if why
            .sqlite_error()
            .is_some_and(|error| error.extended_code == BUSY_SNAPSHOT) =>
        {
            Error::Unavailable(format!(
                "somebody wrote after this transaction had read ({doing}): roll back and try again, \
                 and begin with BEGIN IMMEDIATE"
            ))
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Error::Unavailable(format!(
            "another process has held the write lock for too long ({doing})"
        )),
        ErrorCode::DiskFull => Error::NoSpace(format!("{text} ({doing})")),
        ErrorCode::NotADatabase => Error::Schema(
            "the file is not a SQLite database: choose another path in --url".to_owned(),
        ),
        ErrorCode::DatabaseCorrupt => Error::Schema(format!(
            "the database is damaged: {text}. Restore a backup, or try: sqlite3 FILE .recover"
        )),
        ErrorCode::ReadOnly => Error::Unreachable(format!(
            "the database is read-only ({doing}): check the rights of the file and of its folder"
        )),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied => Error::Unreachable(format!(
            "can't open the database: {text}. Check that its folder exists and may be written"
        )),
        ErrorCode::SystemIoFailure => Error::Unreachable(format!(
            "the database can't be read or written: {text} ({doing})"
        )),
        ErrorCode::ConstraintViolation if text.starts_with("rowlock: ") => {
            Error::Invalid(text.trim_start_matches("rowlock: ").to_owned())
        }
        _ if text.contains("no such table: main.rowlock_")
            || text.contains("no such table: rowlock_") =>
        {
            Error::Schema(
                "this database has no rowlock tables: add them with `rowlock migrate up`"
                    .to_owned(),
            )
        }
        _ => Error::Bug(format!("{doing}: {text}")),
    }
}
