//! The sinks there are.

#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "redis")]
mod sidekiq;

use std::sync::Arc;

use super::{Route, Sink};
use crate::clock::Clock;
use crate::error::Result;

/// The sink of a route; nothing is connected yet.
#[cfg(feature = "redis")]
pub(super) fn open(route: &Route, clock: &Clock) -> Result<Arc<dyn Sink>> {
    let clock = clock.clone();
    match route.reports_back() {
        true => Ok(Arc::new(redis::RedisSink::new(&route.to, clock)?)),
        false => Ok(Arc::new(sidekiq::Sidekiq::new(route, clock)?)),
    }
}

/// The sink of a route; nothing is connected yet.
#[cfg(not(feature = "redis"))]
pub(super) fn open(route: &Route, clock: &Clock) -> Result<Arc<dyn Sink>> {
    let _ = (route, clock);
    Err(crate::error::Error::invalid(
        "draining needs the feature `redis` of the crate rowlock",
    ))
}
