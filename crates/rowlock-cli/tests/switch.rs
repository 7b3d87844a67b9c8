//! `rowlock switch`: what is stopped, what is refused, and what is shouted.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use serde_json::{Value, json};

const PAIR: &str = "\
[handlers.echo]
builtin = \"echo\"

[[pair]]
kind = \"create_database\"
every = \"1m\"
query = \"SELECT id FROM databases WHERE state = 'pending'\"
key = [\"id\"]
";

/// A kind that anybody enqueues, and one that a pair derives.
fn place() -> Place {
    let place = Place::with_config(PAIR);
    place.ok(&["migrate", "up"]);
    place.sql("CREATE TABLE databases (id INTEGER PRIMARY KEY, state TEXT NOT NULL)");
    place.ok(&["apply"]);
    place
}

fn list(place: &Place) -> Vec<Value> {
    let text = place.ok(&["switch", "list", "--json"]);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_switch_is_set_listed_with_who_and_why_and_cleared() {
    let place = place();
    assert_eq!(place.run(&["switch", "list"]).stderr, "no switch is on\n");
    let set = place.run(&[
        "switch",
        "set",
        "kind:echo",
        "hold",
        "--reason",
        "wrong text",
        "--by",
        "ada",
        "--until",
        "2100-01-01T00:00:00Z",
    ]);
    assert_eq!(set.code, Some(0), "{set:?}");
    assert_eq!(set.stderr, "");
    assert_eq!(
        set.stdout,
        "kind:echo is set to hold until 2100-01-01T00:00:00Z\n"
    );
    assert!(place.ok(&["enqueue", "echo"]).starts_with("held 1 "));
    place.ok(&["work", "--once", "--quiet"]);
    let on = list(&place);
    let expected = json!({
        "target": "kind", "name": "echo", "mode": "hold", "reason": "wrong text", "by": "ada",
        "until": "2100-01-01T00:00:00Z", "rejected": 0, "waiting": 1,
    });
    assert_eq!(on, [expected]);
    let table = place.ok(&["switch", "list"]);
    assert!(table.starts_with("TARGET     MODE  UNTIL "), "{table}");
    assert!(table.contains("  ada  wrong text\n"), "{table}");
    assert_eq!(
        place.ok(&["switch", "clear", "kind:echo"]),
        "cleared kind:echo\n"
    );
    assert_eq!(list(&place), Vec::<Value>::new());
    assert_eq!(place.ok(&["work", "--once", "--quiet"]), "{}\n");
    let again = place.run(&["switch", "clear", "kind:echo"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    assert!(again.stderr.contains("`rowlock switch list`"), "{again:?}");
}

#[test]
fn a_queue_that_is_paused_waits_and_its_jobs_are_counted() {
    let place = place();
    place.ok(&["enqueue", "echo"]);
    let set = [
        "switch",
        "set",
        "queue:default",
        "pause",
        "--reason",
        "x",
        "--for",
        "2h",
    ];
    let answer = place.json(&[&set[..], &["--json"]].concat());
    assert_eq!(answer["mode"], "pause");
    assert!(answer["until"].is_string(), "{answer}");
    assert_eq!(place.ok(&["work", "--once", "--quiet"]), "");
    assert_eq!(list(&place)[0]["waiting"], 1);
    let cleared = place.json(&["switch", "clear", "queue:default", "--json"]);
    assert_eq!(
        cleared,
        json!({ "target": "queue", "name": "default", "mode": null })
    );
    assert_eq!(place.ok(&["work", "--once", "--quiet"]), "{}\n");
}

#[test]
fn what_would_be_lost_is_rejected_only_on_purpose() {
    let place = place();
    for target in ["kind:echo", "queue:default", "kind:nobody"] {
        let set = ["switch", "set", target, "reject", "--reason", "flood"];
        let refused = place.run(&set);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        for word in ["is lost", " hold --reason", "--lose-jobs"] {
            assert!(refused.stderr.contains(word), "{refused:?}");
        }
    }
    assert_eq!(list(&place), Vec::<Value>::new());
    let set = ["switch", "set", "kind:echo", "reject", "--reason", "flood"];
    place.ok(&[&set[..], &["--lose-jobs"]].concat());
    for _ in 0..3 {
        assert!(place.ok(&["enqueue", "echo"]).starts_with("rejected"));
    }
    assert_eq!(list(&place)[0]["rejected"], 3);
    assert_eq!(place.jobs(), 0);
}

#[test]
fn a_kind_that_a_pair_derives_may_be_rejected_and_it_is_shouted() {
    let place = place();
    place.sql("INSERT INTO databases VALUES (7, 'pending')");
    let set = [
        "switch",
        "set",
        "kind:create_database",
        "reject",
        "--reason",
        "flood",
    ];
    let done = place.run(&[&set[..], &["--for", "1h"]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    for word in [
        "THE PAIR create_database",
        "pile up until 2",
        "`rowlock switch clear kind:",
    ] {
        assert!(done.stderr.contains(word), "{done:?}");
    }
    let ran = place.json(&["reconcile", "run", "--json"]);
    assert_eq!((&ran["rejected"], &ran["enqueued"]), (&json!(1), &json!(0)));
    assert_eq!(list(&place)[0]["rejected"], 1);
    place.ok(&["switch", "clear", "kind:create_database"]);
    assert_eq!(place.json(&["reconcile", "run", "--json"])["enqueued"], 1);
}

#[test]
fn a_pair_that_is_paused_does_not_tick_and_it_is_shouted() {
    let place = place();
    place.sql("INSERT INTO databases VALUES (7, 'pending')");
    let set = [
        "switch",
        "set",
        "pair:create_database",
        "pause",
        "--reason",
        "migration",
    ];
    let done = place.run(&set);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stderr.contains("THE PAIR create_database is stopped"),
        "{done:?}"
    );
    assert_eq!(list(&place)[0]["waiting"], Value::Null);
    assert_eq!(place.json(&["reconcile", "list", "--json"])["paused"], true);
    let table = place.ok(&["reconcile", "list"]);
    assert!(table.contains("paused: migration\n"), "{table}");
    let named = place.run(&["reconcile", "run", "create_database"]);
    assert_eq!(named.code, Some(7), "{named:?}");
    assert!(
        named
            .stderr
            .contains("`rowlock switch clear pair:create_database`"),
        "{named:?}"
    );
    let all = place.run(&["reconcile", "run"]);
    assert_eq!((all.code, all.stdout.as_str()), (Some(0), ""), "{all:?}");
    assert!(all.stderr.contains("is paused (migration)"), "{all:?}");
    assert_eq!(place.jobs(), 0);
    let dry = place.json(&["reconcile", "run", "--dry-run", "--json"]);
    assert_eq!(dry["enqueued"], 1);
    place.ok(&["switch", "clear", "pair:create_database"]);
    place.ok(&["reconcile", "run"]);
    assert_eq!(place.jobs(), 1);
}

#[test]
fn what_makes_no_sense_is_refused_with_the_form() {
    let place = place();
    let because = ["--reason", "x"];
    for (set, code, word) in [
        (vec!["kind:echo", "hold"], 2, "--reason"),
        (vec!["kind:echo", "hold", "--reason", " "], 2, "say why"),
        ([&["echo", "hold"], &because[..]].concat(), 2, "kind:NAME"),
        (
            [&["job:echo", "hold"], &because[..]].concat(),
            2,
            "kind:NAME",
        ),
        (
            [&["kind:a b", "hold"], &because[..]].concat(),
            2,
            "not a valid name",
        ),
        (
            [&["kind:echo", "stop"], &because[..]].concat(),
            2,
            "reject, hold or pause",
        ),
        (
            [&["pair:create_database", "hold"], &because[..]].concat(),
            2,
            "can only be paused",
        ),
        (
            [&["pair:create_databas", "pause"], &because[..]].concat(),
            3,
            "create_database?",
        ),
        (
            [&["kind:echo", "hold", "--for", "soon"], &because[..]].concat(),
            2,
            "not a duration",
        ),
        (
            [
                &["kind:echo", "hold", "--until", "2001-01-01T00:00:00Z"],
                &because[..],
            ]
            .concat(),
            2,
            "is over already",
        ),
        (
            [
                &[
                    "kind:echo",
                    "hold",
                    "--for",
                    "1h",
                    "--until",
                    "2100-01-01T00:00:00Z",
                ],
                &because[..],
            ]
            .concat(),
            2,
            "cannot be used with",
        ),
    ] {
        let refused = place.run(&[&["switch", "set"], &set[..]].concat());
        assert_eq!(refused.code, Some(code), "{set:?}: {refused:?}");
        assert!(refused.stderr.contains(word), "{set:?}: {refused:?}");
    }
    assert_eq!(list(&place), Vec::<Value>::new());
    for target in ["kind:ecko", "queue:mial"] {
        let done = place.run(&["switch", "set", target, "hold", "--reason", "x"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.stderr.contains("check the name"), "{done:?}");
    }
    assert_eq!(list(&place).len(), 2);
}
