//! Pairs, switches and the drill on a server.

use rowlock_testbed::until;
use serde_json::{Value, json};

use crate::store::Store;

const QUERY: &str = "SELECT id FROM databases WHERE state = 'pending'";

fn pair(query: &str, settings: &str) -> String {
    format!(
        "[worker]\nconcurrency = 1\n[handlers.create_database]\nbuiltin = \"noop\"\n[[pair]]\n\
         kind = \"create_database\"\nevery = \"1h\"\nkey = [\"id\"]\nquery = \"{query}\"\n{settings}\n"
    )
}

/// A store beside a table with so many rows that wait.
fn store(config: &str, rows: u32) -> Store {
    let store = Store::new(config);
    store.sql("CREATE TABLE databases (id bigint PRIMARY KEY, state text)");
    store.sql(&format!(
        "INSERT INTO databases SELECT n, 'pending' FROM generate_series(1, {rows}) AS n"
    ));
    store
}

fn applied(config: &str, rows: u32) -> Store {
    let store = store(config, rows);
    store.ok(&["apply"]);
    store
}

#[test]
fn rows_get_jobs_and_a_queue_that_was_thrown_away_comes_back() {
    let store = applied(&pair(QUERY, ""), 1_200);
    let dry = store.json(&["reconcile", "run", "--dry-run", "--json"]);
    assert_eq!(
        (&dry["found"], &dry["enqueued"]),
        (&json!(1200), &json!(1200))
    );
    assert_eq!(store.json(&["stats", "--json"])["pending"], 0);
    store.ok(&["reconcile", "run"]);
    assert_eq!(store.json(&["stats", "--json"])["pending"], 1200);
    store.ok(&["enqueue", "create_database", r#"{"id":9999}"#]);
    let refused = store.run(&["reconcile", "drill", "create_database"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("1,200 rows still ask for them; 1 job that no row asks for stays"),
        "{refused:?}"
    );
    let done = store.ok(&["reconcile", "drill", "create_database", "--yes"]);
    assert!(
        done.contains("(1,200 of 1,200, one tick) · nothing lost"),
        "{done}"
    );
    assert_eq!(store.json(&["stats", "--json"])["pending"], 1201);
    let row = store.json(&["reconcile", "list", "--json"]);
    assert_eq!(row["lost_enqueues"], 2400);
}

#[test]
fn a_worker_derives_by_itself_and_done_without_an_effect_is_held_back() {
    let store = applied(&pair(QUERY, ""), 3);
    let mut worker = store.start(&["work"]);
    worker.line_with("  scheduler  1 pair");
    until("every row's job", || {
        let stats = store.json(&["stats", "--json"]);
        (stats["completed"] == 3).then_some(())
    });
    store.ok(&["reconcile", "run"]);
    let row = until("rows that are held back", || {
        let row = store.json(&["reconcile", "list", "create_database", "--json"]);
        Some(row).filter(|row| row["held_back"] == 3)
    });
    assert_eq!(row["ineffective"], 3);
    assert_eq!(row["keys"][0]["reason"], "ineffective");
    assert!(row["leader"].is_string(), "{row}");
    let ran = store.json(&["reconcile", "run", "--json"]);
    assert_eq!(
        (&ran["held_back"], &ran["enqueued"]),
        (&json!(3), &json!(0))
    );
    assert_eq!(
        store.ok(&["reconcile", "lift", "create_database", "--all"]),
        "lifted 3\n"
    );
    worker.signal("TERM");
    assert_eq!(worker.wait().0, Some(0));
}

#[test]
fn queries_that_fail_are_told_in_the_servers_words() {
    for (query, word) in [
        ("SELECT state FROM databases", "id"),
        (
            "SELECT id FROM nowhere",
            "relation \\\"nowhere\\\" does not exist",
        ),
        ("SELECT id, FROM databases", "syntax error"),
    ] {
        let store = store(&pair(query, ""), 0);
        let refused = store.run(&["apply"]);
        assert_eq!(refused.code, Some(2), "{query}: {refused:?}");
        let word = word.replace('\\', "");
        assert!(refused.stderr.contains(&word), "{query}: {refused:?}");
        assert_eq!(store.ok(&["reconcile", "list", "--json"]), "");
    }
    let store = applied(&pair(QUERY, ""), 1);
    store.sql("DROP TABLE databases");
    let failed = store.run(&["reconcile", "run"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.contains("does not exist"), "{failed:?}");
    let row = store.json(&["reconcile", "list", "--json"]);
    assert!(
        row["error"].as_str().unwrap().contains("does not exist"),
        "{row}"
    );
    let slow = "SELECT id FROM databases, pg_sleep(60)";
    let store = applied(&pair(slow, "timeout = \"300ms\""), 1);
    let failed = store.run(&["reconcile", "run"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(
        failed.stderr.contains("timed out after 300ms"),
        "{failed:?}"
    );
}

#[test]
fn a_missing_index_and_states_that_nobody_claims_are_found_and_mended() {
    let states = "states = { table = \"databases\", column = \"state\", pending = [\"pending\"], \
                  terminal = [\"ready\"] }";
    let query = "SELECT id FROM (SELECT id, state FROM databases) AS d WHERE state = 'pending'";
    let store = Store::new(&pair(query, states));
    store.sql("CREATE TABLE databases (id bigint, state text)");
    store.sql("INSERT INTO databases VALUES (1, 'pending'), (2, 'odd'), (3, 'odd')");
    store.ok(&["apply"]);
    let found = store.run(&["reconcile", "check", "--json"]);
    assert_eq!(found.code, Some(6), "{found:?}");
    let remarks: Vec<Value> = found
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let text = |each: &Value, field: &str| each[field].as_str().unwrap_or_default().to_owned();
    let what: Vec<_> = remarks.iter().map(|each| text(each, "what")).collect();
    let odd = "2 rows of databases in state odd, which nobody claims";
    assert!(what.iter().any(|what| what == odd), "{what:?}");
    let mut indexes: Vec<_> = remarks.iter().map(|each| text(each, "remedy")).collect();
    indexes.retain(|remedy| remedy.starts_with("CREATE INDEX"));
    indexes.dedup();
    assert!(!indexes.is_empty(), "{remarks:#?}");
    let doctor = store.run(&["doctor", "--json"]);
    assert!(
        doctor.stdout.contains(r#""code":"R019","level":"warn""#),
        "{doctor:?}"
    );
    for index in indexes {
        store.sql(&index);
    }
    store.sql("UPDATE databases SET state = 'ready' WHERE id > 1");
    let well = store.run(&["reconcile", "check"]);
    assert_eq!(
        (well.code, well.stdout.as_str()),
        (Some(0), "ok    create_database\n")
    );
}

#[test]
fn switches_count_what_they_refuse() {
    let store = applied(&pair(QUERY, ""), 2);
    let set = [
        "switch",
        "set",
        "kind:create_database",
        "reject",
        "--reason",
        "flood",
    ];
    let done = store.run(&set);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains("THE PAIR create_database"), "{done:?}");
    store.ok(&["enqueue", "create_database", r#"{"id":9}"#]);
    store.ok(&["reconcile", "run"]);
    let on = store.json(&["switch", "list", "--json"]);
    assert_eq!(on["rejected"], 3, "{on}");
    let doctor = store.run(&["doctor", "--json"]);
    assert!(
        doctor.stdout.contains(r#""code":"R018","level":"error""#),
        "{doctor:?}"
    );
    store.ok(&["switch", "clear", "kind:create_database"]);
    assert_eq!(store.json(&["reconcile", "run", "--json"])["enqueued"], 2);
}

#[test]
fn rows_of_another_database_get_their_jobs_and_its_password_is_not_kept() {
    let other = store("", 2);
    let settings = format!("source = \"{}\"", other.url());
    let store = Store::new(&pair(QUERY, &settings));
    store.ok(&["apply"]);
    let ran = store.json(&["reconcile", "run", "--json"]);
    assert_eq!((&ran["found"], &ran["enqueued"]), (&json!(2), &json!(2)));
    let kept = "SELECT count(*) FROM rowlock.pair WHERE declared::text LIKE '%c4nary%'";
    assert_eq!(store.session().value(kept), "0");
    let doctor = store.run(&["doctor"]);
    assert_eq!(doctor.code, Some(6), "{doctor:?}");
    let remedy = doctor
        .stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("remedy: "));
    other.remedy(remedy.unwrap());
    let doctor = store.run(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    store.place.write("rowlock.toml", "");
    let doctor = store.run(&["doctor"]);
    assert_eq!(doctor.stderr, "", "{doctor:?}");
    let refused = store.run(&["reconcile", "run"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--config"), "{refused:?}");
    assert_eq!(store.run(&["reconcile", "list"]).code, Some(0));
}
