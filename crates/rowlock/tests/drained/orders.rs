//! What operators ask for while jobs are on their way, and what commits late.

use std::sync::Arc;

use rowlock::{JobState, Name};

use super::stand::{Stand, dismiss};
use crate::conformance::world::job;

const LEASE_MS: u32 = 1_000;

pub fn a_cancel_reaches_what_waits_and_what_runs(stand: &Stand) {
    let ids = stand.stage("waits", 2);
    let drain = stand.drain(LEASE_MS, "waits");
    let mut worker = stand.worker(LEASE_MS, 1, "waits");
    worker.line_with("began waits");
    stand.until_filled(|fill| fill.ready == 1 && fill.taken == 1 || fill.taken == 2);
    let cancelled = stand.ask(stand.site.engine().cancel(ids.clone()));
    assert!(cancelled.unwrap().iter().all(Result::is_ok));
    worker.line_with("dropped");
    stand.until(|counts| counts.cancelled == 2);
    dismiss(worker);
    dismiss(drain);
}

pub fn a_route_that_ends_strands_no_job(stand: &Stand) {
    stand.stage("quick", 1_000);
    let drain = stand.drain(LEASE_MS, "quick");
    stand.until_filled(|fill| fill.ready == 1_000);
    // From here on it goes directly; what was sent comes back by the route.
    let route = Name::new("redis").unwrap();
    let routes = stand.site.rowlock.routes();
    stand
        .ask(routes.declare_route(&route, &[], &[], true))
        .unwrap();
    stand.stage("quick", 1_000);
    assert_eq!(stand.fill().unwrap().pushed, 1_000);
    let url = stand.home.url();
    let direct = crate::drained::stand::started(&["work", &url, "5000", "4", "quick"], &[]);
    stand.until(|counts| counts.completed == 1_000);
    assert_eq!(
        stand.fill().unwrap().ready,
        1_000,
        "they wait for workers of Redis"
    );
    let worker = stand.worker(LEASE_MS, 4, "quick");
    stand.until(|counts| counts.completed == 2_000);
    dismiss(direct);
    dismiss(worker);
    dismiss(drain);
    assert_eq!(stand.fill().unwrap().pushed, 1_000);
}

pub fn what_commits_late_is_sent_all_the_same() {
    let stand = Stand::new(Arc::new(crate::postgres::home::Own::new()));
    let drain = stand.drain(LEASE_MS, "quick");
    let worker = stand.worker(LEASE_MS, 4, "quick");
    let mut late = stand.home.client();
    late.begin();
    let first = late.stage(&job("quick")).unwrap().id.unwrap();
    let mut rolled_back = stand.home.client();
    rolled_back.begin();
    let never = rolled_back.stage(&job("quick")).unwrap().id.unwrap();
    let second = stand.stage("quick", 100);
    assert!(
        first < second[0] && never < second[0],
        "it has the lower id"
    );
    stand.until(|counts| counts.completed == 100);
    rolled_back.rollback();
    late.commit();
    stand.until(|counts| counts.completed == 101);
    assert_eq!(stand.ask(stand.site.state(first)), JobState::Completed);
    assert!(stand.ask(stand.site.is_gone(never)));
    dismiss(worker);
    dismiss(drain);
    assert!(!stand.begun().contains_key(&never.0));
    stand.judge();
}
