//! `rowlock reconcile` and the pairs of `apply`: what is found, made, refused and told.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use serde_json::{Value, json};

const TABLE: &str = "CREATE TABLE databases (id INTEGER PRIMARY KEY, state TEXT)";
const QUERY: &str = "SELECT id FROM databases WHERE state = 'pending'";

fn pair(query: &str, settings: &str) -> String {
    format!(
        "[handlers.create_database]\nbuiltin = \"noop\"\n[[pair]]\nkind = \"create_database\"\n\
         every = \"1m\"\nkey = [\"id\"]\nquery = \"\"\"{query}\"\"\"\n{settings}\n"
    )
}

/// A file with three databases that wait to be created, and one that is.
fn place(config: &str) -> Place {
    let place = Place::new();
    place.ok(&["migrate", "up"]);
    place.write("rowlock.toml", config);
    place.sql(TABLE);
    place.sql(
        "INSERT INTO databases VALUES (1, 'pending'), (2, 'ready'), (3, 'pending'), (4, 'pending')",
    );
    place
}

fn applied(config: &str) -> Place {
    let place = place(config);
    place.ok(&["apply"]);
    place
}

#[test]
fn rows_that_need_a_job_get_one_and_the_list_says_so() {
    let place = place(&pair(QUERY, ""));
    assert_eq!(
        place.ok(&["apply"]),
        "added      create_database\nadded      pair create_database\n"
    );
    let dry = place.ok(&["reconcile", "run", "--dry-run"]);
    assert_eq!(
        dry,
        "create_database  found 3 · 0 with a live job · 0 held back · would enqueue 3\n  [1] [3] [4]\n"
    );
    assert_eq!(place.jobs(), 0);
    let before = place.json(&["reconcile", "list", "--json"]);
    assert_eq!(
        before["last_success"],
        Value::Null,
        "a dry run leaves no trace"
    );
    place.ok(&["enqueue", "create_database", r#"{"id":3}"#]);
    let ran = place.ok(&["reconcile", "run", "create_database"]);
    assert_eq!(
        ran,
        "create_database  found 3 · 1 with a live job · 0 held back · enqueued 2\n"
    );
    assert_eq!(place.jobs(), 3);
    let text = place.ok(&["reconcile", "list", "--json"]);
    let fields: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
    assert!(
        text.starts_with(r#"{"name":"create_database","kind":"create_database","every":"1m","#)
    );
    for field in [
        "age_seconds",
        "ineffective",
        "held_back",
        "paused",
        "leader",
        "uncovered",
    ] {
        assert!(fields.contains(&field), "{text}");
    }
    let row: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(row["found"], 3);
    assert_eq!(row["enqueued"], 2);
    assert_eq!(row["lost_enqueues"], 2);
    assert_eq!(row["error"], Value::Null);
    assert!(row["last_success"].is_string(), "{row}");
    let table = place.ok(&["reconcile", "list"]);
    assert!(
        table.starts_with("PAIR             KIND             EVERY  LAST"),
        "{table}"
    );
    assert!(table.contains("  ok\n"), "{table}");
    let again = place.json(&["reconcile", "run", "--json"]);
    let expected = json!({
        "name": "create_database", "dry": false, "found": 3, "enqueued": 0, "live": 3,
        "held_back": 0, "rejected": 0, "keys": [],
    });
    assert_eq!(again, expected);
}

#[test]
fn a_pair_that_nobody_knows_is_not_found_and_the_nearest_is_named() {
    let place = applied(&pair(QUERY, ""));
    for verb in [
        &["list", "create_databse"][..],
        &["run", "create_databse"],
        &["check", "create_databse"],
        &["drill", "create_databse", "--yes"],
        &["lift", "create_databse", "--all"],
        &["remove", "create_databse"],
    ] {
        let refused = place.run(&[&["reconcile"], verb].concat());
        assert_eq!(refused.code, Some(3), "{verb:?}: {refused:?}");
        let hint = "did you mean create_database?";
        assert!(refused.stderr.contains(hint), "{verb:?}: {refused:?}");
    }
    let empty = Place::new();
    empty.ok(&["migrate", "up"]);
    let refused = empty.run(&["reconcile", "run", "x"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    for verb in [
        ["reconcile", "list"],
        ["reconcile", "run"],
        ["reconcile", "check"],
    ] {
        let none = empty.run(&verb);
        assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");
        assert!(none.stderr.contains("no pair is declared"), "{none:?}");
    }
}

#[test]
fn a_query_that_fails_ends_with_the_databases_words_until_it_works_again() {
    let place = applied(&pair(QUERY, ""));
    place.sql("ALTER TABLE databases RENAME TO moved");
    for flags in [&[][..], &["--dry-run"]] {
        let failed = place.run(&[&["reconcile", "run"], flags].concat());
        assert_eq!(failed.code, Some(1), "{failed:?}");
        let words = "no such table: databases";
        assert!(failed.stderr.contains(words), "{failed:?}");
    }
    let row = place.json(&["reconcile", "list", "--json"]);
    assert!(
        row["error"].as_str().unwrap().contains("no such table"),
        "{row}"
    );
    assert!(place.ok(&["reconcile", "list"]).contains("failing: "));
    let shown = place.ok(&["reconcile", "list", "create_database"]);
    assert!(shown.contains("\n  error     "), "{shown}");
    let checked = place.run(&["reconcile", "check"]);
    assert_eq!(checked.code, Some(6), "{checked:?}");
    assert!(checked.stdout.contains("no such table"), "{checked:?}");
    place.sql("ALTER TABLE moved RENAME TO databases");
    place.ok(&["reconcile", "run"]);
    let row = place.json(&["reconcile", "list", "--json"]);
    assert_eq!(row["error"], Value::Null);
}

#[test]
fn rows_without_a_key_of_their_own_are_told_and_the_others_get_their_jobs() {
    for (query, word) in [
        ("SELECT nullif(id, 3) AS id FROM databases", "have no key"),
        ("SELECT min(id, 3) AS id FROM databases", "repeat a key"),
    ] {
        let place = applied(&pair(query, ""));
        let failed = place.run(&["reconcile", "run"]);
        assert_eq!(failed.code, Some(1), "{failed:?}");
        assert!(failed.stderr.contains(word), "{failed:?}");
        assert_eq!(place.jobs(), 3, "{query}");
        let row = place.json(&["reconcile", "list", "--json"]);
        assert!(row["error"].as_str().unwrap().contains(word), "{row}");
    }
}

#[test]
fn a_query_that_takes_too_long_is_ended() {
    let endless = "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)
                   SELECT id FROM n WHERE id < 0";
    let place = applied(&pair(endless, "timeout = \"300ms\""));
    let failed = place.run(&["reconcile", "run"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(
        failed.stderr.contains("timed out after 300ms"),
        "{failed:?}"
    );
    place.ok(&["enqueue", "create_database", r#"{"id":1}"#]);
}

#[test]
fn a_pair_that_can_not_be_asked_by_key_is_refused_and_nothing_is_written() {
    for (query, word) in [
        ("SELECT state FROM databases", "id"),
        ("SELECT id FROM nowhere", "no such table: nowhere"),
        ("SELECT id FROM databases LIMIT 3", "LIMIT"),
        ("SELEKT id FROM databases", "one SELECT"),
        ("SELECT id, FROM databases", "syntax error"),
    ] {
        let place = place(&pair(query, ""));
        let refused = place.run(&["apply"]);
        assert_eq!(refused.code, Some(2), "{query}: {refused:?}");
        assert!(refused.stderr.contains(word), "{query}: {refused:?}");
        assert_eq!(refused.stdout, "");
        let count =
            "SELECT (SELECT count(*) FROM rowlock_kind) + (SELECT count(*) FROM rowlock_pair)";
        let rows: i64 = place.file().query_row(count, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{query}");
    }
}

#[test]
fn apply_tells_what_changed_what_is_switched_off_and_what_it_does_not_have() {
    let place = applied(&pair(QUERY, ""));
    let settings =
        "still_needed = false\nclosed_loop = false\nhold_back = \"0s\"\njitter = \"30s\"";
    place.write("rowlock.toml", pair(QUERY, settings));
    let done = place.run(&["apply"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stdout.contains("changed    pair create_database  "),
        "{done:?}"
    );
    assert!(done.stdout.contains("jitter"), "{done:?}");
    for word in [
        "still_needed is off",
        "closed_loop is off",
        "hold_back is off",
    ] {
        assert!(done.stderr.contains(word), "{done:?}");
    }
    let same = place.run(&["apply", "--json"]);
    let lines: Vec<Value> = same
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let expected = json!({ "pair": "create_database", "status": "unchanged", "differences": [] });
    assert_eq!(lines[1], expected);
    place.write("rowlock.toml", "[handlers.echo]\nbuiltin = \"echo\"\n");
    let other = place.run(&["apply"]);
    assert_eq!(other.code, Some(0), "{other:?}");
    let remedy = "still ticks; `rowlock reconcile remove create_database` ends it";
    assert!(other.stdout.contains(remedy), "{other:?}");
    assert_eq!(
        place.ok(&["reconcile", "remove", "create_database"]),
        "removed create_database\n"
    );
    assert_eq!(place.ok(&["apply"]), "unchanged  echo\n");
}

#[test]
fn keys_are_held_back_after_a_cancel_until_they_are_lifted() {
    let place = applied(&pair(QUERY, ""));
    place.ok(&["reconcile", "run"]);
    place.ok(&["job", "cancel", "--kind", "create_database"]);
    let ran = place.json(&["reconcile", "run", "--json"]);
    assert_eq!(
        (&ran["held_back"], &ran["enqueued"]),
        (&json!(3), &json!(0))
    );
    let shown = place.run(&["reconcile", "list", "create_database"]);
    assert!(
        shown.stdout.contains("\n[1]  cancelled  1  lifted\n"),
        "{shown:?}"
    );
    assert!(
        shown
            .stderr
            .contains("`rowlock reconcile lift create_database KEY`"),
        "{shown:?}"
    );
    let row = place.json(&["reconcile", "list", "create_database", "--json"]);
    assert_eq!(row["held_back"], 3);
    let first = json!({ "key": "[1]", "reason": "cancelled", "until": null, "n": 1 });
    assert_eq!(row["keys"][0], first);
    assert_eq!(
        place.ok(&["reconcile", "lift", "create_database", "1"]),
        "lifted 1\n"
    );
    let none = place.run(&["reconcile", "lift", "create_database", "1"]);
    assert_eq!(none.code, Some(3), "{none:?}");
    let rest = place.json(&["reconcile", "lift", "create_database", "--all", "--json"]);
    assert_eq!(rest, json!({ "pair": "create_database", "lifted": 2 }));
    assert_eq!(place.json(&["reconcile", "run", "--json"])["enqueued"], 3);
    for usage in [
        &["lift", "create_database"][..],
        &["lift", "create_database", "1", "--all"],
    ] {
        assert_eq!(place.run(&[&["reconcile"], usage].concat()).code, Some(2));
    }
}

#[test]
fn what_is_removed_and_still_declared_is_warned_of() {
    let place = applied(&pair(QUERY, ""));
    let removed = place.run(&["reconcile", "remove", "create_database"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(
        removed.stderr.contains("the configuration still has"),
        "{removed:?}"
    );
    let gone = place.run(&["reconcile", "remove", "create_database"]);
    assert_eq!(gone.code, Some(3), "{gone:?}");
    assert!(
        gone.stderr.contains("`rowlock apply` writes it"),
        "{gone:?}"
    );
}

#[test]
fn a_missing_index_and_states_that_nobody_claims_are_found_and_mended() {
    let states = "states = { table = \"databases\", column = \"state\", pending = [\"pending\", \"new\"], \
                  terminal = [\"ready\"] }";
    let place = applied(&pair(QUERY, states));
    place.sql("INSERT INTO databases VALUES (5, 'odd'), (6, 'odd'), (7, 'new')");
    let found = place.run(&["reconcile", "check"]);
    assert_eq!(found.code, Some(6), "{found:?}");
    for word in [
        "2 rows of databases in state odd, which nobody claims",
        "1 row of databases in state new, which is declared pending",
        "remedy: CREATE INDEX ",
    ] {
        assert!(found.stdout.contains(word), "{word}: {found:?}");
    }
    let row = place.json(&["reconcile", "list", "--json"]);
    assert_eq!(row["uncovered"], json!([{ "state": "odd", "rows": 2 }]));
    let lines = place
        .run(&["reconcile", "check", "create_database", "--json"])
        .stdout;
    for line in lines.lines() {
        let remark: Value = serde_json::from_str(line).unwrap();
        let fields: Vec<_> = remark.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["name", "remedy", "what"], "{remark}");
        let remedy = remark["remedy"].as_str().unwrap_or_default();
        if remedy.starts_with("CREATE INDEX") {
            place.sql(&remedy.replace("CREATE INDEX ", "CREATE INDEX IF NOT EXISTS "));
        }
    }
    place.sql("UPDATE databases SET state = 'ready' WHERE id > 4");
    let well = place.run(&["reconcile", "check"]);
    assert_eq!(
        (well.code, well.stdout.as_str()),
        (Some(0), "ok    create_database\n")
    );
    let row = place.json(&["reconcile", "list", "--json"]);
    assert_eq!(row["uncovered"], json!([]));
}

#[test]
fn a_pair_is_checked_before_it_is_written() {
    let place = place(&pair(QUERY, ""));
    let found = place.run(&["reconcile", "check"]);
    assert_eq!(found.code, Some(6), "{found:?}");
    assert!(found.stdout.contains("CREATE INDEX"), "{found:?}");
    assert_eq!(place.ok(&["reconcile", "list", "--json"]), "");
}

#[test]
fn rows_of_another_file_get_their_jobs_wherever_the_configuration_is() {
    let place = Place::new();
    std::fs::create_dir(place.path("deploy")).unwrap();
    let other = rusqlite::Connection::open(place.path("deploy/app.db")).unwrap();
    other.execute_batch(TABLE).unwrap();
    other
        .execute_batch("INSERT INTO databases VALUES (1, 'pending'), (2, 'ready')")
        .unwrap();
    place.write(
        "deploy/rowlock.toml",
        pair(QUERY, "source = \"sqlite:app.db\""),
    );
    let config = ["--config", "deploy/rowlock.toml"];
    place.ok(&[&["apply"], &config[..]].concat());
    let ran = place.json(&[&["reconcile", "run", "--json"], &config[..]].concat());
    assert_eq!((&ran["found"], &ran["enqueued"]), (&json!(1), &json!(1)));
    let checked = place.run(&[&["reconcile", "check"], &config[..]].concat());
    assert_eq!(checked.code, Some(6), "{checked:?}");
    assert!(checked.stdout.contains("CREATE INDEX"), "{checked:?}");
    let names: Vec<String> = other
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(names, ["databases"], "nothing of ours is in it");
}
