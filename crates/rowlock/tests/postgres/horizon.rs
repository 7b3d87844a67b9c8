//! An old snapshot and a large backlog: the ring's space depends on neither.

use std::collections::BTreeSet;
use std::time::Duration;

use rowlock::clock::Clock;

use rowlock_testbed::Rows;

use super::small::{Small, drain_turning};
use crate::conformance::world::job;

/// Time passes: bounds follow it.
const STEP: Duration = Duration::from_millis(200);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// It keeps what is dead from being cleaned up, and has no lock on any segment.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rowlock.kind";

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
    pin.execute(SNAPSHOT).unwrap();
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
        world.advance(STEP);
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
    let mut ran = BTreeSet::new();
    while ran.len() < backlog {
        world.advance(STEP);
        let few = part.min(backlog - ran.len());
        ran.extend(drain_turning(&site, &worker, &["mail"], few).await);
    }
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
    let integrity = site.rowlock.operate().integrity().await.unwrap();
    assert!(integrity.is_clean(), "{integrity:?}");
}

pub async fn a_verdict_reads_its_own_rows_and_no_others(small: Small) {
    let world = small.world();
    let site = small.open_with(&world.clock, 64 * 1024 * 1024);
    let worker = site.join().await;
    let pin = small.own.session();
    pin.execute(SNAPSHOT).unwrap();
    site.rowlock
        .enqueue_many(vec![job("mail").delay(DAY); 5_000])
        .await
        .unwrap();
    site.stage_many("mail", 5_000).await;
    drain_turning(&site, &worker, &["mail"], 5_000).await;
    // What the planner knows now: there is hardly anything in the ring.
    let vacuum = |table: &str| {
        small
            .side
            .execute(&format!("VACUUM ANALYZE rowlock.{table}"))
    };
    for table in ["job_0", "job_1", "job_2", "job_3", "aside"] {
        vacuum(table).unwrap();
    }
    site.stage_many("mail", 20).await;
    assert_eq!(site.claim(&worker, &["mail"], 20).await.len(), 20);
    for (verdict, known) in [
        ("done", true),
        ("done", false),
        ("retry", false),
        ("fail", false),
    ] {
        let rows = small.side.query(
            "SELECT ctid, id, token FROM rowlock.job WHERE token IS NOT NULL ORDER BY id LIMIT 5",
        );
        let list = |at: usize| {
            let rows = rows.as_ref().unwrap().iter();
            let values: Vec<String> = rows.map(|row| row[at].clone().unwrap()).collect();
            values.join("','")
        };
        let segment = match known {
            true => small.side.value("SELECT last_value % 8 FROM rowlock.ring"),
            false => "NULL".to_owned(),
        };
        // Counts are kept by session, and this one has read nothing yet.
        let fresh = small.own.session();
        fresh.execute("BEGIN").unwrap();
        let settled = fresh.query(&format!(
            "SELECT rowlock.settle(
                array_fill({segment}::smallint, '{{5}}'), ARRAY['{}']::tid[], ARRAY['{}']::bigint[],
                ARRAY['{}']::bigint[], array_fill('{verdict}'::text, '{{5}}'), array_fill(0::bigint, '{{5}}'),
                array_fill(0::bigint, '{{5}}'), array_fill('{{}}'::text, '{{5}}'), 10)",
            list(0),
            list(1),
            list(2)
        ));
        assert_eq!(settled.unwrap().len(), 5);
        let read = fresh.query(
            "SELECT c.relname, pg_stat_get_xact_tuples_returned(c.oid) FROM pg_class AS c
             WHERE c.relnamespace = 'rowlock'::regnamespace AND c.relname <> 'lane'
               AND pg_stat_get_xact_tuples_returned(c.oid) > 50",
        );
        fresh.execute("COMMIT").unwrap();
        assert_eq!(read.unwrap(), Rows::new(), "{verdict} of 5 jobs");
    }
}

/// All of the ring, its indexes too.
const SPACE: &str = "SELECT sum(pg_total_relation_size(format('rowlock.job_%s', s)::regclass))
                     FROM generate_series(0, 3) AS s";
