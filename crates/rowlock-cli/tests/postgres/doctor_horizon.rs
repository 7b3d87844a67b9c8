//! Who pins the horizon, and tables that nobody cleans up: provoked on real servers, mended by the remedy.

use rowlock_testbed::{Postgres, Session, until};

use crate::doctor::{LATER, doctor, mend, of, only, well};
use crate::replica::Replica;
use crate::store::Store;

/// As many transactions as make a slot or a standby be told.
pub const MANY: &str =
    "DO $$ BEGIN FOR n IN 1..10010 LOOP PERFORM txid_current(); COMMIT; END LOOP; END $$";

/// A store on a server of its own: slots, standbys and settings belong to all of it.
fn alone() -> (Postgres, Store) {
    let server = Postgres::start_own();
    let store = Store::on(&server, "[handlers.echo]\nbuiltin = \"echo\"\n");
    store.ok(&["migrate", "up"]);
    store.ok(&["apply"]);
    assert_eq!(doctor(&store, &[]).0, Some(0));
    (server, store)
}

#[test]
fn a_session_that_pins_the_horizon_is_named_with_what_it_costs() {
    let store = well();
    store.ok(&["budget", "set", "analytics", "--max", "1"]);
    let session = Session::open(&format!("{}?application_name=metabase", store.url()));
    let session_pid = session.pid();
    session
        .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; /* class:analytics */ SELECT 1")
        .unwrap();
    store.sql("CREATE TABLE orders AS SELECT n FROM generate_series(1, 1000) AS n");
    store.sql("UPDATE orders SET n = n + 1");
    store.sql("VACUUM orders");
    assert_eq!(of(&doctor(&store, &[]).1, "R030"), None);
    store.sql(&LATER.replace("2 min", "10 min"));
    let (level, what, remedy) = of(&doctor(&store, &[]).1, "R030").unwrap();
    assert_eq!(level, "warn");
    let who = format!(
        "session {} (application \"metabase\", role postgres, class analytics, idle in transaction) has \
         pinned the horizon for 10 m",
        session_pid
    );
    assert!(what.starts_with(&who), "{what} is not {who}");
    // The thousand, and what our own tables have.
    assert!(what.contains("this database has 1,00"), "{what}");
    // A thousand in ten minutes and a moment.
    let an_hour = ["5,9", "6,0"].map(|n| format!(", and at most {n}"));
    assert!(an_hour.iter().any(|n| what.contains(n)), "{what}");
    assert!(what.contains(" dead rows ("), "{what}");
    mend(&store, &remedy);
    assert_eq!(of(&doctor(&store, &[]).1, "R030"), None);
}

#[test]
fn sessions_that_a_role_may_not_see_are_counted() {
    let (_server, store) = alone();
    store.ok(&["migrate", "roles", "--run"]);
    store.sql("CREATE ROLE ada LOGIN; GRANT rowlock_worker TO ada");
    let url = store.url_of("ada");
    let session = store.session();
    session
        .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        .unwrap();
    assert_eq!(doctor(&store, &["--url", &url]).0, Some(0));
    store.sql(MANY);
    let (level, what, remedy) = only(&store, "R030", &["--url", &url]);
    assert_eq!(level, "warn");
    let who = format!(
        "this role may not see who they are or for how long: {}",
        session.pid()
    );
    assert!(what.ends_with(&who), "{what} is not {who}");
    mend(&store, &remedy.replace("ROLE", "ada"));
    // It is seen now, and is young.
    assert_eq!(doctor(&store, &["--url", &url]).0, Some(0));
}

#[test]
fn a_prepared_transaction_that_pins_the_horizon_is_named() {
    let store = well();
    store.sql("BEGIN; CREATE TABLE t (); PREPARE TRANSACTION 'it''s $HOME'");
    store.sql(&LATER.replace("2 min", "10 min"));
    let (_, what, remedy) = of(&doctor(&store, &[]).1, "R030").unwrap();
    let who = "the prepared transaction \"it's $HOME\" of postgres has pinned the horizon for 10 m";
    assert!(what.starts_with(who), "{what}");
    mend(&store, &remedy);
    assert_eq!(of(&doctor(&store, &[]).1, "R030"), None);
}

#[test]
fn an_abandoned_slot_is_named_with_the_log_that_it_keeps() {
    let (_server, store) = alone();
    store.sql("SELECT pg_create_logical_replication_slot('old_replica', 'pgoutput')");
    assert_eq!(doctor(&store, &[]).0, Some(0));
    store.sql(MANY);
    let (level, what, remedy) = only(&store, "R030", &[]);
    assert_eq!(level, "warn");
    let who =
        "the replication slot \"old_replica\" (logical, abandoned) has pinned the horizon for 10,0";
    assert!(what.starts_with(who), "{what}");
    assert!(
        what.contains("rows of the catalogue can't be removed"),
        "{what}"
    );
    assert!(what.contains("of the server's log on disk"), "{what}");
    mend(&store, &remedy);
    assert_eq!(doctor(&store, &[]).0, Some(0));
}

#[test]
fn for_a_standby_that_nobody_here_controls_the_drained_route_is_advised() {
    let (_server, store) = alone();
    let side = store.session();
    let needs = side.value("SELECT txid_current()").parse().unwrap();
    let flushed = side.value("SELECT pg_current_wal_flush_lsn()");
    let standby = Replica::follow(store.database.url(), "reporting", &flushed, needs);
    until("the feedback has arrived", || {
        let fed = "SELECT count(backend_xmin) FROM pg_stat_replication";
        (side.value(fed) == "1").then_some(())
    });
    store.sql(MANY);
    let (_, what, remedy) = only(&store, "R030", &[]);
    let who = "the standby \"reporting\", by hot_standby_feedback, has pinned the horizon for 10,0";
    assert!(what.starts_with(who), "{what}");
    assert!(remedy.contains("hot_standby_feedback = off"), "{remedy}");
    assert!(
        remedy.contains("let the jobs go by a [[drain]]"),
        "{remedy}"
    );
    // By hand: it is another server's setting. Without feedback the standby asks for nothing.
    drop(standby);
    until("it is gone", || {
        let left = "SELECT count(*) FROM pg_stat_replication";
        (side.value(left) == "0").then_some(())
    });
    assert_eq!(doctor(&store, &[]).0, Some(0));
}

#[test]
fn rights_that_were_lost_are_found() {
    let (_server, store) = alone();
    store.ok(&["migrate", "roles", "--run"]);
    store.sql("CREATE ROLE ada LOGIN; GRANT rowlock_worker, pg_monitor TO ada");
    let url = store.url_of("ada");
    assert_eq!(doctor(&store, &["--url", &url]).0, Some(0));
    store.sql("REVOKE DELETE ON rowlock.lane FROM rowlock_worker");
    let (level, what, remedy) = only(&store, "R011", &["--url", &url]);
    assert_eq!(level, "warn");
    assert!(what.contains("it lacks DELETE on lane"), "{what}");
    // Whoever may grant runs it.
    store.remedy(&remedy.replace("ada:PASSWORD@", "postgres@"));
    let (exit, found) = doctor(&store, &["--url", &url]);
    assert_eq!(exit, Some(0), "{remedy}: {found:#?}");
}

#[test]
fn autovacuum_that_is_off_is_found() {
    let (server, store) = alone();
    store.sql("ALTER TABLE rowlock.key SET (autovacuum_enabled = off)");
    let (level, what, remedy) = only(&store, "R032", &[]);
    assert_eq!(level, "warn");
    assert!(
        what.starts_with("autovacuum is off for rowlock.key, which has 0 dead rows"),
        "{what}"
    );
    mend(&store, &remedy);
    assert_eq!(doctor(&store, &[]).0, Some(0));
    server.set("autovacuum = off");
    let (level, what, remedy) = only(&store, "R032", &[]);
    assert_eq!(level, "error");
    assert!(
        what.starts_with("autovacuum is off on this server"),
        "{what}"
    );
    mend(&store, &remedy);
    until("the server has read it", || {
        (doctor(&store, &[]).0 == Some(0)).then_some(())
    });
}

#[test]
fn autovacuum_that_does_not_keep_up_is_found() {
    let (server, store) = alone();
    // It looks once a month.
    server.set("autovacuum_naptime = 2000000");
    store.sql(
        "INSERT INTO rowlock.key SELECT 'echo', n::text, n FROM generate_series(1, 60000) AS n",
    );
    store.sql("DELETE FROM rowlock.key");
    let found = || of(&doctor(&store, &[]).1, "R031");
    let (level, what, remedy) = until("the server has counted", found);
    assert_eq!(level, "warn");
    assert!(
        what.starts_with("rowlock.key has 60,000 dead rows and was never cleaned up"),
        "{what}"
    );
    mend(&store, &remedy);
    until("the server has counted", || found().is_none().then_some(()));
}

#[test]
fn a_pair_without_an_index_is_found() {
    let pair = "[handlers.make]\nbuiltin = \"noop\"\n[[pair]]\nkind = \"make\"\nevery = \"1m\"\nkey = [\"id\"]\n\
                query = \"SELECT id FROM things WHERE state = 'new'\"\n";
    let store = Store::new(pair);
    store.sql("CREATE TABLE things (id bigint PRIMARY KEY, state text)");
    store.sql(
        "INSERT INTO things SELECT n, 'old' FROM generate_series(1, 50000) AS n; ANALYZE things",
    );
    store.ok(&["apply"]);
    store.ok(&["reconcile", "run"]);
    let (level, what, remedy) = only(&store, "R033", &[]);
    assert_eq!(level, "warn");
    assert!(what.starts_with("pair make: a tick "), "{what}");
    assert!(
        remedy.starts_with("psql -c \"CREATE INDEX CONCURRENTLY ON "),
        "{remedy}"
    );
    mend(&store, &remedy);
    assert_eq!(doctor(&store, &[]).0, Some(0));
}
