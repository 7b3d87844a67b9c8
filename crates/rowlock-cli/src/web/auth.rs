//! Who asks, and what they may do.
//!
//! Tokens come from a file or from the environment, never from the command line, where everybody on
//! the machine could read them. Without tokens whoever reaches the port may do everything, so the port
//! is then on loopback only.

use std::hint::black_box;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use rowlock::config::{Dashboard, Metrics};

use super::problem::Problem;
use super::taken_out;
use crate::{exit, out, rights, show};

/// The variables that may hold a token each.
const VARIABLES: [(&str, Role); 2] = [
    ("ROWLOCK_DASHBOARD_TOKEN", Role::Operator),
    ("ROWLOCK_DASHBOARD_READER_TOKEN", Role::Reader),
];
/// Some clients leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// A shorter one can be guessed.
const SHORTEST: usize = 16;

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look.
    Reader,
    /// Look and change.
    Operator,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Operator => "operator",
        }
    }
}

/// Somebody who was recognised.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    pub role: Role,
    /// Which token it was: each has its own rate.
    pub number: usize,
}

/// A token. It is never shown.
struct Token {
    text: String,
    role: Role,
}

/// Everybody who is let in.
pub struct Tokens {
    all: Vec<Token>,
    read_only: bool,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} tokens", self.all.len())
    }
}

impl Tokens {
    /// Reads the file and the environment.
    pub fn read(settings: &Dashboard, read_only: bool) -> Result<Self> {
        let mut all = Vec::new();
        if let Some(path) = &settings.token_file {
            all.extend(from_file(path)?);
        }
        for (variable, role) in VARIABLES {
            all.extend(from_environment(variable, role)?);
        }
        let read_only = read_only || settings.read_only;
        Ok(Self { all, read_only })
    }

    /// Those of /metrics; nothing when it is open to whoever reaches it.
    pub fn of_metrics(settings: &Metrics) -> Result<Option<Self>> {
        let mut all = Vec::new();
        if let Some(path) = &settings.token_file {
            all.extend(from_file(path)?);
        }
        all.extend(from_environment("ROWLOCK_METRICS_TOKEN", Role::Reader)?);
        let read_only = true;
        Ok((!all.is_empty()).then_some(Self { all, read_only }))
    }

    /// Beyond this machine nobody is let in unknown.
    pub fn allow(&self, bind: SocketAddr) -> Result<()> {
        if bind.ip().is_loopback() || !self.all.is_empty() || taken_out("web.bind") {
            return Ok(());
        }
        Err(exit::with(
            exit::USAGE,
            format!(
                "{bind} can be reached from other machines, and there is no token: set \
                 ROWLOCK_DASHBOARD_TOKEN or token_file of [dashboard], or listen on 127.0.0.1"
            ),
        ))
    }

    /// How many there are, beside the one for nobody in particular.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Whether nothing may be changed.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Who sent these headers.
    pub fn caller(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let mut caller = match self.all.is_empty() {
            true => Caller {
                role: Role::Operator,
                number: 0,
            },
            false => self.recognised(headers).ok_or_else(unknown)?,
        };
        if self.read_only && !taken_out("web.read_only") {
            caller.role = Role::Reader;
        }
        Ok(caller)
    }

    fn recognised(&self, headers: &HeaderMap) -> Option<Caller> {
        if taken_out("web.token") {
            return Some(Caller {
                role: Role::Operator,
                number: 0,
            });
        }
        let given = credentials(headers)?;
        let mut found = None;
        // Every one is compared, so that time doesn't tell which was nearly right.
        for (at, token) in self.all.iter().enumerate() {
            if same(token.text.as_bytes(), given.as_bytes()) {
                found = Some(Caller {
                    role: token.role,
                    number: at + 1,
                });
            }
        }
        found
    }
}

fn unknown() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "unauthorized",
        "who are you? this needs a token",
        "send Authorization: Bearer TOKEN, or the token as the password of Basic",
    )
}

/// The token of `Bearer`, or the password of `Basic`.
fn credentials(headers: &HeaderMap) -> Option<String> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = header.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let login = String::from_utf8(BASE64.decode(rest).ok()?).ok()?;
    login
        .split_once(':')
        .map(|(_, password)| password.to_owned())
}

/// Compares in a time that depends on the lengths only.
pub fn same(one: &[u8], other: &[u8]) -> bool {
    let mut differ = usize::from(one.len() != other.len());
    for (at, byte) in other.iter().enumerate() {
        let ours = one.get(at % one.len().max(1)).copied().unwrap_or_default();
        differ |= usize::from(black_box(ours ^ byte));
    }
    black_box(differ) == 0
}

fn from_environment(variable: &str, role: Role) -> Result<Option<Token>> {
    let Some(text) = std::env::var_os(variable).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let text = text
        .into_string()
        .map_err(|_| bad(variable, "is not UTF-8"))?;
    let token = token(&text, role).map_err(|why| bad(variable, why))?;
    Ok(Some(token))
}

fn from_file(path: &Path) -> Result<Vec<Token>> {
    let name = show::path(path);
    let text =
        std::fs::read_to_string(path).map_err(|why| bad(&name, format!("can't be read: {why}")))?;
    warn_of_readers(path, &name);
    let mut all = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (role, rest) = match line.split_once(char::is_whitespace) {
            None => (Role::Operator, line),
            Some(("operator", rest)) => (Role::Operator, rest.trim()),
            Some(("reader", rest)) => (Role::Reader, rest.trim()),
            // The word may be a part of a token: it isn't repeated.
            Some(_) => {
                let why = format!("line {}: write reader TOKEN or operator TOKEN", n + 1);
                return Err(bad(&name, why));
            }
        };
        let token =
            token(rest, role).map_err(|why| bad(&name, format!("line {}: {why}", n + 1)))?;
        all.push(token);
    }
    match all.is_empty() {
        true => Err(bad(
            &name,
            "has no token: write reader TOKEN or operator TOKEN",
        )),
        false => Ok(all),
    }
}

fn warn_of_readers(path: &Path, name: &str) {
    if rights::open_to_everybody(path) {
        out::warn(&format!(
            "everybody on this machine may read {name}: chmod o= {name}"
        ));
    }
}

fn token(text: &str, role: Role) -> Result<Token, &'static str> {
    if text.len() < SHORTEST {
        return Err("the token is too short: `openssl rand -hex 32` makes a good one");
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a token is made of printable characters without blanks");
    }
    let text = text.to_owned();
    Ok(Token { text, role })
}

fn bad(place: &str, why: impl std::fmt::Display) -> anyhow::Error {
    exit::with(exit::USAGE, format!("{place}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_bytes_are_the_same() {
        assert!(same(b"abc", b"abc"));
        for other in [&b""[..], b"ab", b"abd", b"abcabc", b"abca"] {
            assert!(!same(b"abc", other), "{other:?}");
        }
        assert!(!same(b"", b"a"));
    }

    #[test]
    fn a_password_of_basic_is_read() {
        let of = |basic: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, format!("Basic {basic}").parse().unwrap());
            credentials(&headers)
        };
        for basic in ["YWRhOnMzY3JldA==", "YWRhOnMzY3JldA"] {
            assert_eq!(of(basic).as_deref(), Some("s3cret"));
        }
        for bad in ["YW*h", "", "YWRh"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
