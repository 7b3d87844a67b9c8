//! `[guard]` and `[budget.NAME]`: what may pin the horizon, and for how long.

use std::time::Duration;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::guard::{Action, Class, Policy, Rule};
use crate::job::{Name, spoken};

/// `[budget.NAME]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetSection {
    max: u32,
    #[serde(default, rename = "match")]
    rule: Rule,
}

impl BudgetSection {
    pub(super) fn class(&self, name: &Name) -> Result<Class> {
        Class::with(name.clone(), self.max, self.rule.clone())
    }
}

/// `[guard]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuardSection {
    action: Action,
    #[serde(deserialize_with = "spoken::optional::deserialize")]
    max_age: Option<Duration>,
    #[serde(deserialize_with = "spoken::optional::deserialize")]
    every: Option<Duration>,
    include_superusers: bool,
}

impl GuardSection {
    pub(super) fn check(&self) -> Result<()> {
        match self.every {
            Some(every) if every < Duration::from_millis(100) => Err(Error::invalid(
                "[guard]: every is too short: use 100ms or more",
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn policy(&self) -> Policy {
        let plain = Policy::default();
        Policy {
            action: self.action,
            max_age: self.max_age.unwrap_or(plain.max_age),
            every: self.every.unwrap_or(plain.every),
            include_superusers: self.include_superusers,
            class: None,
        }
    }
}
