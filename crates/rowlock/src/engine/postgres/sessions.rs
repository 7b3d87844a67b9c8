//! The connections of this process, by the server's numbers: a guard leaves them alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::lock;

/// Which processes of the server serve us, each with how many connections we count under its number: a
/// pooler may have handed one out twice.
#[derive(Debug, Clone, Default)]
pub(super) struct Sessions(Arc<Mutex<HashMap<i32, usize>>>);

/// A connection that is known for as long as this lives.
#[derive(Debug)]
pub(super) struct Known {
    pid: i32,
    all: Sessions,
}

impl Sessions {
    pub(super) fn add(&self, pid: i32) -> Known {
        *lock(&self.0).entry(pid).or_default() += 1;
        Known {
            pid,
            all: self.clone(),
        }
    }

    pub(super) fn has(&self, pid: i32) -> bool {
        lock(&self.0).contains_key(&pid)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        let mut all = lock(&self.all.0);
        if let Some(count) = all.get_mut(&self.pid) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.pid);
            }
        }
    }
}
