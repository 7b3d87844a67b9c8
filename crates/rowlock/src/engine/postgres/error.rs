//! PostgreSQL's codes, sorted by remedy. The only place that knows them, whichever driver met them.

use std::error::Error as _;

use crate::error::Error;

/// Our own refusals, raised by the functions.
const INVALID: &str = "RL001";
const LEASE_LOST: &str = "RL002";
const MISPLACED: &str = "RL003";

/// Turns a driver's error into ours; `doing` says what was tried.
pub(crate) fn map(why: &tokio_postgres::Error, doing: &str) -> Error {
    let Some(error) = why.as_db_error() else {
        return match why.is_closed() || is_io(why) {
            true => {
                Error::Unavailable(format!("the connection was lost ({doing}): {}", cause(why)))
            }
            false => Error::Bug(format!("{doing}: {}", cause(why))),
        };
    };
    let detail = error.detail().unwrap_or_default();
    sort(error.code().code(), error.message(), detail, doing)
}

/// The same for sqlx.
#[cfg(feature = "sqlx-postgres")]
pub(crate) fn map_sqlx(why: &sqlx::Error, doing: &str) -> Error {
    if let sqlx::Error::Database(error) = why {
        let error: &sqlx::postgres::PgDatabaseError = match error.try_downcast_ref() {
            Some(error) => error,
            None => return Error::Bug(format!("{doing}: {why}")),
        };
        let detail = error.detail().unwrap_or_default();
        return sort(error.code(), error.message(), detail, doing);
    }
    match why {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => {
            Error::Unavailable(format!("{why} ({doing})"))
        }
        sqlx::Error::Tls(_) | sqlx::Error::PoolClosed => {
            Error::Unreachable(format!("{why} ({doing})"))
        }
        _ => Error::Bug(format!("{doing}: {why}")),
    }
}

/// The same for SeaORM, which has it from sqlx.
#[cfg(feature = "sea-orm-postgres")]
pub(crate) fn map_sea_orm(why: &sea_orm::DbErr, doing: &str) -> Error {
    use sea_orm::{DbErr, RuntimeErr};
    match why {
        DbErr::Conn(RuntimeErr::SqlxError(inner))
        | DbErr::Exec(RuntimeErr::SqlxError(inner))
        | DbErr::Query(RuntimeErr::SqlxError(inner)) => map_sqlx(inner, doing),
        DbErr::ConnectionAcquire(_) => Error::Unavailable(format!("{why} ({doing})")),
        _ => Error::Bug(format!("{doing}: {why}")),
    }
}

/// The same for diesel, which tells the server's words and keeps most of its codes to itself.
#[cfg(any(feature = "diesel-postgres", feature = "diesel-async-postgres"))]
pub(crate) fn map_diesel(why: &diesel::result::Error, doing: &str) -> Error {
    use diesel::result::{DatabaseErrorKind as Kind, Error as Diesel};
    let (kind, error) = match why {
        Diesel::DatabaseError(kind, error) => (kind, error),
        Diesel::BrokenTransactionManager => return sort("25P02", "", "", doing),
        _ => return Error::Bug(format!("{doing}: {why}")),
    };
    let text = error.message();
    let code = match kind {
        Kind::SerializationFailure => "40001",
        Kind::ReadOnlyTransaction => "25006",
        Kind::ClosedConnection | Kind::UnableToSendCommand => "08006",
        _ => WORDS
            .iter()
            .find(|(words, _)| text.contains(words))
            .map_or("unknown", |(_, code)| *code),
    };
    sort(code, text, error.details().unwrap_or_default(), doing)
}

/// What a server that speaks English says for a code, and our own refusals.
#[cfg(any(feature = "diesel-postgres", feature = "diesel-async-postgres"))]
const WORDS: &[(&str, &str)] = &[
    ("rowlock: ", INVALID),
    ("deadlock detected", "40P01"),
    ("current transaction is aborted", "25P02"),
    ("lock timeout", "55P03"),
    ("could not obtain lock", "55P03"),
    ("canceling statement", "57014"),
    ("terminating connection", "57P01"),
    ("server closed the connection", "08006"),
    ("No space left on device", "53100"),
    ("out of memory", "53200"),
    ("out of shared memory", "53200"),
    ("permission denied", "42501"),
    ("does not exist", "42P01"),
];

/// The same for a connection that wasn't made.
pub(super) fn unreachable(why: &tokio_postgres::Error, shown: &str) -> Error {
    match why.as_db_error() {
        Some(error) => match sort(error.code().code(), error.message(), "", "connecting") {
            Error::Unreachable(why) => Error::Unreachable(format!("{shown}: {why}")),
            other => other,
        },
        None => Error::Unreachable(format!(
            "can't reach {shown}: {}. Check that the server runs, and the URL",
            cause(why)
        )),
    }
}

/// The same for a caller that waits: a server that isn't there may be so in a moment, its refusal stands.
pub(super) fn away(why: &tokio_postgres::Error, shown: &str) -> Error {
    match unreachable(why, shown) {
        Error::Unreachable(words)
            if why.as_db_error().is_none() && (why.is_closed() || is_io(why)) =>
        {
            Error::Unavailable(words)
        }
        other => other,
    }
}

fn is_io(why: &tokio_postgres::Error) -> bool {
    why.source()
        .is_some_and(|cause| cause.downcast_ref::<std::io::Error>().is_some())
}

/// The innermost reason: the outer ones only say that there is one.
fn cause(why: &tokio_postgres::Error) -> String {
    let mut text = why.to_string();
    let mut inner = why.source();
    while let Some(error) = inner {
        text = error.to_string();
        inner = error.source();
    }
    text
}

/// A code and what the server says, as an error of ours.
pub(crate) fn sort(code: &str, text: &str, detail: &str, doing: &str) -> Error {
    match code {
        INVALID => {
            let why = text.trim_start_matches("rowlock: ").to_owned();
            match detail.parse() {
                Ok(index) => Error::InvalidAt { index, why },
                Err(_) => Error::Invalid(why),
            }
        }
        LEASE_LOST => Error::LeaseLost,
        MISPLACED => Error::Unavailable(format!("{text} ({doing}): they are looked for")),
        "40001" | "40P01" => Error::Unavailable(format!(
            "another transaction was in the way ({doing}): roll back and try again from its BEGIN ({text})"
        )),
        "55P03" => Error::Unavailable(format!(
            "a lock was not to be had in time ({doing}): {text}"
        )),
        "57014" => Error::Unavailable(format!("the server ended the statement ({doing}): {text}")),
        "25P02" => Error::invalid(
            "the transaction has failed already: roll it back before you enqueue or complete in it",
        ),
        "25P03" | "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "53300" | "53200" => {
            Error::Unavailable(format!("{text} ({doing})"))
        }
        "25006" => Error::Unreachable(format!(
            "the server is read-only ({doing}): is it a standby? Add target_session_attrs=read-write \
             and all hosts to the URL"
        )),
        "53100" => Error::NoSpace(format!("{text} ({doing})")),
        "58030" => Error::Unreachable(format!("the server can't read or write: {text} ({doing})")),
        "42501" => Error::Unreachable(format!(
            "{text} ({doing}): this role lacks rights, see `rowlock migrate roles`"
        )),
        "3D000" => Error::Unreachable(format!("{text}: create it with createdb")),
        _ if code.starts_with("28") => Error::Unreachable(text.to_owned()),
        _ if code.starts_with("08") => Error::Unavailable(format!("{text} ({doing})")),
        "3F000" | "42P01" | "42883" => Error::Schema(format!(
            "the database has no rowlock tables, or older ones ({text}): run `rowlock migrate up`"
        )),
        _ if code.starts_with("54") => {
            Error::Invalid(format!("it is too large or too deep: {text} ({doing})"))
        }
        _ if code.starts_with("22") => Error::Invalid(format!("{text} ({doing})")),
        _ => Error::Bug(format!("{doing}: {code}: {text}")),
    }
}

/// Whether what was prepared isn't there any more, or answers in another form since a migration.
pub(super) fn is_stale(why: &tokio_postgres::Error) -> bool {
    let codes = ["26000", "0A000"];
    why.code().is_some_and(|code| codes.contains(&code.code()))
}

/// Whether this is an answer that nobody gets who sees what others have committed so far: the
/// database's default has changed since the connection was made.
pub(super) fn is_of_another_isolation(why: &tokio_postgres::Error) -> bool {
    why.code().is_some_and(|code| code.code() == "40001")
}

/// The same for a statement with a query of the user's in it: what is wrong with that is told in the
/// server's own words.
pub(super) fn map_query(why: &tokio_postgres::Error, doing: &str) -> Error {
    let Some(error) = why.as_db_error() else {
        return map(why, doing);
    };
    let code = error.code().code();
    // Its text, its values, its functions, and rights on its tables.
    let theirs = [
        "0A", "20", "21", "22", "23", "2F", "38", "39", "42", "3F", "44", "54", "P0",
    ];
    match theirs.iter().any(|class| code.starts_with(class)) {
        true => Error::Invalid(error.message().to_owned()),
        false => map(why, doing),
    }
}

/// The same for one that may only read, whatever the server is: it tried to write, or to be allowed to.
pub(super) fn map_reading(why: &tokio_postgres::Error, doing: &str) -> Error {
    match why.as_db_error() {
        Some(error) if ["25001", "25006"].contains(&error.code().code()) => {
            Error::invalid(format!("a pair's query may only read: {}", error.message()))
        }
        _ => map_query(why, doing),
    }
}

/// Whether this role lacks the right.
pub(super) fn is_denied(why: &tokio_postgres::Error) -> bool {
    why.code().is_some_and(|code| code.code() == "42501")
}

/// Whether another transaction has just made what this one wanted to make.
pub(super) fn is_there_already(why: &tokio_postgres::Error) -> bool {
    let codes = ["23505", "42P06", "42P07", "42710"];
    why.code().is_some_and(|code| codes.contains(&code.code()))
}

/// Whether a lock was not to be had in time.
pub(super) fn is_blocked(why: &tokio_postgres::Error) -> bool {
    why.code().is_some_and(|code| code.code() == "55P03")
}

/// Whether a value couldn't be read as what it was to be.
pub(super) fn is_bad_value(why: &tokio_postgres::Error) -> bool {
    why.code().is_some_and(|code| code.code().starts_with("22"))
}

/// Whether a connection that met this error should not be used again.
pub(super) fn is_worn_out(error: &Error) -> bool {
    matches!(error, Error::Unreachable(_) | Error::Bug(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_by_what_the_caller_can_do() {
        let sorted = |code| sort(code, "text", "", "claim");
        for code in [
            "40001", "40P01", "55P03", "57P01", "53300", "08006", "57014",
        ] {
            assert!(sorted(code).is_transient(), "{code}");
        }
        for code in ["25006", "42501", "28P01", "3D000"] {
            assert!(matches!(sorted(code), Error::Unreachable(_)), "{code}");
        }
        assert!(matches!(sorted("53100"), Error::NoSpace(_)));
        assert!(matches!(sorted("42P01"), Error::Schema(_)));
        assert!(matches!(sorted("RL002"), Error::LeaseLost));
        assert!(matches!(sorted("XX000"), Error::Bug(_)));
        let second = sort("RL001", "rowlock: kind is bad", "1", "stage");
        assert!(matches!(second, Error::InvalidAt { index: 1, ref why } if why == "kind is bad"));
    }

    #[cfg(feature = "diesel-postgres")]
    #[test]
    fn what_diesel_tells_is_sorted_as_its_code_would_be() {
        use diesel::result::{DatabaseErrorKind as Kind, Error as Diesel};
        let sorted = |kind, text: &str| {
            let error = Diesel::DatabaseError(kind, Box::new(text.to_owned()));
            map_diesel(&error, "stage")
        };
        for (kind, text) in [
            (Kind::SerializationFailure, "could not serialize access"),
            (Kind::ClosedConnection, "server closed the connection"),
            (Kind::UnableToSendCommand, "connection closed"),
            (Kind::Unknown, "deadlock detected"),
            (
                Kind::Unknown,
                "canceling statement due to statement timeout",
            ),
            (
                Kind::Unknown,
                "terminating connection due to administrator command",
            ),
        ] {
            assert!(sorted(kind, text).is_transient(), "{text}");
        }
        let denied = sorted(Kind::Unknown, "permission denied for function stage");
        assert!(matches!(denied, Error::Unreachable(_)), "{denied}");
        let standby = sorted(Kind::ReadOnlyTransaction, "cannot execute nextval()");
        assert!(matches!(standby, Error::Unreachable(_)), "{standby}");
        let full = sorted(
            Kind::Unknown,
            "could not extend file: No space left on device",
        );
        assert!(matches!(full, Error::NoSpace(_)), "{full}");
        let other = sorted(Kind::Unknown, "unexpected");
        assert!(matches!(other, Error::Bug(_)), "{other}");
    }
}
