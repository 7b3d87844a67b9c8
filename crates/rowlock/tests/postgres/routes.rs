//! What routes have sent stays out of the ring's way, and what older workers call is still there.

use std::time::Duration;

use rowlock::claim::{Claim, ClaimedJob, WorkerId};
use rowlock::settle::{Settled, Verdict};
use rowlock::{JobId, JobState};
use rowlock_testbed::{Session, until};

use super::small::{Small, drain};
use crate::conformance::world::{LEASE, Site, ids, job, name, wanted};

/// Longer than what is sent stays in the ring.
const LONG: Duration = Duration::from_secs(11);

fn holder() -> WorkerId {
    WorkerId::route(&name("sink"))
}

async fn send_by_route(site: &Site, kind: &str) {
    let (routes, route, kinds) = (site.rowlock.routes(), name("sink"), [name(kind)]);
    let declared = routes.declare_route(&route, &kinds, &[], true);
    declared.await.unwrap();
    routes.keep_route(&holder(), LEASE).await.unwrap();
}

async fn sends(site: &Site, limit: usize) -> Vec<ClaimedJob> {
    let claim = Claim {
        route: Some(name("sink")),
        ..wanted(&holder(), &[], limit)
    };
    site.claimed(claim).await.jobs
}

fn is_aside(small: &Small, id: JobId) -> bool {
    small.place(id).starts_with("rowlock.aside ")
}

pub async fn what_was_sent_keeps_no_segment_though_no_drain_runs(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    send_by_route(&site, "mail").await;
    site.stage_many("mail", 20).await;
    let sent = sends(&site, 20).await;
    assert_eq!(sent.len(), 20);
    // Most of what is sent is back soon.
    for _ in 0..3 {
        small.turn(&site, &worker, "filler").await;
        assert!(!sent.iter().any(|job| is_aside(&small, job.id)));
    }
    world.advance(LONG);
    for _ in 0..5 {
        site.beat(&worker, &[]).await.unwrap();
        small.turn(&site, &worker, "filler").await;
    }
    assert!(sent.iter().all(|job| is_aside(&small, job.id)));
    until("the ring is empty but for its current segment", || {
        let turned = small.rotate(&[]);
        let is_out_of_the_way = |did: &str| ["current", "empty", "retired"].contains(&did);
        let all = turned.iter().all(|each| is_out_of_the_way(&each.did));
        all.then_some(())
    });
    // Whoever comes next applies what becomes of them.
    let next = small.open(&world.clock);
    for job in &sent {
        assert_eq!(site.state(job.id).await, JobState::Processing);
        assert_eq!(next.settle(job, Verdict::Done).await, Settled::Accepted);
    }
}

pub async fn a_list_of_what_was_sent_sets_it_aside(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    send_by_route(&site, "mail").await;
    let (old, young) = (
        site.stage_many("mail", 30).await,
        site.stage_many("mail", 10).await,
    );
    assert_eq!(sends(&site, 30).await.len(), 30);
    world.advance(LONG);
    assert_eq!(sends(&site, 30).await.len(), 10);
    // A drain that was just started.
    let next = small.open(&world.clock).rowlock.routes();
    let mut listed = Vec::new();
    loop {
        let after = listed.last().copied();
        let page = next.sent(&holder(), after, 7).await.unwrap();
        if page.is_empty() {
            break;
        }
        listed.extend(page.iter().map(|job| job.id));
    }
    assert_eq!(listed, [&old[..], &young[..]].concat());
    assert!(old.iter().all(|id| is_aside(&small, *id)));
    assert!(!young.iter().any(|id| is_aside(&small, *id)));
    let after_all = next.sent(&holder(), young.last().copied(), 7).await;
    assert!(after_all.unwrap().is_empty());
    let from_the_middle = next.sent(&holder(), Some(old[27]), 4).await.unwrap();
    let found: Vec<JobId> = from_the_middle.iter().map(|job| job.id).collect();
    assert_eq!(found, [old[28], old[29], young[0], young[1]]);
}

pub async fn a_route_whose_row_was_removed_keeps_what_it_sent(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    send_by_route(&site, "mail").await;
    let staged = site.stage_many("mail", 3).await;
    let sent = sends(&site, 10).await;
    let removed = "DELETE FROM rowlock.worker WHERE id = 'drain:sink'";
    small.side.execute(removed).unwrap();
    let expired = small.open(&world.clock).engine().expire().await.unwrap();
    assert_eq!((expired.returned, expired.ended), (0, 0));
    // An older worker may think that nobody beats for them.
    let bury = format!(
        "SELECT buried FROM rowlock.expire({}, NULL, NULL, NULL, 0, '{{}}', 10)",
        small.side.value("SELECT min(worker) FROM rowlock.job")
    );
    assert_eq!(small.side.value(&bury), "f");
    let routes = site.rowlock.routes();
    routes.keep_route(&holder(), LEASE).await.unwrap();
    let held = routes.sent(&holder(), None, 10).await.unwrap();
    assert_eq!(held.iter().map(|job| job.id).collect::<Vec<_>>(), staged);
    assert_eq!(
        site.settle(&sent[0], Verdict::Done).await,
        Settled::Accepted
    );
}

pub async fn an_older_worker_goes_on_after_the_migration(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    site.join().await;
    let older = small.side.value("SELECT number FROM rowlock.worker");
    send_by_route(&site, "routed").await;
    site.stage(job("routed").priority(5)).await;
    let direct = site.stage(job("mail")).await;
    let claim =
        "SELECT id FROM rowlock.claim_in_levels({worker}, 7, 10, '{mail,routed}', '{}', 'fair',
        '{}', '{}', '{}', '{}', 0, true, true, 0, '-infinity', '{}', '{}', '{}', '{}', '{}')
        WHERE id IS NOT NULL";
    let claimed = small.side.value(&claim.replace("{worker}", &older));
    assert_eq!(claimed, direct.to_string());
    let suspect = format!(
        "SELECT count(*) FROM rowlock.claim_suspect({older}, 8, '{{mail,routed}}', '{{}}')"
    );
    assert_eq!(small.side.value(&suspect), "1", "when the next one is due");
    // It doesn't know that a route is never given up.
    let sent = sends(&site, 10).await;
    world.advance(LEASE * 2);
    let bury = "SELECT buried FROM rowlock.worker AS w,
                rowlock.expire(w.number, w.seen_at, NULL, NULL, 0, '{}', 10) WHERE w.id = 'drain:sink'";
    assert_eq!(small.side.value(bury), "f");
    assert_eq!(site.state(sent[0].id).await, JobState::Processing);
}

/// The rows of live jobs that a session has read so far.
const READ: &str =
    "SELECT sum(pg_stat_get_xact_tuples_returned(c.oid) + pg_stat_get_xact_tuples_fetched(c.oid))
    FROM pg_class AS c WHERE c.relnamespace = 'rowlock'::regnamespace AND c.relkind IN ('r', 'i')
    AND (c.relname LIKE 'job%' OR c.relname LIKE 'aside%')";

/// Runs a statement in a session that has read nothing yet: its answer, and what it read.
fn counted(session: &Session, statement: &str) -> (String, u64) {
    session.execute("BEGIN").unwrap();
    let answer = session.value(statement);
    let read = session.value(READ).parse().unwrap();
    session.execute("COMMIT").unwrap();
    (answer, read)
}

pub async fn a_claim_of_a_route_reads_its_own_rows_and_no_others(small: Small) {
    let world = small.world();
    let site = small.open_with(&world.clock, 64 * 1024 * 1024);
    let worker = site.join().await;
    site.stage_many("other", 10_000).await;
    assert_eq!(drain(&site, &worker, &["other"], 1_000).await.len(), 10_000);
    send_by_route(&site, "mail").await;
    site.stage_many("other", 5_000).await;
    site.stage_many("mail", 1_000).await;
    for table in ["job_0", "job_1", "job_2", "job_3", "aside"] {
        let vacuum = format!("VACUUM ANALYZE rowlock.{table}");
        small.side.execute(&vacuum).unwrap();
    }
    let claim = "SELECT count(c.id) FROM rowlock.worker AS w, rowlock.claim_in_levels(w.number, 7, 1000, '{}', '{}', 'fair',
        '{}', '{}', '{}', '{}', 0, true, true, 0, '-infinity', '{}', '{}', '{}', '{}', '{}', 'sink') AS c
        WHERE w.id = 'drain:sink'";
    let (rows, read) = counted(&small.own.session(), claim);
    assert_eq!(rows, "1000");
    assert!(read < 4_100, "{read} rows for 1,000 jobs");
    let held = "SELECT id FROM rowlock.job WHERE token = 7 ORDER BY id";
    let held = small.side.query(held).unwrap();
    let held: Vec<String> = held.into_iter().flatten().flatten().collect();
    // What becomes of them is told by somebody who doesn't know where they are.
    for (verdict, some) in [("done", &held[..500]), ("expired", &held[500..])] {
        let settle = format!(
            "SELECT count(*) FROM rowlock.settle(
                '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', ARRAY[{}]::bigint[],
                array_fill(7::bigint, '{{500}}'), array_fill('{verdict}'::text, '{{500}}'),
                array_fill(0::bigint, '{{500}}'), array_fill(NULL::bigint, '{{500}}'),
                array_fill(NULL::text, '{{500}}'), 10)",
            some.join(",")
        );
        let (settled, read) = counted(&small.own.session(), &settle);
        assert_eq!(settled, "500");
        assert!(read < 4_100, "{read} rows for 500 verdicts");
    }
    assert_eq!(ids(&site.claim(&worker, &["mail"], 10).await), []);
}
