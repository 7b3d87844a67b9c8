//! Looks that stay cheap: what they read doesn't grow with what there is.

use std::time::Duration;

use rowlock::Kind;
use rowlock::claim::WorkerId;
use rowlock::engine::AtLeast;
use rowlock::engine::browse::{BYTES, LOOK, MOST};

use super::small::Small;
use crate::conformance::world::{LEASE, job, name};

/// So many jobs that whoever reads them all is noticed.
const MANY: usize = 30_000;

/// A statement by its name, and its text.
type Statement = (&'static str, &'static str);

macro_rules! statement {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../src/engine/postgres/sql/", $name, ".sql")),
        )
    };
}

/// The statements, with values in the places of their parameters, and how many rows or entries of one table or
/// index each may read.
fn looks() -> Vec<(Statement, Vec<String>, u64)> {
    let text = |text: &str| format!("'{text}'");
    let none = || "NULL".to_owned();
    let page = |state: String, kind: String, start: &str| {
        let mut all = vec![state, none(), kind, none(), none(), none(), none()];
        all.extend([start.to_owned(), "51".to_owned(), LOOK.to_string()]);
        all.push(BYTES.to_string());
        all
    };
    let (up, down) = ("-1", "9223372036854775807");
    let once = u64::try_from(LOOK).unwrap() + 50;
    let mut all = Vec::new();
    for (sql, start) in [
        (statement!("browse"), up),
        (statement!("browse_newest"), down),
    ] {
        for state in ["pending", "processing", "completed", "failed"] {
            all.push((sql, page(text(state), none(), start), once));
        }
        all.push((sql, page(none(), none(), start), once));
        all.push((sql, page(none(), text("nobody"), start), once));
    }
    let glance = statement!("glance");
    let known = |jobs: &str| vec![(MOST + 1).to_string(), "1000".to_owned(), jobs.to_owned()];
    // Counted once, and then it is enough that a job of the middle still waits.
    all.push((glance, known("'{}'::bigint[]"), MOST + 1_050));
    all.push((glance, known("'{15000}'::bigint[]"), 1_050));
    let in_hand = statement!("in_hand");
    let some = vec!["250".to_owned(), "50".to_owned(), BYTES.to_string()];
    all.push((in_hand, some, 300));
    let hands = statement!("hands");
    all.push((hands, vec!["250".to_owned()], 300));
    let routes = statement!("routes");
    all.push((routes, vec!["10000".to_owned()], 300));
    all
}

pub async fn a_look_reads_no_more_behind_many_rows(small: Small) {
    let world = small.world();
    let site = small.open_with(&world.clock, 64 * 1024 * 1024);
    let worker = site.join().await;
    site.rowlock
        .enqueue_many(vec![job("mail"); MANY])
        .await
        .unwrap();
    assert_eq!(site.claim(&worker, &["mail"], 5).await.len(), 5);
    small
        .side
        .execute(&format!(
            "INSERT INTO rowlock.history
             SELECT 1000000 + n, n % 3, current_date, now(), now(), now(), now(), 1, 5, 0, false, 'completed', 'default',
                    'mail', NULL, NULL, NULL, NULL, NULL, '{{}}'
             FROM generate_series(1, {MANY}) AS n"
        ))
        .unwrap();
    for table in ["job_0", "job_1", "job_2", "job_3", "history"] {
        let vacuum = format!("VACUUM ANALYZE rowlock.{table}");
        small.side.execute(&vacuum).unwrap();
    }
    within(&small, looks());
}

/// Takes each look, and sees what it reads.
fn within(small: &Small, looks: Vec<(Statement, Vec<String>, u64)>) {
    for ((name, text), values, most) in looks {
        // Or what a mutant makes of it.
        let mutated = rowlock::hooks::statement("postgres", name, text);
        let mut statement = mutated.unwrap_or_else(|| text.to_owned());
        for (at, value) in values.iter().enumerate().rev() {
            statement = statement.replace(&format!("${}", at + 1), value);
        }
        // Counts are kept by session, and this one has read nothing yet.
        let fresh = small.own.session();
        let begin = include_str!("../../src/engine/postgres/sql/look.sql");
        fresh.execute(begin).unwrap();
        fresh.query(&statement).unwrap();
        let read = fresh.query(&format!(
            "SELECT c.relname, pg_stat_get_xact_tuples_returned(c.oid) FROM pg_class AS c
             WHERE c.relnamespace = 'rowlock'::regnamespace AND pg_stat_get_xact_tuples_returned(c.oid) > {most}"
        ));
        fresh.execute("COMMIT").unwrap();
        assert!(read.as_ref().unwrap().is_empty(), "{read:?}\n{statement}");
    }
}

pub async fn a_checkup_reads_no_more_behind_many_rows(small: Small) {
    let world = small.world();
    let site = small.open_with(&world.clock, 256 * 1024 * 1024);
    let kinds = ["mail", "sent"].map(|kind| Kind::new(kind).unwrap());
    site.engine().add_kinds(&kinds).await.unwrap();
    let (route, kinds) = (name("redis"), [name("sent")]);
    let routes = site.rowlock.routes();
    routes
        .declare_route(&route, &kinds, &[], true)
        .await
        .unwrap();
    let holder = WorkerId::route(&route);
    routes.keep_route(&holder, LEASE).await.unwrap();
    for kind in ["typo", "mail", "sent"] {
        site.stage_many(kind, MANY).await;
    }
    // What is for later, what nobody survived, and what a route holds.
    small
        .side
        .execute(&format!(
            "INSERT INTO rowlock.aside
             SELECT 1000000 + n, now() + interval '1 h', now() + interval '1 h', now(), now(),
                    CASE WHEN n % 3 = 2 THEN 7 END, CASE WHEN n % 3 = 2 THEN (SELECT number FROM rowlock.worker LIMIT 1) END,
                    0, 5, 0, false, false, n % 3 = 1, false, 'default', 'mail', NULL, NULL, NULL, NULL, NULL, '{{}}'
             FROM generate_series(1, 3 * {MANY}) AS n"
        ))
        .unwrap();
    world.advance(Duration::from_secs(120));
    for table in ["job_0", "aside"] {
        let vacuum = format!("VACUUM ANALYZE rowlock.{table}");
        small.side.execute(&vacuum).unwrap();
    }
    let thousand = || vec!["1000::bigint".to_owned()];
    let kinds = statement!("health_kinds");
    let unhandled = statement!("health_unhandled");
    let hands = statement!("hands");
    let routes = statement!("routes");
    let sequences = statement!("health_sequences");
    within(
        &small,
        vec![
            // One lane of a strange kind; two of what is aside are by an index each.
            (kinds, thousand(), 3_050),
            (unhandled, thousand(), 3_050),
            (hands, vec!["250::bigint".to_owned()], 2_600),
            // What is sent and what isn't of its lane, and the heads of the others.
            (routes, vec!["10000::bigint".to_owned()], 22_100),
            (sequences, Vec::new(), 50),
        ],
    );
    let health = site.rowlock.operate().health().await.unwrap();
    let counted = |jobs: AtLeast| (jobs.n, jobs.more);
    let typo = &health.unknown_kinds[..];
    assert!(
        matches!(typo, [(kind, jobs)] if *kind == name("typo") && counted(*jobs) == (1_000, true))
    );
    assert!(matches!(&health.unhandled[..], [one] if one.kind == name("mail") && one.jobs.more));
}

pub async fn a_worker_that_may_hold_more_than_is_seen_is_known(small: Small) {
    let world = small.world();
    let site = small.open_with(&world.clock, 64 * 1024 * 1024);
    let worker = site.join().await;
    site.stage_many("mail", 400).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        site.claim(&worker, &["mail"], 200).await;
        let hands = site.rowlock.browse().hands().await.unwrap();
        seen.extend(hands.into_iter().map(|one| (one.holds, one.more)));
    }
    assert_eq!(seen, [(200, false), (250, true)]);
}
