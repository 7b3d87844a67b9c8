//! The sinks there are.

#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "redis")]
mod sidekiq;

use std::sync::Arc;

use super::{Route, Sink};
use crate::error::Result;

/// The sink of a route; nothing is connected yet.
#[cfg(feature = "redis")]
pub(super) fn open(route: &Route) -> Result<Arc<dyn Sink>> {
    if route.reports_back() {
        let clock = crate::clock::Clock::system();
        return Ok(Arc::new(redis::RedisSink::new(&route.to, clock)?));
    }
    Ok(Arc::new(sidekiq::Sidekiq::new(route)?))
}

/// The sink of a route; nothing is connected yet.
#[cfg(not(feature = "redis"))]
pub(super) fn open(route: &Route) -> Result<Arc<dyn Sink>> {
    let _ = route;
    Err(crate::error::Error::invalid(
        "draining needs the feature `redis` of the crate rowlock",
    ))
}
