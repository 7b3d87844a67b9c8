//! Who is to be ended, and who is spared. Pure: what the server said comes in, judgements go out.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::maintenance::maintains;
use super::{Class, Pin, What};
use crate::error::Error;
use crate::job::Name;

/// What is done about a transaction that pins the horizon for too long, or is one too many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Action {
    /// It is only told.
    #[default]
    Observe,
    /// Its statement is cancelled.
    Cancel,
    /// Its session is ended.
    Terminate,
}

impl Action {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
        }
    }
}

impl FromStr for Action {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        [Self::Observe, Self::Cancel, Self::Terminate]
            .into_iter()
            .find(|action| action.as_str() == text)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "{text:?} is not an action: use observe, cancel or terminate"
                ))
            })
    }
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What a guard does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// With whom its time is over.
    pub action: Action,
    /// How old a transaction may become.
    pub max_age: Duration,
    /// Only this class; none: everybody.
    pub class: Option<Name>,
    /// Whether maintenance is not spared.
    pub include_superusers: bool,
    /// How often it looks.
    pub every: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            action: Action::Observe,
            max_age: Duration::from_secs(5 * 60),
            class: None,
            include_superusers: false,
            every: Duration::from_secs(10),
        }
    }
}

/// Why something is to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// It is older than it may become.
    Age,
    /// More of its class run at once than may: it is one of the youngest.
    Max,
}

impl Due {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Max => "max",
        }
    }
}

/// Why somebody is left alone whatever the policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spared {
    /// It is a session of rowlock's own.
    Ours,
    /// It keeps the database in order: autovacuum, a VACUUM, a CREATE INDEX, or a superuser's pg_dump.
    Maintenance,
    /// It is a process of the server's own.
    Server,
    /// This role can't see what it is: it isn't a member of `pg_monitor`.
    Hidden,
    /// It isn't a session: only people may say what becomes of it.
    ByHand,
}

impl Spared {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Maintenance => "maintenance",
            Self::Server => "server",
            Self::Hidden => "hidden",
            Self::ByHand => "by hand",
        }
    }
}

/// A pin, whom it belongs to, and what is to become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// What pins the horizon.
    pub pin: Pin,
    /// Its class.
    pub class: Option<Name>,
    /// Why it is to be ended; nothing if it isn't.
    pub due: Option<Due>,
    /// Why it is left alone all the same.
    pub spared: Option<Spared>,
}

/// Judges what was found; whoever holds the oldest comes first. Pins of other classes than the policy's
/// are left out.
#[must_use]
pub fn judge(pins: Vec<Pin>, classes: &[Class], policy: &Policy) -> Vec<Judged> {
    let mut judged: Vec<Judged> = pins
        .into_iter()
        .map(|pin| judge_one(pin, classes, policy))
        .filter(|judged| policy.class.is_none() || judged.class == policy.class)
        .collect();
    // By its age as well: nobody has begun a transaction since either of them did.
    judged.sort_by_key(|each| std::cmp::Reverse((each.pin.transactions, each.pin.age)));
    cap(&mut judged, classes);
    judged
}

fn judge_one(pin: Pin, classes: &[Class], policy: &Policy) -> Judged {
    let class = match pin.what {
        What::Session => classes.iter().find(|class| class.has(&pin)),
        _ => None,
    };
    let due = is_too_old(&pin, policy).then_some(Due::Age);
    Judged {
        class: class.map(|class| class.name.clone()),
        spared: spared(&pin, policy),
        due,
        pin,
    }
}

fn is_too_old(pin: &Pin, policy: &Policy) -> bool {
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("guard.age") {
        return true;
    }
    pin.age.is_some_and(|age| age >= policy.max_age)
}

fn spared(pin: &Pin, policy: &Policy) -> Option<Spared> {
    if pin.what != What::Session {
        return Some(Spared::ByHand);
    }
    if is_ours(pin) {
        return Some(Spared::Ours);
    }
    match pin.backend.as_deref() {
        Some("client backend") if maintains(pin) => {
            (!policy.include_superusers).then_some(Spared::Maintenance)
        }
        Some("client backend") => None,
        Some("autovacuum worker") => (!policy.include_superusers).then_some(Spared::Maintenance),
        Some(_) => Some(Spared::Server),
        None => Some(Spared::Hidden),
    }
}

fn is_ours(pin: &Pin) -> bool {
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("guard.ours") {
        return false;
    }
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("guard.name_is_not_enough") {
        return pin.ours || pin.application.as_deref() == Some(OURS);
    }
    // Anybody can call itself so: whoever can't change jobs isn't one of ours.
    pin.ours || (pin.changes_jobs && pin.application.as_deref() == Some(OURS))
}

/// What our connections call themselves unless their URL says otherwise.
const OURS: &str = "rowlock";

/// Marks the youngest of every class of which more run than may.
fn cap(judged: &mut [Judged], classes: &[Class]) {
    let mut running: BTreeMap<&Name, Vec<&mut Judged>> = BTreeMap::new();
    let max: BTreeMap<&Name, u32> = classes.iter().map(|at| (&at.name, at.max)).collect();
    for each in judged {
        let counts = each.spared.is_none() && !each.pin.is_entering();
        let class = each.class.as_ref().and_then(|name| max.get_key_value(name));
        if let (true, Some((name, _))) = (counts, class) {
            running.entry(name).or_default().push(each);
        }
    }
    for (name, mut all) in running {
        let most = max
            .get(name)
            .map_or(0, |max| usize::try_from(*max).unwrap_or(0));
        all.sort_by_key(|each| std::cmp::Reverse(each.pin.age));
        for one_too_many in all.into_iter().skip(most) {
            one_too_many.due.get_or_insert(Due::Max);
        }
    }
}

#[cfg(test)]
mod tests;
