//! The one shape of everything that goes wrong, and the one map from errors to statuses.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use rowlock::Error;
use serde_json::json;

use crate::exit;

/// What went wrong: a word for programs, a sentence and a remedy for people.
#[derive(Debug, Clone)]
pub struct Problem {
    pub status: StatusCode,
    pub code: &'static str,
    pub sentence: String,
    pub remedy: String,
    /// After how many seconds it may be tried again.
    pub retry_after: Option<u64>,
}

impl Problem {
    pub fn new(
        status: StatusCode,
        code: &'static str,
        sentence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            status,
            code,
            sentence: sentence.into(),
            remedy: remedy.into(),
            retry_after: None,
        }
    }

    /// The request breaks a rule.
    pub fn invalid(sentence: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid",
            sentence,
            "correct the request: GET /api/v1/openapi.json says what is allowed",
        )
    }

    pub fn not_found(sentence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", sentence, remedy)
    }

    pub fn conflict(sentence: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", sentence, remedy)
    }

    pub fn forbidden(code: &'static str, sentence: &str, remedy: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, sentence, remedy)
    }

    fn unavailable(code: &'static str, sentence: String, remedy: &str) -> Self {
        Self {
            retry_after: Some(1),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, sentence, remedy)
        }
    }

    /// The answer took too long.
    pub fn too_slow() -> Self {
        Self::unavailable(
            "too_slow",
            "the store didn't answer in time".to_owned(),
            "try again, or look with `rowlock doctor` what holds it up",
        )
    }

    /// A checkup isn't over.
    pub fn under_way() -> Self {
        Self::unavailable(
            "under_way",
            "a checkup is being made".to_owned(),
            "ask again: it is kept when it is over",
        )
    }

    /// As it is sent.
    pub fn answer(self) -> Response<Body> {
        let body = json!({
            "error": { "code": self.code, "sentence": self.sentence, "remedy": self.remedy },
        });
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<Error> for Problem {
    fn from(why: Error) -> Self {
        let words = why.to_string();
        match why {
            Error::Invalid(_) | Error::InvalidAt { .. } => Self::invalid(words),
            Error::NotFound(_) => Self::not_found(words, "check the name or the number"),
            Error::Unavailable(_) => Self::unavailable("busy", words, "try again"),
            Error::Unreachable(_) => Self::unavailable(
                "unreachable",
                words,
                "see that the database runs and that this process may reach it",
            ),
            Error::Schema(_) => Self::unavailable("schema", words, "run `rowlock migrate status`"),
            Error::NoSpace(_) => Self::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "no_space",
                words,
                "make room for the database, then try again",
            ),
            Error::Conflict { .. } | Error::LeaseLost => {
                Self::conflict(words, "look at the job again")
            }
            why => bug(&why),
        }
    }
}

/// What was for the command line, with its exit code.
impl From<anyhow::Error> for Problem {
    fn from(why: anyhow::Error) -> Self {
        let why = match why.downcast::<Error>() {
            Ok(why) => return why.into(),
            Err(why) => why,
        };
        let words = format!("{why:#}");
        match why.downcast_ref().map(exit::Complaint::code) {
            Some(exit::USAGE) => Self::invalid(words),
            Some(exit::NOT_FOUND) => Self::not_found(words, "check the name"),
            Some(exit::CONFLICT) => Self::conflict(words, "look again at what is in the way"),
            Some(exit::UNREACHABLE | exit::SCHEMA) => {
                Self::unavailable("unreachable", words, "see that the database can be used")
            }
            Some(_) => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "failed",
                words,
                "the database refused it: mend what it names",
            ),
            None => bug(&why),
        }
    }
}

/// What can't happen is for the log: it may name what isn't the caller's business.
fn bug(why: &impl std::fmt::Display) -> Problem {
    tracing::error!(%why, "a request failed");
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "something that can't happen has happened",
        "look into this process's log, and please report it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowlock::{JobId, JobState};

    #[test]
    fn every_error_of_the_library_has_the_status_of_its_remedy() {
        let text = || "x".to_owned();
        let (id, state, why) = (JobId(1), JobState::Pending, text());
        for (error, status) in [
            (Error::Invalid(text()), 400),
            (
                Error::InvalidAt {
                    index: 0,
                    why: text(),
                },
                400,
            ),
            (Error::NotFound(text()), 404),
            (Error::Unavailable(text()), 503),
            (Error::Unreachable(text()), 503),
            (Error::Schema(text()), 503),
            (Error::NoSpace(text()), 507),
            (Error::Log(text()), 500),
            (Error::Bug(text()), 500),
            (Error::LeaseLost, 409),
            (Error::Conflict { id, state, why }, 409),
        ] {
            let words = error.to_string();
            assert_eq!(Problem::from(error).status.as_u16(), status, "{words}");
        }
    }

    #[test]
    fn what_can_not_happen_is_not_told_to_the_caller() {
        let problem = Problem::from(Error::Bug("s3cret".to_owned()));
        assert!(!format!("{problem:?}").contains("s3cret"));
    }
}
