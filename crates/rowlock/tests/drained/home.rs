//! A store whose jobs go to their workers through Redis.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use rowlock::Rowlock;
use rowlock::clock::Clock;
use rowlock_testbed::Redis;

use super::way::{Shared, Way};
use crate::conformance::world::{Client, Detour, Home};

/// One for all cases of this process; each has a prefix of its own.
pub fn server() -> &'static Redis {
    static SHARED: OnceLock<Redis> = OnceLock::new();
    SHARED.get_or_init(Redis::start)
}

/// An engine's home, with Redis between the store and its workers.
pub struct Through {
    inner: Arc<dyn Home>,
    prefix: String,
    shared: Arc<Shared>,
}

impl Through {
    pub fn new(inner: Arc<dyn Home>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            inner,
            prefix: format!("case{number}"),
            shared: Arc::default(),
        }
    }
}

impl Home for Through {
    fn migrate(&self) {
        self.inner.migrate();
    }

    fn open(&self, clock: Clock) -> Rowlock {
        self.inner.open(clock)
    }

    fn client(&self) -> Box<dyn Client> {
        self.inner.client()
    }

    fn url(&self) -> String {
        self.inner.url()
    }

    fn empty_url(&self) -> String {
        self.inner.empty_url()
    }

    fn poll(&self) -> Duration {
        // The drain of these cases moves only when a worker asks.
        Duration::from_millis(50)
    }

    fn time_is(&self, now: Timestamp) {
        self.inner.time_is(now);
    }

    fn time_passes(&self) {
        self.inner.time_passes();
    }

    fn detour(&self, rowlock: &Rowlock) -> Option<Arc<dyn Detour>> {
        let url = format!("{}?prefix={}", server().url(), self.prefix);
        let way = Way::new(rowlock, &url, Arc::clone(&self.shared));
        Some(Arc::new(way))
    }
}
