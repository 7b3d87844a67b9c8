//! The one map from errors to exit codes.

use std::fmt;
use std::process::ExitCode;

use rowlock::Error;

use crate::out;

/// All went well.
pub const OK: u8 = 0;
/// It failed, for a reason that has no code of its own.
pub const FAILED: u8 = 1;
/// The command line, a payload, a name or the configuration breaks a rule.
pub const USAGE: u8 = 2;
/// There is no such thing.
pub const NOT_FOUND: u8 = 3;
/// The database can't be opened, reached or written.
pub const UNREACHABLE: u8 = 4;
/// Not a database, somebody else's, or another schema.
pub const SCHEMA: u8 = 5;
/// A check has found something.
pub const FINDINGS: u8 = 6;
/// The thing is in a state that has no such move.
pub const CONFLICT: u8 = 7;

/// An error of the binary itself, with its code.
#[derive(Debug)]
pub struct Complaint {
    code: u8,
    text: String,
}

impl Complaint {
    /// How the process would end.
    pub fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Complaint {}

/// An error with a code and a text that names the remedy.
pub fn with(code: u8, text: impl Into<String>) -> anyhow::Error {
    let text = text.into();
    anyhow::Error::new(Complaint { code, text })
}

/// The same error with a longer text.
pub fn explain(why: &Error, text: impl Into<String>) -> anyhow::Error {
    with(code_of(why), text)
}

/// Something was done, and couldn't be written down for `verify`: it must not be done again.
pub fn unlogged(done: &str, why: &Error) -> anyhow::Error {
    with(FAILED, format!("{done}; only the log is incomplete: {why}"))
}

/// Tells the error and how it ends.
pub fn report(why: &anyhow::Error) -> ExitCode {
    if why.is::<out::Closed>() {
        // Whoever read our output has seen enough.
        return ExitCode::SUCCESS;
    }
    let code = match why.downcast_ref::<Complaint>() {
        Some(complaint) => complaint.code,
        None => why.downcast_ref().map_or(FAILED, code_of),
    };
    out::error(&words(why));
    ExitCode::from(code)
}

fn words(why: &anyhow::Error) -> String {
    match why.downcast_ref() {
        Some(Error::Unavailable(_)) => format!("{why}; try again when it has finished"),
        // Alone it is no batch.
        Some(Error::InvalidAt { why, .. }) => why.clone(),
        _ => format!("{why:#}"),
    }
}

fn code_of(why: &Error) -> u8 {
    match why {
        Error::Invalid(_) | Error::InvalidAt { .. } => USAGE,
        Error::NotFound(_) => NOT_FOUND,
        Error::Unavailable(_) | Error::Unreachable(_) => UNREACHABLE,
        Error::Schema(_) => SCHEMA,
        Error::Conflict { .. } | Error::LeaseLost => CONFLICT,
        _ => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_the_library_has_the_code_of_its_remedy() {
        let text = || "x".to_owned();
        let (id, state) = (rowlock::JobId(1), rowlock::JobState::Pending);
        let (index, why) = (0, text());
        for (error, code) in [
            (Error::Invalid(text()), 2),
            (Error::InvalidAt { index, why }, 2),
            (Error::NotFound(text()), 3),
            (Error::Unavailable(text()), 4),
            (Error::Unreachable(text()), 4),
            (Error::Schema(text()), 5),
            (Error::NoSpace(text()), 1),
            (Error::Log(text()), 1),
            (Error::Bug(text()), 1),
            (Error::LeaseLost, 7),
            (
                Error::Conflict {
                    id,
                    state,
                    why: text(),
                },
                7,
            ),
        ] {
            assert_eq!(code_of(&error), code, "{error}");
        }
    }
}
