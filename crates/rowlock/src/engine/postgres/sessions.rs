//! The connections of this process, by the server's numbers: a guard leaves them alone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::lock;

/// Which processes of the server serve us, each with how many connections we count under its number: a
/// pooler may have handed one out twice.
#[derive(Debug, Clone, Default)]
pub(super) struct Sessions {
    known: Arc<Mutex<HashMap<i32, usize>>>,
    /// Whether one of them has ended: the next one may lead to another server.
    lost: Arc<AtomicBool>,
}

/// A connection that is known for as long as this lives.
#[derive(Debug)]
pub(super) struct Known {
    pid: i32,
    all: Sessions,
}

impl Sessions {
    pub(super) fn add(&self, pid: i32) -> Known {
        *lock(&self.known).entry(pid).or_default() += 1;
        Known {
            pid,
            all: self.clone(),
        }
    }

    pub(super) fn has(&self, pid: i32) -> bool {
        lock(&self.known).contains_key(&pid)
    }

    /// Whether a connection was lost since this was last asked.
    pub(super) fn take_lost(&self) -> bool {
        self.lost.swap(false, Ordering::Relaxed)
    }

    pub(super) fn set_lost(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.all.set_lost();
        let mut all = lock(&self.all.known);
        if let Some(count) = all.get_mut(&self.pid) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.pid);
            }
        }
    }
}
