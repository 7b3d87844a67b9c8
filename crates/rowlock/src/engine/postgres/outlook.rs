//! What a process remembers from one claim of a route to the next, and of those that go by none.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use super::lane::Lanes;
use super::sweep::Budget;
use super::{Postgres, lock};
use crate::job::Name;

/// Hints. Each route has its own: a busy one must not hide what another has not looked at.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    pub(super) lanes: Mutex<Lanes>,
    pub(super) budget: Mutex<Budget>,
    empty: AtomicU32,
}

impl Outlook {
    /// Counts empty answers in a row.
    pub(super) fn answered(&self, empty: bool) -> u32 {
        match empty {
            true => self.empty.fetch_add(1, Ordering::Relaxed) + 1,
            false => {
                self.empty.store(0, Ordering::Relaxed);
                0
            }
        }
    }

    pub(super) fn empty_answers(&self) -> u32 {
        self.empty.load(Ordering::Relaxed)
    }
}

impl Postgres {
    pub(super) fn outlook(&self, route: Option<&Name>) -> Arc<Outlook> {
        let mut all = lock(&self.outlooks);
        Arc::clone(all.entry(route.cloned()).or_default())
    }
}
