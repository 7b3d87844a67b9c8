//! Who is to be ended, and who is spared. Pure: what the server said comes in, judgements go out.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

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
    /// It keeps the database in order: autovacuum, or a superuser's VACUUM, CREATE INDEX or pg_dump.
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
        Some("client backend") if pin.superuser && maintains(pin) => {
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
    pin.ours || pin.application.as_deref() == Some(OURS)
}

/// What our connections call themselves unless their URL says otherwise.
const OURS: &str = "rowlock";

/// Programs that read a whole database on purpose.
const PROGRAMS: [&str; 4] = ["pg_dump", "pg_dumpall", "pg_basebackup", "pg_restore"];
/// The first words of statements that keep a database in order.
const STATEMENTS: [&[&str]; 8] = [
    &["vacuum"],
    &["analyze"],
    &["reindex"],
    &["cluster"],
    &["create", "index"],
    &["create", "unique", "index"],
    &["alter", "table"],
    &["refresh", "materialized", "view"],
];

fn maintains(pin: &Pin) -> bool {
    let application = pin.application.as_deref().unwrap_or_default();
    if PROGRAMS.contains(&application) {
        return true;
    }
    let query = pin.query.as_deref().unwrap_or_default();
    let mut words = without_comments(query).split(|c: char| !c.is_ascii_alphanumeric());
    let mut words = words.by_ref().filter(|word| !word.is_empty());
    let first: Vec<String> = words
        .by_ref()
        .take(3)
        .map(str::to_ascii_lowercase)
        .collect();
    STATEMENTS
        .iter()
        .any(|statement| first.len() >= statement.len() && first[..statement.len()] == **statement)
}

/// A statement from where it begins.
fn without_comments(query: &str) -> &str {
    let mut rest = query.trim_start();
    loop {
        let after = match (rest.strip_prefix("/*"), rest.strip_prefix("--")) {
            (Some(comment), _) => comment.split_once("*/"),
            (_, Some(comment)) => comment.split_once('\n'),
            _ => return rest,
        };
        rest = after.map_or("", |(_, after)| after.trim_start());
    }
}

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
