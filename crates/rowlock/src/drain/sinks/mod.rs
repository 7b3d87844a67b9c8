//! The sinks there are.

#[cfg(feature = "redis")]
pub mod redis;

use std::sync::Arc;

use super::{Route, Sink};
use crate::error::{Error, Result};

/// The sink of a route; nothing is connected yet.
#[cfg(feature = "redis")]
pub(super) fn open(route: &Route) -> Result<Arc<dyn Sink>> {
    match route.reports_back() {
        true => Ok(Arc::new(redis::RedisSink::new(
            &route.to,
            crate::clock::Clock::system(),
        )?)),
        false => Err(Error::invalid("draining to Sidekiq is not there yet")),
    }
}

/// The sink of a route; nothing is connected yet.
#[cfg(not(feature = "redis"))]
pub(super) fn open(route: &Route) -> Result<Arc<dyn Sink>> {
    let _ = route;
    Err(Error::invalid(
        "draining needs the feature `redis` of the crate rowlock",
    ))
}
