//! What recurs, and what the checker says when a tick stands twice.

use serde_json::Value;

use crate::store::Store;

const CONFIG: &str = "[handlers.echo]\nbuiltin = \"echo\"\n[[cron]]\nname = \"nightly\"\nkind = \"echo\"\n\
                      cron = \"0 3 * * *\"\ntz = \"Europe/Berlin\"\n";

#[test]
fn crons_are_applied_listed_run_and_removed() {
    let store = Store::new(CONFIG);
    assert_eq!(
        store.ok(&["apply"]),
        "added      echo\nadded      cron nightly\n"
    );
    assert_eq!(
        store.ok(&["cron", "run", "nightly"]),
        "queued 1  cron nightly\n"
    );
    let listed: Value = serde_json::from_str(&store.ok(&["cron", "list", "--json"])).unwrap();
    assert_eq!(
        (&listed["last_job"], &listed["paused"]),
        (&1.into(), &false.into())
    );
    assert_eq!(store.ok(&["cron", "pause", "nightly"]), "paused nightly\n");
    assert!(
        store
            .ok(&["cron", "resume", "nightly"])
            .starts_with("resumed nightly  next 2")
    );
    assert_eq!(
        store.ok(&["cron", "remove", "nightly"]),
        "removed nightly\n"
    );
    assert_eq!(store.run(&["cron", "run", "nightly"]).code, Some(3));
}

#[test]
fn a_tick_that_stands_twice_breaks_an_invariant() {
    let store = Store::new(CONFIG);
    store.ok(&["apply"]);
    store.ok(&["cron", "run", "nightly"]);
    let side = store.database.session();
    side.execute(
        "INSERT INTO rowlock.cron_tick SELECT name, tick + interval '1 day', job_id FROM rowlock.cron_tick",
    )
    .unwrap();
    let broken = store.run(&["verify"]);
    assert_eq!(broken.code, Some(6), "{broken:?}");
    assert!(
        broken
            .stdout
            .contains("FAIL  I6  job 1 stands for 2 ticks of cron nightly\n"),
        "{broken:?}"
    );
    assert!(broken.stdout.contains("ok    I7"), "{broken:?}");
    for statement in [
        "ALTER TABLE rowlock.cron_tick DROP CONSTRAINT cron_tick_pkey",
        "UPDATE rowlock.cron_tick SET job_id = NULL, tick = '2026-01-01T03:00:00Z'",
    ] {
        side.execute(statement).unwrap();
    }
    let broken = store.run(&["verify"]);
    let words = "FAIL  I6  cron nightly has fired its tick of 2026-01-01T03:00:00Z 2 times\n";
    assert!(broken.stdout.contains(words), "{broken:?}");
}
