//! Every finding of `doctor` about pairs, provoked on a real file and mended by its remedy.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;

const STATES: &str = "states = { table = \"databases\", column = \"state\", pending = [\"pending\"], \
                      terminal = [\"ready\"] }\n";
const PAIR: &str = "\
[handlers.create_database]
builtin = \"noop\"

[[pair]]
kind = \"create_database\"
every = \"1m\"
query = \"SELECT id FROM databases WHERE state = 'pending'\"
key = [\"id\"]
";

/// A store whose pair has ticked, and found the one row there is.
fn well() -> Place {
    let place = Place::with_config(&format!("{PAIR}{STATES}"));
    place.ok(&["migrate", "up"]);
    place.sql("CREATE TABLE databases (id INTEGER PRIMARY KEY, state TEXT)");
    place.sql("CREATE INDEX waiting ON databases (id) WHERE state = 'pending'");
    place.sql("INSERT INTO databases VALUES (7, 'pending')");
    place.ok(&["apply"]);
    place.ok(&["reconcile", "run"]);
    assert_eq!(place.doctor(&[]).0, Some(0), "{:#?}", place.doctor(&[]));
    place
}

#[test]
fn a_pair_that_nobody_ticks_is_found() {
    let place = well();
    place.sql("UPDATE rowlock_post SET last_success = last_success - 3600000");
    let (level, what, remedy) = place.only("R017", &[]);
    assert_eq!(level, "error");
    assert!(
        what.starts_with("pair create_database is overdue by 5"),
        "{what}"
    );
    assert!(what.contains("ended 1 h"), "{what}");
    assert!(place.ok(&["reconcile", "list"]).contains("overdue by 5"));
    place.mend(&remedy);
}

#[test]
fn a_pair_that_fails_is_found() {
    let place = well();
    place.sql("ALTER TABLE databases RENAME TO moved");
    assert_eq!(place.run(&["reconcile", "run"]).code, Some(1));
    let (level, what, remedy) = place.only("R017", &[]);
    assert_eq!(level, "error");
    assert!(what.contains("fails: "), "{what}");
    assert!(what.contains("no such table: databases"), "{what}");
    place.sql("ALTER TABLE moved RENAME TO databases");
    place.mend(&remedy);
}

#[test]
fn a_switch_that_keeps_a_pair_from_its_rows_is_shouted() {
    let place = well();
    for (target, mode) in [
        ("pair:create_database", "pause"),
        ("kind:create_database", "reject"),
    ] {
        let set = [
            "switch", "set", target, mode, "--reason", "flood", "--by", "ada",
        ];
        place.ok(&set);
        let (level, what, remedy) = place.only("R018", &[]);
        assert_eq!(level, "error");
        assert_eq!(
            what,
            format!(
                "ROWS OF PAIR create_database GET NO JOBS: {target} is set to {mode} by ada: flood"
            )
        );
        assert_eq!(remedy, format!("rowlock switch clear {target}"));
        place.mend(&remedy);
    }
}

#[test]
fn states_that_nobody_claims_are_found() {
    let place = well();
    place.sql("INSERT INTO databases VALUES (8, 'odd'), (9, 'odd'), (10, NULL)");
    assert_eq!(place.run(&["reconcile", "check"]).code, Some(6));
    let (level, what, remedy) = place.only("R019", &[]);
    assert_eq!(level, "warn");
    for word in ["that nobody claims: ", "odd (2)", "NULL (1)"] {
        assert!(what.contains(word), "{what}");
    }
    place.sql("UPDATE databases SET state = 'ready' WHERE id > 7");
    place.mend(&remedy);
}

#[test]
fn a_query_without_an_index_is_found() {
    let place = well();
    place.sql("DROP INDEX waiting");
    let (level, what, remedy) = place.only("R033", &[]);
    assert_eq!(level, "warn");
    assert_eq!(
        what,
        "pair create_database: a tick walks the whole table databases"
    );
    assert!(
        remedy.starts_with("sqlite3 ./rowlock.db 'CREATE INDEX rowlock_hint_"),
        "{remedy}"
    );
    place.mend(&remedy);
}

#[test]
fn keys_that_are_held_back_are_found() {
    let place = well();
    place.ok(&["job", "cancel", "1"]);
    let (level, what, remedy) = place.only("R020", &[]);
    assert_eq!(level, "warn");
    assert!(
        what.starts_with("pair create_database: 1 key is held back"),
        "{what}"
    );
    assert!(
        remedy.starts_with("rowlock reconcile lift create_database --all  # once"),
        "{remedy}"
    );
    let shown = place.ok(&["reconcile", "list", "create_database"]);
    assert!(shown.contains("\n[7]  cancelled  "), "{shown}");
    place.mend(&remedy);
}

#[test]
fn a_pair_that_the_configuration_lacks_is_found() {
    let place = well();
    let other = PAIR.replace("[[pair]]\n", "[[pair]]\nname = \"other\"\n");
    place.write("rowlock.toml", other);
    place.ok(&["apply"]);
    place.ok(&["reconcile", "run"]);
    let (level, what, remedy) = place.only("R021", &[]);
    assert_eq!(level, "warn");
    assert_eq!(
        what,
        "pair create_database is not in the configuration and still ticks"
    );
    place.mend(&remedy);
    // Whoever declares all pairs in Rust has none in the file.
    let (kinds, _) = PAIR.split_once("[[pair]]").unwrap();
    place.write("rowlock.toml", format!("{kinds}key = [\"id\"]\n"));
    assert_eq!(place.doctor(&[]).0, Some(0), "{:#?}", place.doctor(&[]));
}

#[test]
fn a_pair_that_was_not_applied_is_found() {
    let place = well();
    place.write("rowlock.toml", format!("{PAIR}{STATES}jitter = \"30s\"\n"));
    let (level, what, remedy) = place.only("R006", &[]);
    assert_eq!(level, "warn");
    assert_eq!(what, "pair create_database: differs from its row");
    place.mend(&remedy);
    place.ok(&["reconcile", "remove", "create_database"]);
    let (_, what, remedy) = place.only("R006", &[]);
    assert_eq!(what, "pair create_database: has no row yet");
    place.mend(&remedy);
}
