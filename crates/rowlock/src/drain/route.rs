//! A route: which jobs go where.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Sink;
use crate::claim::WorkerId;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::job::Name;

/// Which kinds and queues are drained, and where to.
#[derive(Clone)]
#[non_exhaustive]
pub struct Route {
    /// Its name, which stands in the kind table.
    pub name: Name,
    /// The sink's URL: `redis://...` or `sidekiq+redis://...`. It may have a password in it.
    pub to: String,
    /// The kinds that go by it.
    pub kinds: Vec<Name>,
    /// The queues that go by it, except for kinds with a route of their own.
    pub queues: Vec<Name>,
    /// Whether jobs may be lost that nothing derives again, for a sink that doesn't report back.
    pub lossy: bool,
    /// The most jobs that wait in the sink: beyond that the rest stays in the store.
    pub ahead: usize,
    /// The most jobs in one claim and one push.
    pub batch: usize,
    /// For Sidekiq: the class and the arguments of each kind.
    pub sidekiq: BTreeMap<Name, SidekiqJob>,
}

/// How a kind looks in Sidekiq.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidekiqJob {
    /// The worker's class.
    pub class: String,
    /// The payload's fields in the order of `perform`'s arguments; none: the payload is the one
    /// argument.
    pub args: Vec<Name>,
}

impl Route {
    /// How many jobs wait in a sink unless a route says otherwise.
    pub const AHEAD: usize = 20_000;
    /// How many jobs are claimed and sent at once unless a route says otherwise.
    pub const BATCH: usize = 1_000;
    /// As many jobs as may wait in a sink at most.
    pub const MOST_AHEAD: usize = 1_000_000;
    /// As many jobs as may be claimed and sent at once.
    pub const MOST_BATCH: usize = 10_000;

    /// A route that nothing goes by yet; named after the sink's scheme.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL of no sink.
    pub fn to(url: impl Into<String>) -> Result<Self> {
        let to = url.into();
        let name = match scheme(&to) {
            "redis" => "redis",
            "sidekiq+redis" => "sidekiq",
            // The URL may have a password in it: no more than its scheme is repeated.
            other => {
                return Err(Error::invalid(format!(
                    "{other:?} is not a sink: write redis://... or sidekiq+redis://..."
                )));
            }
        };
        Ok(Self {
            name: Name::new(name)?,
            to,
            kinds: Vec::new(),
            queues: Vec::new(),
            lossy: false,
            ahead: Self::AHEAD,
            batch: Self::BATCH,
            sidekiq: BTreeMap::new(),
        })
    }

    /// Sends a kind by it.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the name breaks the rule of [`Name`].
    pub fn kind(mut self, kind: impl Into<String>) -> Result<Self> {
        self.kinds.push(Name::new(kind)?);
        Ok(self)
    }

    /// Sends a queue by it.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the name breaks the rule of [`Name`].
    pub fn queue(mut self, queue: impl Into<String>) -> Result<Self> {
        self.queues.push(Name::new(queue)?);
        Ok(self)
    }

    /// Whether its sink says what became of a job.
    #[must_use]
    pub fn reports_back(&self) -> bool {
        scheme(&self.to) == "redis"
    }

    /// Whether it can be used. A sink that doesn't report back may lose a job: that is for kinds that a
    /// pair derives again, or for whoever says `lossy`.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the remedy.
    pub fn check(&self, derivable: impl Fn(&Name) -> bool) -> Result<()> {
        let name = &self.name;
        let refuse = |why: String| Err(Error::invalid(format!("route {name}: {why}")));
        for (what, set, most) in [
            ("ahead", self.ahead, Self::MOST_AHEAD),
            ("batch", self.batch, Self::MOST_BATCH),
        ] {
            if !(1..=most).contains(&set) {
                return refuse(format!("{what} = {set} must be from 1 to {most}"));
            }
        }
        if self.reports_back() {
            return match self.sidekiq.keys().next() {
                Some(kind) => refuse(format!(
                    "the Sidekiq class of {kind} is for a route to sidekiq+redis://...: take it out, \
                     or change where the route goes"
                )),
                None => Ok(()),
            };
        }
        self.check_classes().or_else(refuse)?;
        if self.lossy {
            return Ok(());
        }
        if let Some(queue) = self.queues.first() {
            return refuse(format!(
                "Sidekiq doesn't report back, so it may lose a job of the queue {queue} and nobody \
                 would know: name kinds that a pair derives again, or accept it with lossy = true"
            ));
        }
        match self.kinds.iter().find(|kind| !derivable(kind)) {
            Some(kind) => refuse(format!(
                "Sidekiq doesn't report back, so it may lose a {kind} and nobody would know: give \
                 {kind} a pair that derives it again, or accept it with lossy = true"
            )),
            None => Ok(()),
        }
    }

    fn check_classes(&self) -> Result<(), String> {
        let entries = &self.sidekiq;
        if let Some((kind, _)) = entries.iter().find(|(_, job)| job.class.trim().is_empty()) {
            return Err(format!(
                "the Sidekiq class of {kind} is empty: name the worker's class"
            ));
        }
        if let Some(kind) = self.kinds.iter().find(|kind| !entries.contains_key(kind)) {
            return Err(format!(
                "{kind} has no Sidekiq class: name it, and the payload's fields that are its arguments"
            ));
        }
        // By a queue, any kind may come.
        match entries.keys().find(|kind| !self.kinds.contains(kind)) {
            Some(kind) if self.queues.is_empty() => Err(format!(
                "there is a Sidekiq class of {kind}, which doesn't go by it: add {kind} to its kinds, \
                 or take the class out"
            )),
            _ => Ok(()),
        }
    }

    /// Who holds what was sent by it.
    #[must_use]
    pub fn holder(&self) -> WorkerId {
        WorkerId::route(&self.name)
    }

    /// The sink; nothing is connected yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL that can't be read, or a sink that this build lacks.
    pub fn sink(&self, clock: &Clock) -> Result<Arc<dyn Sink>> {
        super::sinks::open(self, clock)
    }
}

fn scheme(url: &str) -> &str {
    url.split_once(':').map_or("", |(scheme, _)| scheme)
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("name", &self.name)
            .field("kinds", &self.kinds)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn to_redis() -> Route {
        Route::to("redis://127.0.0.1").unwrap().kind("a").unwrap()
    }

    fn to_sidekiq() -> Route {
        let route = Route::to("sidekiq+redis://127.0.0.1").unwrap();
        with_class(route.kind("a").unwrap(), "a", "A")
    }

    fn with_class(mut route: Route, kind: &str, class: &str) -> Route {
        let job = SidekiqJob {
            class: class.to_owned(),
            args: Vec::new(),
        };
        route.sidekiq.insert(name(kind), job);
        route
    }

    fn refused(route: &Route, derived: &[&str]) -> String {
        let derived = |kind: &Name| derived.contains(&kind.as_str());
        match route.check(derived) {
            Err(Error::Invalid(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_route_that_reports_back_takes_any_kind_and_queue() {
        to_redis().check(|_| false).unwrap();
        to_redis().queue("q").unwrap().check(|_| false).unwrap();
    }

    #[test]
    fn a_route_that_nothing_goes_by_any_more_still_drains_what_it_holds() {
        for url in ["redis://127.0.0.1", "sidekiq+redis://127.0.0.1"] {
            Route::to(url).unwrap().check(|_| false).unwrap();
        }
    }

    #[test]
    fn only_a_derived_kind_may_be_lost_unless_somebody_says_so() {
        to_sidekiq().check(|kind| kind.as_str() == "a").unwrap();
        let why = refused(&to_sidekiq(), &["b"]);
        assert!(
            why.contains("lossy = true") && why.contains("pair"),
            "{why}"
        );
        let mut route = to_sidekiq();
        route.lossy = true;
        route.check(|_| false).unwrap();
    }

    #[test]
    fn nobody_knows_whether_all_of_a_queue_is_derived() {
        let mut route = to_sidekiq().queue("q").unwrap();
        assert!(refused(&route, &["a"]).contains("queue q"));
        route.lossy = true;
        route.check(|_| false).unwrap();
    }

    #[test]
    fn every_kind_to_sidekiq_has_a_class_and_no_other_does() {
        let why = refused(&to_sidekiq().kind("b").unwrap(), &["a", "b"]);
        assert!(why.contains("b has no Sidekiq class"), "{why}");
        let why = refused(&with_class(to_sidekiq(), "a", " "), &["a"]);
        assert!(why.contains("is empty"), "{why}");
        let why = refused(&with_class(to_sidekiq(), "b", "B"), &["a"]);
        assert!(why.contains("add b to its kinds"), "{why}");
        let why = refused(&with_class(to_redis(), "a", "A"), &["a"]);
        assert!(why.contains("take it out"), "{why}");
        // It may come by the queue.
        let mut route = with_class(to_sidekiq(), "b", "B").queue("q").unwrap();
        route.lossy = true;
        route.check(|_| false).unwrap();
    }

    #[test]
    fn bounds_are_kept() {
        type Set = fn(&mut Route) -> &mut usize;
        let bounds: [(Set, usize); 2] = [
            (|route| &mut route.ahead, Route::MOST_AHEAD),
            (|route| &mut route.batch, Route::MOST_BATCH),
        ];
        for (set, most) in bounds {
            let mut route = to_redis();
            for good in [1, most] {
                *set(&mut route) = good;
                route.check(|_| false).unwrap();
            }
            for bad in [0, most + 1] {
                *set(&mut route) = bad;
                assert!(refused(&route, &[]).contains(&format!("from 1 to {most}")));
            }
        }
    }
}
