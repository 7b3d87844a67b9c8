//! An old snapshot and a large backlog: the ring's space depends on neither.

use std::collections::BTreeSet;
use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::{NewJob, Status};

use rowlock_testbed::Rows;

use super::small::{Small, drain_turning};
use crate::conformance::world::job;

/// Time passes: bounds follow it.
const STEP: Duration = Duration::from_millis(200);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// It keeps what is dead from being cleaned up, and has no lock on any segment.
pub const SNAPSHOT: &str =
    "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rowlock.kind";

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

/// An analysis while everything that waits is still uncommitted says that there is nothing.
pub async fn a_backlog_that_looks_empty_is_not_sorted_for_each_claim(small: Small) {
    let world = small.world();
    let site = small.open_with(&world.clock, 64 * 1024 * 1024);
    let worker = site.join().await;
    // What it knew before stays: the rows of a lane are spread over the segment.
    site.stage_many("mail", 5_000).await;
    let segment = small.segment();
    let before = format!("ANALYZE rowlock.job_{segment}; TRUNCATE rowlock.job_{segment}");
    small.side.execute(&before).unwrap();
    let producer = small.own.session();
    let staged = "BEGIN; SELECT count(*) FROM rowlock.enqueue_many((SELECT jsonb_agg('{\"kind\":\"mail\"}'::jsonb)
                  FROM generate_series(1, 20000)))";
    producer.execute(staged).unwrap();
    let analyze = format!("ANALYZE rowlock.job_{segment}");
    small.side.execute(&analyze).unwrap();
    producer.execute("COMMIT").unwrap();
    let claim = "SELECT count(c.id) FROM rowlock.worker AS w, rowlock.claim_in_levels(w.number, 7, 100, '{mail}', '{}', 'fair',
        '{}', '{}', '{}', '{}', 0, true, true, 0, '-infinity', '{}', '{}', '{}', '{}', '{}') AS c";
    let fresh = small.own.session();
    fresh.execute("BEGIN").unwrap();
    assert_eq!(fresh.value(claim), "100");
    let read = fresh.value(&format!(
        "SELECT pg_stat_get_xact_tuples_returned('rowlock.job_{segment}_ready'::regclass)"
    ));
    fresh.execute("ROLLBACK").unwrap();
    assert!(
        read.parse::<u64>().unwrap() < 1_000,
        "{read} entries for 100 jobs"
    );
    assert_eq!(site.claim(&worker, &["mail"], 100).await.len(), 100);
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
        let settling = settling(&small, verdict, known);
        // Counts are kept by session, and this one has read nothing yet.
        let fresh = small.own.session();
        fresh.execute("BEGIN").unwrap();
        let settled = fresh.query(&settling);
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

/// Dead rows that an old snapshot keeps, and none that live: that is how a busy segment looks to an analysis
/// between two batches.
pub async fn a_segment_that_looks_empty_is_not_walked_for_each_verdict(small: Small) {
    let world = small.world();
    let site = small.open_with(&world.clock, 64 * 1024 * 1024);
    let worker = site.join().await;
    let pin = small.own.session();
    pin.execute(SNAPSHOT).unwrap();
    site.stage_many("mail", 1).await;
    let segment = small.segment();
    let copied = small.side.value(
        "SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute
         WHERE attrelid = 'rowlock.job'::regclass AND attnum > 1",
    );
    small
        .side
        .execute(&format!(
            "INSERT INTO rowlock.job_{segment} SELECT n - 200000, {copied} FROM rowlock.job, generate_series(1, 100000) AS n;
             UPDATE rowlock.job_{segment} SET attempt = 1;
             DELETE FROM rowlock.job_{segment}; ANALYZE rowlock.job_{segment}"
        ))
        .unwrap();
    let index = small.number(&format!(
        "SELECT pg_relation_size('rowlock.job_{segment}_ready') / 8192"
    ));
    site.stage_many("mail", 40).await;
    assert_eq!(site.claim(&worker, &["mail"], 40).await.len(), 40);
    for (verdict, known) in [
        ("done", true),
        ("done", false),
        ("retry", false),
        ("fail", false),
    ] {
        let fresh = small.own.session();
        // The first call makes the plans, and reads the catalogue for it.
        fresh.query(&settling(&small, verdict, known)).unwrap();
        let settling = settling(&small, verdict, known);
        let told = fresh.query(&format!("EXPLAIN (ANALYZE, BUFFERS) {settling}"));
        let read = told
            .unwrap()
            .iter()
            .find_map(|line| pages(line[0].as_ref()?));
        assert!(
            read.unwrap() < index,
            "{verdict} of 5 jobs: {read:?} pages, while all of the index has {index}"
        );
    }
}

/// Each use of a key leaves a dead row behind, and an old snapshot keeps all of them.
pub async fn a_key_that_was_used_often_is_freed_without_a_look_at_its_past(small: Small) {
    let world = small.world();
    let site = small.open_with(&world.clock, 64 * 1024 * 1024);
    let worker = site.join().await;
    let pin = small.own.session();
    pin.execute(SNAPSHOT).unwrap();
    let keyed = |n: usize| job("mail").unique(format!("order:{n}")).unwrap();
    let of_each: Vec<NewJob> = (0..10).map(keyed).collect();
    for _ in 0..30 {
        let staged = site.rowlock.enqueue_many(of_each.clone()).await.unwrap();
        assert!(staged.iter().all(|one| one.status == Status::Queued));
        drain_turning(&site, &worker, &["mail"], 10).await;
    }
    site.rowlock.enqueue_many(of_each).await.unwrap();
    assert_eq!(site.claim(&worker, &["mail"], 10).await.len(), 10);
    for known in [true, false] {
        let settling = settling(&small, "done", known);
        let fresh = small.own.session();
        fresh.execute("BEGIN").unwrap();
        assert_eq!(fresh.query(&settling).unwrap().len(), 5);
        let read = fresh.value(
            "SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid)) FROM pg_index
             WHERE indrelid = 'rowlock.key'::regclass",
        );
        fresh.execute("COMMIT").unwrap();
        assert_eq!(read, "5", "entries for five keys, by places: {known}");
    }
    assert_eq!(small.number("SELECT count(*) FROM rowlock.key"), 0);
}

/// An analysis that comes by while no key is held takes them for nothing, however many dead ones an old snapshot keeps.
pub async fn a_look_for_suspects_walks_past_no_dead_key(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    site.join().await;
    let pin = small.own.session();
    pin.execute(SNAPSHOT).unwrap();
    small
        .side
        .execute(
            "INSERT INTO rowlock.key (kind, unique_key, id) SELECT 'mail', 'order:' || n, -n FROM generate_series(1, 20000) AS n;
             DELETE FROM rowlock.key; ANALYZE rowlock.key",
        )
        .unwrap();
    let fresh = small.own.session();
    fresh.execute("BEGIN").unwrap();
    let look = "SELECT * FROM rowlock.claim_suspect((SELECT number FROM rowlock.worker), 7, '{mail}', '{}')";
    assert_eq!(
        fresh.query(look).unwrap().len(),
        1,
        "only when to look again"
    );
    let read = fresh.value(
        "SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid)) FROM pg_index
         WHERE indrelid = 'rowlock.key'::regclass",
    );
    assert_eq!(read, "0");
}

/// What a plan's first line of buffers says.
fn pages(line: &str) -> Option<usize> {
    let (_, counts) = line.split_once("Buffers: shared ")?;
    let count = |word: &str| {
        word.split_once('=')
            .map(|(_, n)| n.parse::<usize>().unwrap())
    };
    let read = counts
        .split(' ')
        .take_while(|word| !word.starts_with("dirtied"));
    Some(read.filter_map(count).sum())
}

/// A call that settles five claimed jobs, by their places or by their ids.
fn settling(small: &Small, verdict: &str, known: bool) -> String {
    let rows = small.side.query(
        "SELECT ctid, id, token FROM rowlock.job WHERE token IS NOT NULL ORDER BY id LIMIT 5",
    );
    let rows = rows.unwrap();
    let list = |at: usize| {
        let values: Vec<String> = rows.iter().map(|row| row[at].clone().unwrap()).collect();
        values.join("','")
    };
    let (places, ids, tokens) = (list(0), list(1), list(2));
    let token = rows[0][2].clone().unwrap();
    let segment = small.segment();
    match known {
        true => format!(
            "SELECT rowlock.settle('{{5}}', '{{{segment}}}', '{{{token}}}', '{{mail}}', '{{default}}', '{{true}}',
                ARRAY['{places}']::tid[], ARRAY['{ids}']::bigint[], array_fill(0::bigint, '{{5}}'),
                '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', 10)"
        ),
        false => format!(
            "SELECT rowlock.settle('{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}',
                ARRAY['{ids}']::bigint[], ARRAY['{tokens}']::bigint[], array_fill('{verdict}'::text, '{{5}}'),
                array_fill(0::bigint, '{{5}}'), array_fill(0::bigint, '{{5}}'), array_fill('{{}}'::text, '{{5}}'), 10)"
        ),
    }
}

/// All of the ring, its indexes too.
const SPACE: &str = "SELECT sum(pg_total_relation_size(format('rowlock.job_%s', s)::regclass))
                     FROM generate_series(0, 3) AS s";
