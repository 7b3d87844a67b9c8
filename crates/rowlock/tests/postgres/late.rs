//! Transactions that stay open: they keep what they touched, and nothing else.

use std::time::Duration;

use rowlock::JobId;
use rowlock_testbed::Session;

use super::small::{BYTES, Small, drain_all, drain_turning};

pub async fn an_open_transaction_keeps_only_its_own_segment(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    small.turn(&site, &worker, "mail").await;
    let own = small.number("SELECT last_value % 8 FROM rowlock.ring");
    let open = small.own.session();
    open.execute("BEGIN").unwrap();
    let late = open.value("SELECT id FROM rowlock.enqueue('mail')");
    let pid = open.pid().to_string();
    for _ in 0..8 {
        // Bounds pass it by.
        world.advance(Duration::from_secs(2));
        small.turn(&site, &worker, "mail").await;
        small.nobody_waits();
        small.only_these_have_rows(&[own]);
    }
    let seen = small.rotate(&[]);
    let holders = &seen[own].holders;
    assert!(holders[0].ends_with(&format!(" {pid}")), "{seen:?}");
    assert_eq!(small.rotate(holders)[own].did, "blocked");
    open.execute("COMMIT").unwrap();
    let ran = drain_all(&site, &worker, &["mail"], 1).await;
    assert_eq!(ran, [JobId(late.parse().unwrap())]);
    small.turn(&site, &worker, "mail").await;
    small.only_these_have_rows(&[]);
}

pub async fn a_dump_that_stays_open_stalls_nobody_and_is_named(small: Small) {
    let tables = small.side.query(
        "SELECT oid::regclass FROM pg_class
         WHERE relnamespace = 'rowlock'::regnamespace AND relkind IN ('r', 'p')",
    );
    let tables: Vec<String> = tables.unwrap().into_iter().flatten().flatten().collect();
    let dump = small.own.session();
    let counts: Vec<String> = tables
        .iter()
        .map(|table| format!("SELECT count(*) FROM ONLY {table}"))
        .collect();
    let begin = format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE {} IN ACCESS SHARE MODE; {}",
        tables.join(", "),
        counts
            .join(";")
            .replace("ONLY rowlock.history;", "rowlock.history;")
    );
    dump.execute(&begin).unwrap();
    stalls_nobody(&small, &dump).await;
}

pub async fn a_reader_of_all_jobs_stalls_nobody_and_is_named(small: Small) {
    let reader = small.own.session();
    let begin = "BEGIN; DECLARE jobs CURSOR FOR SELECT * FROM rowlock.jobs; FETCH 1 FROM jobs";
    reader.execute(begin).unwrap();
    stalls_nobody(&small, &reader).await;
}

/// Jobs come and go while `reader` has locks on every segment; its end lets the ring go on.
async fn stalls_nobody(small: &Small, reader: &Session) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    for _ in 0..3 {
        small.turn(&site, &worker, "mail").await;
        small.nobody_waits();
    }
    // Every segment was used; the ring stays where it is, and jobs still come and go.
    let generation = small.generation();
    for _ in 0..3 {
        site.stage_many("mail", 500).await;
        drain_turning(&site, &worker, &["mail"], 500).await;
        small.nobody_waits();
    }
    assert_eq!(small.generation(), generation);
    let sizes = small.sizes();
    assert!(sizes.iter().all(|bytes| *bytes > BYTES), "{sizes:?}");
    let seen: Vec<String> = small
        .rotate(&[])
        .into_iter()
        .flat_map(|each| each.holders)
        .collect();
    let pid = format!(" {}", reader.pid());
    let again = small.rotate(&seen);
    let blocked = again.iter().filter(|each| {
        each.did == "blocked" && each.holders.iter().any(|holder| holder.ends_with(&pid))
    });
    assert_eq!(blocked.count(), 3, "{again:?}");
    small.nobody_waits();
    reader.execute("COMMIT").unwrap();
    let current = small.number("SELECT last_value % 8 FROM rowlock.ring");
    site.engine().upkeep().await.unwrap();
    small.only_these_have_rows(&[current]);
    small.turn(&site, &worker, "mail").await;
    small.only_these_have_rows(&[]);
}
