//! Looks, judges and acts, once or for as long as a worker lives.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Action, Class, Cost, Due, Growth, Judged, Policy, Spared, judge};
use crate::clock::Clock;
use crate::engine::Watch;
use crate::error::{Error, Result};
use crate::event;
use crate::log;
use crate::run::Stop;
use crate::store::Rowlock;

/// Finds what pins the horizon, and ends it if its policy says so.
pub struct Guard {
    watch: Arc<dyn Watch>,
    clock: Clock,
    policy: Policy,
    classes: Vec<Class>,
    /// What was dead at the look before.
    before: Mutex<Option<Cost>>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Guard").field(&self.policy).finish()
    }
}

/// What was found and what was done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What pins the horizon.
    pub judged: Judged,
    /// What was done.
    pub did: Did,
}

/// What a guard did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Did {
    /// Nothing: there is no reason to.
    Nothing,
    /// Nothing, though there is a reason: it only observes, or it spares this one.
    Observed,
    /// The statement was cancelled.
    Cancelled,
    /// The session was ended.
    Terminated,
    /// Nothing: a cancel ends no transaction that is idle.
    Idle,
    /// Nothing: it had ended by itself.
    Gone,
    /// Nothing: the server doesn't let this role do it.
    Refused(String),
}

impl Did {
    /// Its word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Observed => "observed",
            Self::Cancelled => "cancelled",
            Self::Terminated => "terminated",
            Self::Idle => "idle",
            Self::Gone => "gone",
            Self::Refused(_) => "refused",
        }
    }
}

/// What became of a request to end a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It was asked to.
    Asked,
    /// It had ended by itself.
    Gone,
    /// The server doesn't let this role do it, and says why.
    Refused(String),
}

/// A transaction that was told about: it isn't told again.
type Told = HashSet<(Option<i32>, Option<String>, i64)>;

impl Guard {
    /// A guard of the server that a store is in.
    #[must_use]
    pub fn new(rowlock: &Rowlock, policy: Policy) -> Self {
        Self {
            watch: rowlock.watch(),
            clock: rowlock.clock().clone(),
            policy,
            classes: Vec::new(),
            before: Mutex::default(),
        }
    }

    /// Classes that count where the table has none of their name.
    #[must_use]
    pub fn classes(mut self, classes: Vec<Class>) -> Self {
        self.classes = classes;
        self
    }

    /// Looks once, and acts.
    ///
    /// # Errors
    /// [`Error::Invalid`] on an engine without a horizon, and whatever the server answers. That an
    /// action is refused is no error.
    pub async fn look(&self) -> Result<Vec<Seen>> {
        let mut classes = self.watch.classes().await?;
        for class in &self.classes {
            if classes.iter().all(|stored| stored.name != class.name) {
                classes.push(class.clone());
            }
        }
        if let Some(wanted) = &self.policy.class
            && classes.iter().all(|class| class.name != *wanted)
        {
            return Err(Error::NotFound(format!("a budget of class {wanted}")));
        }
        let judged = judge(self.watch.pins().await?, &classes, &self.policy);
        event::pinned(&judged);
        let mut seen = Vec::with_capacity(judged.len());
        for judged in judged {
            let did = self.act(&judged).await?;
            event::guarded(&judged, &did);
            let one = Seen { judged, did };
            if matches!(one.did, Did::Cancelled | Did::Terminated) {
                log(&one);
            }
            seen.push(one);
        }
        Ok(seen)
    }

    /// What the pins that were seen cost, and what an hour adds: by two looks of this guard, or at most, as if all that
    /// is dead had died since the oldest of them began. Nothing if nothing was seen.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub async fn cost(&self, seen: &[Seen]) -> Result<Option<(Cost, Option<Growth>)>> {
        if seen.is_empty() {
            return Ok(None);
        }
        let cost = self.watch.cost().await?;
        let before = {
            let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
            before.replace(cost)
        };
        let oldest = seen.iter().filter_map(|each| each.judged.pin.age).max();
        let growth = match before {
            Some(before) => cost.growth_since(&before),
            None => oldest.and_then(|age| cost.growth_over(age)),
        };
        Ok(Some((cost, growth)))
    }

    async fn act(&self, judged: &Judged) -> Result<Did> {
        let (pin, action) = (&judged.pin, self.policy.action);
        let pid = match (judged.due, judged.spared, pin.pid) {
            (None, _, _) => return Ok(Did::Nothing),
            (Some(_), None, Some(pid)) if action != Action::Observe => pid,
            _ => return Ok(Did::Observed),
        };
        if action == Action::Cancel && pin.is_idle() {
            return Ok(Did::Idle);
        }
        match self.watch.end(pid, pin.began, action).await {
            Ok(End::Gone) => Ok(Did::Gone),
            Ok(End::Asked) if action == Action::Cancel => Ok(Did::Cancelled),
            Ok(End::Asked) => Ok(Did::Terminated),
            Ok(End::Refused(why)) => Ok(Did::Refused(why)),
            Err(why) => Err(why),
        }
    }

    /// Looks again and again until it is asked to stop. A server that doesn't answer is asked again.
    pub async fn run_until(self, mut stop: Stop) {
        let mut told = Told::new();
        loop {
            match self.look().await {
                Ok(seen) => {
                    let cost = self.cost(&seen).await.unwrap_or_default();
                    if tell(&seen, &mut told) {
                        log_cost(cost);
                    }
                }
                Err(why) => log::warn!(%why, "the guard can't see what pins the horizon"),
            }
            tokio::select! {
                () = self.clock.sleep(self.policy.every) => {}
                () = stop.asked() => return,
            }
        }
    }
}

/// Logs, once for each, what is due and was left alone; whether there was anything to say. What this role may not see
/// is one thing, however many sessions it is.
fn tell(seen: &[Seen], told: &mut Told) -> bool {
    let is_hidden = |each: &&Seen| each.judged.spared == Some(Spared::Hidden);
    let key = |each: &Seen| {
        let pin = &each.judged.pin;
        (pin.pid, pin.name.clone(), pin.began)
    };
    let all_hidden = (None, Some("hidden".to_owned()), 0);
    let mut there: Told = seen
        .iter()
        .filter(|each| !is_hidden(each))
        .map(key)
        .collect();
    let hidden = seen.iter().filter(is_hidden).count();
    if hidden > 0 {
        there.insert(all_hidden.clone());
    }
    told.retain(|old| there.contains(old));
    let mut said = false;
    if hidden > 0 && told.insert(all_hidden) {
        log::warn!(
            sessions = hidden,
            "sessions pin the horizon that this role may not see: a superuser may grant pg_monitor"
        );
        said = true;
    }
    let left = |did: &Did| matches!(did, Did::Observed | Did::Idle | Did::Refused(_));
    for each in seen.iter().filter(|each| !is_hidden(each)) {
        if left(&each.did) && told.insert(key(each)) {
            log(each);
            said = true;
        }
    }
    said
}

/// One line: what it costs.
fn log_cost(cost: Option<(Cost, Option<Growth>)>) {
    if let Some((cost, growth)) = cost {
        let Growth { rows, bytes } = growth.unwrap_or_default();
        log::warn!(
            dead_rows = cost.dead_rows,
            dead_bytes = cost.dead_bytes,
            rows_an_hour = rows,
            bytes_an_hour = bytes,
            "what is dead can't be removed meanwhile"
        );
    }
}

/// One line: who, since when, and what was done.
fn log(seen: &Seen) {
    let Judged {
        pin,
        class,
        due,
        spared,
    } = &seen.judged;
    let seconds = pin.age.map(|age| age.as_secs());
    log::warn!(
        what = pin.what.as_str(),
        pid = pin.pid,
        name = pin.name,
        application = pin.application,
        role = pin.role,
        class = class.as_ref().map(tracing::field::display),
        due = due.map(Due::as_str),
        spared = spared.map(Spared::as_str),
        seconds,
        transactions = pin.transactions,
        did = seen.did.as_str(),
        "a transaction pins the horizon"
    );
}
