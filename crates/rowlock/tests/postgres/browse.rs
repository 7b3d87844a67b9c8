//! Looks that stay cheap: what they read doesn't grow with what there is.

use rowlock::engine::browse::{BYTES, LOOK, MOST};

use super::small::Small;
use crate::conformance::world::job;

/// So many jobs that whoever reads them all is noticed.
const MANY: usize = 30_000;

/// The statements, with values in the places of their parameters, and how many rows or entries of one table or
/// index each may read.
fn looks() -> Vec<(&'static str, Vec<String>, u64)> {
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
        (include_str!("../../src/engine/postgres/sql/browse.sql"), up),
        (
            include_str!("../../src/engine/postgres/sql/browse_newest.sql"),
            down,
        ),
    ] {
        for state in ["pending", "processing", "completed", "failed"] {
            all.push((sql, page(text(state), none(), start), once));
        }
        all.push((sql, page(none(), none(), start), once));
        all.push((sql, page(none(), text("nobody"), start), once));
    }
    let glance = include_str!("../../src/engine/postgres/sql/glance.sql");
    let known = |jobs: &str| vec![(MOST + 1).to_string(), "1000".to_owned(), jobs.to_owned()];
    // Counted once, and then it is enough that a job of the middle still waits.
    all.push((glance, known("'{}'::bigint[]"), MOST + 1_050));
    all.push((glance, known("'{15000}'::bigint[]"), 1_050));
    let in_hand = include_str!("../../src/engine/postgres/sql/in_hand.sql");
    let some = vec!["250".to_owned(), "50".to_owned(), BYTES.to_string()];
    all.push((in_hand, some, 300));
    let hands = include_str!("../../src/engine/postgres/sql/hands.sql");
    all.push((hands, vec!["250".to_owned()], 300));
    let routes = include_str!("../../src/engine/postgres/sql/routes.sql");
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
    for (sql, values, most) in looks() {
        let mut statement = sql.to_owned();
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
