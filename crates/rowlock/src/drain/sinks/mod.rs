//! The sinks there are.

#[cfg(feature = "redis")]
mod sidekiq;

use std::sync::Arc;

use super::{Route, Sink};
use crate::error::{Error, Result};

/// The sink of a route; nothing is connected yet.
#[cfg(feature = "redis")]
pub(super) fn open(route: &Route) -> Result<Arc<dyn Sink>> {
    if route.reports_back() {
        return Err(Error::invalid("not yet"));
    }
    Ok(Arc::new(sidekiq::Sidekiq::new(route)?))
}

/// The sink of a route; nothing is connected yet.
#[cfg(not(feature = "redis"))]
pub(super) fn open(route: &Route) -> Result<Arc<dyn Sink>> {
    let _ = route;
    Err(Error::invalid(
        "draining needs the feature `redis` of the crate rowlock",
    ))
}
