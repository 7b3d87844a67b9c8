//! SQLite's codes, sorted by remedy. The only place that knows them, whichever driver met them.

use rusqlite::ffi::{self, ErrorCode};

use crate::error::Error;

/// SQLITE_BUSY_SNAPSHOT
const BUSY_SNAPSHOT: i32 = 517;

/// Turns a driver's error into ours; `doing` says what was tried.
pub(crate) fn map(why: rusqlite::Error, doing: &str) -> Error {
    let Some(error) = why.sqlite_error().copied() else {
        return Error::Bug(format!("{doing}: {why}"));
    };
    let text = match &why {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        // Without the whole text of the statement: `doing` names it.
        rusqlite::Error::SqlInputError { msg, offset, .. } => format!("{msg} at offset {offset}"),
        other => other.to_string(),
    };
    sort(error, &text, doing)
}

/// The same for a statement with a user's query in it: what is wrong with that is told in SQLite's
/// own words.
pub(super) fn map_query(why: rusqlite::Error) -> Error {
    let of_the_file = matches!(
        why.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::NotADatabase
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure
        )
    );
    if of_the_file {
        return map(why, "a pair's query");
    }
    let text = match why {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text,
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        other => other.to_string(),
    };
    if text.contains("JSON cannot hold BLOB") {
        return Error::invalid(
            "its query has a BLOB, which a payload can't hold: leave the column out, or write \
             hex(column)",
        );
    }
    Error::Invalid(text)
}

/// The same for sqlx.
#[cfg(feature = "sqlx-sqlite")]
pub(crate) fn map_sqlx(why: sqlx::Error, doing: &str) -> Error {
    let Some(error) = why.as_database_error() else {
        return match why {
            sqlx::Error::PoolTimedOut => Error::Unavailable(format!("{why} ({doing})")),
            sqlx::Error::Io(_) | sqlx::Error::PoolClosed => {
                Error::Unreachable(format!("{why} ({doing})"))
            }
            _ => Error::Bug(format!("{doing}: {why}")),
        };
    };
    if error.message().contains("transaction within a transaction") {
        return Error::invalid(
            "the connection is in a transaction that sqlx doesn't know of: begin it with begin() or \
             begin_with(\"BEGIN IMMEDIATE\")",
        );
    }
    let code = error.code().and_then(|code| code.parse().ok());
    sort(
        ffi::Error::new(code.unwrap_or_default()),
        error.message(),
        doing,
    )
}

/// The same for diesel, which tells SQLite's words and keeps its code to itself.
#[cfg(feature = "diesel-sqlite")]
pub(crate) fn map_diesel(why: &diesel::result::Error, doing: &str) -> Error {
    let diesel::result::Error::DatabaseError(_, error) = why else {
        return Error::Bug(format!("{doing}: {why}"));
    };
    let text = error.message();
    let code = WORDS
        .iter()
        .find(|(words, _)| text.starts_with(words))
        .map_or(ffi::SQLITE_ERROR, |(_, code)| *code);
    sort(ffi::Error::new(code), text, doing)
}

/// What SQLite says for a code, and our own refusals.
#[cfg(feature = "diesel-sqlite")]
const WORDS: &[(&str, i32)] = &[
    ("database is locked", ffi::SQLITE_BUSY),
    ("database table is locked", ffi::SQLITE_LOCKED),
    ("database or disk is full", ffi::SQLITE_FULL),
    ("file is not a database", ffi::SQLITE_NOTADB),
    ("database disk image is malformed", ffi::SQLITE_CORRUPT),
    ("attempt to write a readonly database", ffi::SQLITE_READONLY),
    ("unable to open database file", ffi::SQLITE_CANTOPEN),
    ("access permission denied", ffi::SQLITE_PERM),
    ("disk I/O error", ffi::SQLITE_IOERR),
    ("rowlock: ", ffi::SQLITE_CONSTRAINT),
];

fn sort(error: ffi::Error, text: &str, doing: &str) -> Error {
    match error.code {
        _ if error.extended_code == BUSY_SNAPSHOT => Error::Unavailable(format!(
            "somebody wrote after this transaction had read ({doing}): roll back and try again, \
             and begin with BEGIN IMMEDIATE"
        )),
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
