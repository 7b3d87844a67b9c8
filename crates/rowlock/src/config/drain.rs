//! `[[drain]]`: which jobs go where.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::drain::{Route, SidekiqJob};
use crate::engine::DIRECT;
use crate::error::{Error, Result};
use crate::job::Name;

/// `[[drain]]`
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainSection {
    name: Option<Name>,
    kinds: Option<Vec<Name>>,
    queues: Option<Vec<Name>>,
    to: String,
    #[serde(default)]
    lossy: bool,
    ahead: Option<usize>,
    batch: Option<usize>,
    #[serde(default)]
    sidekiq: BTreeMap<Name, SidekiqSection>,
}

/// Not the URL: it may have a password in it.
impl std::fmt::Debug for DrainSection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DrainSection")
            .field("name", &self.name)
            .field("kinds", &self.kinds)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}

/// `[drain.sidekiq.KIND]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SidekiqSection {
    class: String,
    #[serde(default)]
    args: Vec<Name>,
}

impl DrainSection {
    fn route(&self) -> Result<Route> {
        let mut route = Route::to(&self.to)
            .map_err(|why| Error::invalid(format!("[[drain]]: to = ...: {why}")))?;
        if let Some(name) = &self.name {
            route.name.clone_from(name);
        }
        route.kinds = self.kinds.clone().unwrap_or_default();
        route.queues = self.queues.clone().unwrap_or_default();
        route.lossy = self.lossy;
        route.ahead = self.ahead.unwrap_or(route.ahead);
        route.batch = self.batch.unwrap_or(route.batch);
        for (kind, job) in &self.sidekiq {
            let (class, args) = (job.class.clone(), job.args.clone());
            let job = SidekiqJob { class, args };
            route.sidekiq.insert(kind.clone(), job);
        }
        self.check(&route)
            .map_err(|why| Error::invalid(format!("route {}: {why}", route.name)))?;
        // Whether a pair derives its kinds again can't be seen here.
        route.check(|_| true)?;
        Ok(route)
    }

    fn check(&self, route: &Route) -> Result<(), String> {
        // An empty list is meant: nothing more goes by it, and what it holds still comes back.
        if self.kinds.is_none() && self.queues.is_none() {
            return Err(
                "it has neither kinds nor queues: write kinds = [\"send_email\"]".to_owned(),
            );
        }
        if route.name.as_str() == DIRECT {
            return Err(format!(
                "{DIRECT} is the way without a drain: give it another name"
            ));
        }
        if route.reports_back() && route.lossy {
            return Err("lossy is for a sink that can't report back: take it out".to_owned());
        }
        Ok(())
    }
}

/// The routes as declared; a kind or a queue has one at most.
pub(super) fn routes(sections: &[DrainSection]) -> Result<Vec<Route>> {
    let routes: Vec<Route> = sections
        .iter()
        .map(DrainSection::route)
        .collect::<Result<_>>()?;
    let mut seen = BTreeSet::new();
    for route in &routes {
        let name = std::iter::once(("drain", &route.name));
        let kinds = route.kinds.iter().map(|kind| ("kind", kind));
        let queues = route.queues.iter().map(|queue| ("queue", queue));
        for (what, name) in name.chain(kinds).chain(queues) {
            if seen.insert((what, name)) {
                continue;
            }
            return Err(Error::invalid(match what {
                "drain" => {
                    format!(
                        "there are two [[drain]] called {name}: give one another name = \"...\""
                    )
                }
                _ => format!("{what} {name} is drained twice: take it out of one list"),
            }));
        }
    }
    Ok(routes)
}
