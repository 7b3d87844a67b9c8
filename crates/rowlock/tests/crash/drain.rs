//! A drain dies at a step between the store and Redis. Whoever comes next sends what wasn't sent, and
//! applies what was said.

use std::sync::Arc;

use rowlock::JobState;

use crate::conformance::world::Home;
use crate::drained::stand::{Stand, dismiss, kill};

const LEASE_MS: u32 = 600;
const KINDS: &str = "quick,stumbles,naps";

pub fn dies_draining(home: Arc<dyn Home>, point: &str) {
    let stand = Stand::new(home);
    stand.retries_at_once("stumbles");
    let mut ids = stand.stage("naps", 2);
    ids.extend(stand.stage("quick", 50));
    leaves_something_behind(&stand);
    ids.extend(stand.stage("stumbles", 50));
    let worker = stand.worker(LEASE_MS, 4, KINDS);
    let crash = [("ROWLOCK_CRASH_AT", point)];
    let mut drain = stand.drain_with(&crash, LEASE_MS, KINDS);
    drain.line_with(&format!("crash point {point}"));
    assert_eq!(drain.wait().0, None, "it was ended by a signal");
    let healer = stand.drain(LEASE_MS, KINDS);
    stand.until(|counts| counts.pending + counts.processing == 0);
    dismiss(worker);
    dismiss(healer);
    for id in ids {
        assert_eq!(stand.ask(stand.site.state(id)), JobState::Completed, "{id}");
    }
    stand.judge();
}

/// A drain that was killed, with jobs in Redis that a worker died of.
fn leaves_something_behind(stand: &Stand) {
    let drain = stand.drain(LEASE_MS, KINDS);
    stand.until_filled(|fill| fill.ready > 0);
    let pause = [("ROWLOCK_PAUSE_AT", "run.began")];
    let mut worker = stand.worker_with(&pause, LEASE_MS, 4, KINDS);
    worker.line_with("paused at run.began");
    kill(worker);
    kill(drain);
}
