//! An old snapshot and a large backlog: the ring's space depends on neither.

use std::collections::BTreeSet;
use std::time::Duration;

use rowlock::JobId;
use rowlock::clock::Clock;

use super::small::{Small, drain_turning};
use crate::conformance::world::job;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Jobs for tomorrow, jobs that go through meanwhile, so many at a time, and a segment's bytes.
fn extent() -> (usize, usize, usize, u64) {
    match std::env::var_os("ROWLOCK_RING_FULL") {
        Some(_) => (1_000_000, 500_000, 5_000, 64 * 1024 * 1024),
        None => (20_000, 20_000, 500, 256 * 1024),
    }
}

pub async fn a_backlog_for_tomorrow_does_not_stop_the_ring(small: Small) {
    let (backlog, through, part, bytes) = extent();
    let world = small.world();
    let site = small.open_with(&world.clock, bytes);
    let worker = site.join().await;
    // Nothing that is dead now can be cleaned up while this one is open.
    let pin = small.own.session();
    let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rowlock.kind";
    pin.execute(snapshot).unwrap();
    let real = Clock::system();
    let began = real.elapsed();
    let mut tomorrow = BTreeSet::new();
    while tomorrow.len() < backlog {
        let few = vec![job("mail").delay(DAY); (backlog - tomorrow.len()).min(10_000)];
        let staged = site.rowlock.enqueue_many(few).await.unwrap();
        tomorrow.extend(staged.into_iter().filter_map(|answer| answer.id));
    }
    let mut told = vec![format!("staged {:?}", real.elapsed() - began)];
    let generation = small.generation();
    let mut most = 0;
    for _ in 0..through / part {
        site.stage_many("mail", part).await;
        drain_turning(&site, &worker, &["mail"], part).await;
        most = most.max(small.number(SPACE));
    }
    told.push(format!(
        "through {:?}, at most {most} bytes",
        real.elapsed() - began
    ));
    let few_segments = 6 * usize::try_from(bytes).unwrap();
    assert!(most < few_segments, "{most} bytes, {told:?}");
    assert!(small.generation() > generation, "the ring stands still");
    let aside = small.number("SELECT count(*) FROM rowlock.aside WHERE token IS NULL");
    assert_eq!(aside, backlog);
    world.advance(DAY);
    let ran: BTreeSet<JobId> = drain_turning(&site, &worker, &["mail"], backlog)
        .await
        .into_iter()
        .collect();
    assert_eq!(ran.len(), backlog);
    assert!(ran == tomorrow, "others than those of yesterday");
    let after = small.number(SPACE);
    told.push(format!(
        "done {:?}, {after} bytes, {} turns",
        real.elapsed() - began,
        small.generation() - generation
    ));
    assert!(after < few_segments, "{after} bytes");
    println!("{}", told.join("; "));
    assert_eq!(site.rowlock.operate().integrity().await.unwrap(), [""; 0]);
}

/// All of the ring, its indexes too.
const SPACE: &str = "SELECT sum(pg_total_relation_size(format('rowlock.job_%s', s)::regclass))
                     FROM generate_series(0, 3) AS s";
