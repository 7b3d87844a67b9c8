//! The sinks there are.

#[cfg(feature = "redis")]
pub mod redis;

use std::sync::Arc;

use super::{Route, Sink};
use crate::clock::Clock;
use crate::error::{Error, Result};

/// The sink of a route; nothing is connected yet.
#[cfg(feature = "redis")]
pub(super) fn open(route: &Route, clock: &Clock) -> Result<Arc<dyn Sink>> {
    match route.reports_back() {
        true => Ok(Arc::new(redis::RedisSink::new(&route.to, clock.clone())?)),
        false => Err(Error::invalid("draining to Sidekiq is not there yet")),
    }
}

/// The sink of a route; nothing is connected yet.
#[cfg(not(feature = "redis"))]
pub(super) fn open(route: &Route, clock: &Clock) -> Result<Arc<dyn Sink>> {
    let _ = (route, clock);
    Err(Error::invalid(
        "draining needs the feature `redis` of the crate rowlock",
    ))
}
