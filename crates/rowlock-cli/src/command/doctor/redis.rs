//! What can be wrong with the Redis of a route.

use std::time::Duration;

use anyhow::Result;
use rowlock::Rowlock;
use rowlock::drain::Route;
use rowlock::drain::sinks::redis::{Address, Concern, Examination, Worry, examine};

use super::{Finding, Level, finding};
use crate::open::{quoted, sink};
use crate::show;

/// How long a Redis may take to be examined.
const PATIENCE: Duration = Duration::from_secs(10);

pub async fn look(rowlock: &Rowlock, routes: &[Route]) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for route in routes {
        let address = Address::parse(&route.to)?;
        let examined = rowlock.clock().timeout(PATIENCE, examine(&address)).await;
        let examined = match examined {
            Some(Ok(examined)) => examined,
            Some(Err(why)) => {
                found.push(unusable(route, &why.to_string()));
                continue;
            }
            None => {
                let why = format!("it didn't answer for {}", show::span(PATIENCE));
                found.push(unusable(route, &why));
                continue;
            }
        };
        // Whoever may only read can't be told which store this is, and nothing else is worse for it.
        if let Ok(store) = rowlock.routes().store_id().await {
            found.extend(taken(route, &address, &examined, store));
        }
        let concerns = examined.concerns.iter();
        found.extend(concerns.filter_map(|each| judge(route, &examined, each)));
    }
    Ok(found)
}

/// A command for this Redis; whoever runs it adds the password.
fn cli(route: &Route, command: &str) -> String {
    let url = sink(&route.to);
    let url = url.strip_prefix("sidekiq+").unwrap_or(&url);
    let url = url.split_once('?').map_or(url, |(url, _)| url);
    format!("redis-cli -u {} {command}", quoted(url))
}

fn unusable(route: &Route, why: &str) -> Finding {
    let what = format!("route {} can't be used: {why}", route.name);
    finding("R024", Level::Error, what, cli(route, "PING"))
}

/// Two stores would take each other's jobs. Sidekiq's jobs tell by their jid whose they are.
fn taken(route: &Route, at: &Address, examined: &Examination, store: u64) -> Option<Finding> {
    let other = examined.owner.is_some_and(|owner| owner != store);
    if !other || !route.reports_back() {
        return None;
    }
    let what = format!(
        "route {} can't be used: another store's jobs are at {at}; give each store a ?prefix=NAME of its \
         own in the URL, or remove the key if that store is gone",
        route.name
    );
    let remedy = cli(route, &format!("DEL '{}:owner'", at.keys()));
    Some(finding("R024", Level::Error, what, remedy))
}

fn judge(route: &Route, examined: &Examination, concern: &Concern) -> Option<Finding> {
    let what = format!("route {}: {}", route.name, concern.what);
    let found = match concern.worry {
        Worry::Evicts => {
            // Without a limit nothing is thrown away yet.
            let level = match examined.max_memory {
                Some(_) => Level::Warn,
                None => Level::Info,
            };
            let remedy = cli(route, "CONFIG SET maxmemory-policy noeviction");
            finding("R022", level, what, remedy)
        }
        Worry::NoPersistence => {
            let (level, what) = match route.reports_back() {
                true => (Level::Info, what),
                false => (
                    Level::Warn,
                    format!("{what}; nobody sends again what Sidekiq had not run"),
                ),
            };
            finding("R023", level, what, cli(route, "CONFIG SET appendonly yes"))
        }
        Worry::AlmostFull => {
            let more = examined.max_memory.unwrap_or_default().saturating_mul(2);
            let remedy = cli(route, &format!("CONFIG SET maxmemory {more}"));
            finding("R029", Level::Warn, what, remedy)
        }
        // Sidekiq shares its Redis with whoever likes.
        Worry::ForeignKeys if !route.reports_back() => return None,
        _ => finding("R024", Level::Warn, what, concern.remedy.clone()),
    };
    Some(found)
}
