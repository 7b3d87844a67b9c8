//! Workload classes: who belongs together, and how many of them may run at once.

use serde::{Deserialize, Serialize};

use super::Pin;
use crate::error::{Error, Result};
use crate::job::Name;

/// A workload class: `[budget.NAME]` of rowlock.toml, and a row of the table `budget`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: Name,
    /// How many of its transactions may run at once.
    pub max: u32,
    /// Who belongs to it.
    pub rule: Rule,
}

/// Who belongs to a class: whoever fits everything that is said. Nothing said means the comment
/// `/* class:NAME */` with the name of the class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// What the session calls itself; `*` stands for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_name: Option<String>,
    /// Whom it has logged in as; `*` stands for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The NAME of a comment `/* class:NAME */` in its statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<Name>,
}

impl Class {
    /// The most transactions at once that can be meant.
    pub const MOST: u32 = 1_000;

    /// A class whose statements say so in a comment.
    ///
    /// # Errors
    /// [`Error::Invalid`] when `max` is none or too many.
    pub fn new(name: Name, max: u32) -> Result<Self> {
        Self::with(name, max, Rule::default())
    }

    /// A class with a rule.
    ///
    /// # Errors
    /// [`Error::Invalid`] when `max` is none or too many, or a part of the rule fits nobody.
    pub fn with(name: Name, max: u32, rule: Rule) -> Result<Self> {
        if !(1..=Self::MOST).contains(&max) {
            return Err(Error::invalid(format!(
                "budget {name}: max is {max}: use 1 to {}",
                Self::MOST
            )));
        }
        let texts = [
            ("application_name", &rule.application_name),
            ("role", &rule.role),
        ];
        for (what, text) in texts {
            if text.as_ref().is_some_and(String::is_empty) {
                return Err(Error::invalid(format!(
                    "budget {name}: {what} is empty: take it out, or write the name"
                )));
            }
        }
        Ok(Self { name, max, rule })
    }

    /// Whether a session belongs to it.
    #[must_use]
    pub fn has(&self, pin: &Pin) -> bool {
        let fits = |wanted: &Option<String>, text: &Option<String>| match wanted {
            Some(wanted) => glob(wanted, text.as_deref().unwrap_or_default()),
            None => true,
        };
        let Rule {
            application_name,
            role,
            tag,
        } = &self.rule;
        let tag = match (application_name, role, tag) {
            (None, None, None) => Some(&self.name),
            (_, _, tag) => tag.as_ref(),
        };
        let query = pin.query.as_deref().unwrap_or_default();
        fits(application_name, &pin.application)
            && fits(role, &pin.role)
            && tag.is_none_or(|tag| is_tagged(query, tag))
    }
}

/// Whether a comment says `class:NAME`.
fn is_tagged(query: &str, tag: &Name) -> bool {
    let comments = query.split("/*").skip(1);
    let comments = comments.filter_map(|rest| rest.split_once("*/"));
    let mut words = comments.flat_map(|(inside, _)| inside.split([' ', ',', '\t', '\n']));
    words.any(|word| word.strip_prefix("class:") == Some(tag.as_str()))
}

/// Whether a text fits a pattern in which `*` stands for any text.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.split_once(part) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn pin(application: &str, role: &str, query: &str) -> Pin {
        Pin {
            application: Some(application.to_owned()),
            role: Some(role.to_owned()),
            query: Some(query.to_owned()),
            ..Pin::default()
        }
    }

    #[test]
    fn everything_that_is_said_must_fit() {
        let rule = Rule {
            application_name: Some("Metabase*".to_owned()),
            role: Some("bi".to_owned()),
            tag: None,
        };
        let class = Class::with(name("analytics"), 1, rule).unwrap();
        assert!(class.has(&pin("Metabase v1 [7]", "bi", "SELECT 1")));
        assert!(!class.has(&pin("Metabase v1 [7]", "app", "SELECT 1")));
        assert!(!class.has(&pin("my Metabase", "bi", "SELECT 1")));
    }

    #[test]
    fn a_class_without_a_rule_is_found_by_its_comment() {
        let class = Class::new(name("analytics"), 1).unwrap();
        for tagged in [
            "/* class:analytics */ SELECT 1",
            "SELECT 1 /*class:analytics*/",
            "/* a */ SELECT /* route:x, class:analytics */ 1",
        ] {
            assert!(class.has(&pin("x", "y", tagged)), "{tagged}");
        }
        for other in [
            "SELECT 'class:analytics'",
            "/* class:analytics2 */ SELECT 1",
            "/* subclass:analytics */ SELECT 1",
            "/* class:analytics",
        ] {
            assert!(!class.has(&pin("x", "y", other)), "{other}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, fits) in [
            ("a*", "a", true),
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*b*c", "a-b-c", true),
            ("a*a", "a", false),
            ("a*c", "abd", false),
            ("abc", "abcd", false),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn a_budget_of_none_is_refused() {
        assert!(Class::new(name("analytics"), 0).is_err());
        assert!(Class::new(name("analytics"), 1_001).is_err());
        assert!(Class::new(name("analytics"), 1_000).is_ok());
    }
}
