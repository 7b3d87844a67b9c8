//! Names of kinds, queues, tags and key fields.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A name: a letter, digit or `_`, then up to 62 more of those or `.`, `:`, `-`.
///
/// So short that no database cuts it, and so plain that it needs no quoting anywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

/// The longest name, in bytes.
const LONGEST: usize = 63;

impl Name {
    /// Checks the rule above.
    ///
    /// # Errors
    /// [`Error::Invalid`] that quotes the offending text.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        let mut bytes = text.bytes();
        let ok = text.len() <= LONGEST
            && bytes.next().is_some_and(starts_a_name)
            && bytes.all(|b| starts_a_name(b) || matches!(b, b'.' | b':' | b'-'));
        if ok {
            return Ok(Self(text.into()));
        }
        let shown: String = text.chars().take(LONGEST + 1).collect();
        Err(Error::invalid(format!(
            "{shown:?} is not a valid name: use 1 to {LONGEST} of A-Z a-z 0-9 _ . : - and start \
             with a letter, a digit or _"
        )))
    }

    /// What the store holds; it was checked on the way in, or is only shown.
    pub(crate) fn stored(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn starts_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A stored name may break the rule: its control characters forge no line of a log or a page.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("name.escaped") {
            return f.pad(&self.0);
        }
        if self.0.contains(char::is_control) {
            return f.pad(&self.0.escape_debug().to_string());
        }
        f.pad(&self.0)
    }
}

impl FromStr for Name {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::new(text)
    }
}

impl TryFrom<String> for Name {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        Self::new(text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.as_str().to_owned()
    }
}

/// A label of a metric, for each job: its text is shared.
impl From<&Name> for metrics::SharedString {
    fn from(name: &Name) -> Self {
        Self::from_shared(Arc::clone(&name.0))
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
