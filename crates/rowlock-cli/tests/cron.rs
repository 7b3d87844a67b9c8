//! What recurs, as an operator sees it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use serde_json::{Value, json};

const ECHO: &str = "[handlers.echo]\nbuiltin = \"echo\"\n";
const NIGHTLY: &str = "[[cron]]\nname = \"nightly\"\nkind = \"echo\"\ncron = \"0 3 * * *\"\n\
                       tz = \"Europe/Berlin\"\npayload = { of = \"sales\" }\n";
const HOURLY: &str = "[[cron]]\nname = \"hourly\"\nkind = \"echo\"\ncron = \"@hourly\"\n\
                      missed = \"skip\"\n";

fn applied(parts: &[&str]) -> Place {
    let place = Place::with_config(&parts.concat());
    place.ok(&["apply"]);
    place
}

fn rows(place: &Place) -> Vec<Value> {
    let text = place.ok(&["cron", "list", "--json"]);
    let read = |line| serde_json::from_str(line).unwrap();
    text.lines().map(read).collect()
}

#[test]
fn apply_writes_crons_and_names_what_changed_and_what_is_left_over() {
    let place = Place::with_config(&[ECHO, NIGHTLY, HOURLY].concat());
    assert_eq!(
        place.ok(&["apply"]),
        "added      echo\nadded      cron nightly\nadded      cron hourly\n"
    );
    place.write(
        "rowlock.toml",
        [ECHO, &NIGHTLY.replace("0 3", "0 4")].concat(),
    );
    assert_eq!(
        place.ok(&["apply"]),
        "unchanged  echo\n\
         changed    cron nightly  cron: \"0 3 * * *\" -> \"0 4 * * *\"\n\
         cron hourly is not in rowlock.toml any more: it still fires, \
         `rowlock cron remove hourly` ends it\n"
    );
    let lines = place.ok(&["apply", "--json"]);
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    let remedy = "rowlock cron remove hourly";
    assert_eq!(
        last,
        json!({"cron": "hourly", "status": "undeclared", "remedy": remedy})
    );
    assert_eq!(place.ok(&["cron", "remove", "hourly"]), "removed hourly\n");
    assert_eq!(
        place.ok(&["apply"]),
        "unchanged  echo\nunchanged  cron nightly\n"
    );
}

#[test]
fn a_list_shows_what_is_next_and_what_was_last() {
    let place = applied(&[ECHO, NIGHTLY, HOURLY]);
    let first = rows(&place);
    let names: Vec<_> = first.iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["hourly", "nightly"]);
    let mut nightly = first[1].clone();
    assert!(nightly["next_at"].take().is_string());
    let whole = json!({"name": "nightly", "kind": "echo", "cron": "0 3 * * *", "tz": "Europe/Berlin",
        "missed": "one", "payload": {"of": "sales"}, "queue": null, "priority": null,
        "paused": false, "next_at": null, "last_tick": null, "last_job": null});
    assert_eq!(nightly, whole);
    assert_eq!(
        place.ok(&["cron", "run", "nightly"]),
        "queued 1  cron nightly\n"
    );
    assert_eq!(place.ok(&["work", "--once"]), "{\"of\":\"sales\"}\n");
    let again = rows(&place);
    assert_eq!(again[1]["last_job"], 1);
    assert_eq!(again[1]["next_at"], first[1]["next_at"]);
    let text = place.ok(&["cron", "list"]);
    let (heading, rest) = text.split_once('\n').unwrap();
    assert_eq!(
        heading.split_whitespace().collect::<Vec<_>>(),
        [
            "CRON", "KIND", "PATTERN", "ZONE", "MISSED", "NEXT", "LAST", "JOB"
        ]
    );
    let next = first[0]["next_at"].as_str().unwrap();
    assert!(
        rest.starts_with(&format!(
            "hourly   echo  @hourly    UTC            skip    {next}  -"
        )),
        "{text}"
    );
}

#[test]
fn a_cron_is_paused_resumed_and_run_by_hand() {
    let place = applied(&[ECHO, NIGHTLY]);
    assert_eq!(place.ok(&["cron", "pause", "nightly"]), "paused nightly\n");
    assert!(place.ok(&["cron", "list"]).contains("paused"));
    assert_eq!(
        place.json(&["cron", "run", "nightly", "--json"]),
        json!({"cron": "nightly", "id": 1, "status": "queued"})
    );
    let left_over = {
        place.write("rowlock.toml", ECHO);
        place.ok(&["apply"])
    };
    assert!(left_over.contains("it is only paused"), "{left_over}");
    let resumed = place.json(&["cron", "resume", "nightly", "--json"]);
    assert_eq!(resumed["paused"], false);
    assert_eq!(resumed["next_at"], rows(&place)[0]["next_at"]);
}

#[test]
fn an_unknown_cron_is_answered_with_the_nearest_or_with_where_they_come_from() {
    let place = applied(&[ECHO]);
    for verb in ["run", "pause", "resume", "remove"] {
        let finished = place.run(&["cron", verb, "nightly"]);
        assert_eq!(finished.code, Some(3), "{finished:?}");
        assert_eq!(
            finished.stderr,
            "error: cron nightly not found: there are no crons; `rowlock apply` writes those of \
             rowlock.toml\n"
        );
    }
    place.write("rowlock.toml", [ECHO, NIGHTLY, HOURLY].concat());
    place.ok(&["apply"]);
    for verb in ["run", "pause", "resume", "remove"] {
        let finished = place.run(&["cron", verb, "nigthly"]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(3), ""));
        assert_eq!(
            finished.stderr,
            "error: cron nigthly not found: did you mean nightly? `rowlock cron list` shows all\n"
        );
    }
}

#[test]
fn a_cron_that_breaks_a_rule_is_refused_before_anything_is_written() {
    for (bad, words) in [
        (NIGHTLY.replace("0 3 * * *", "0 0 30 2 *"), "never comes"),
        (NIGHTLY.replace("0 3 * * *", "0 0 3 * * *"), "six fields"),
        (
            NIGHTLY.replace("Europe/Berlin", "Europe/Berlni"),
            "Europe/Berlni",
        ),
        ([NIGHTLY, NIGHTLY].concat(), "two [[cron]] called nightly"),
    ] {
        let place = Place::with_config(&[ECHO, &bad].concat());
        let finished = place.run(&["apply"]);
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.stderr.contains(words), "{finished:?}");
        assert!(finished.stderr.contains("nightly"), "{finished:?}");
        assert!(!place.path("rowlock.db").exists());
    }
}

#[test]
fn a_worker_adds_its_crons_and_changes_none() {
    let place = Place::with_config(&[ECHO, NIGHTLY].concat());
    place.ok(&["work", "--once"]);
    assert_eq!(rows(&place)[0]["cron"], "0 3 * * *");
    place.write(
        "rowlock.toml",
        [ECHO, &NIGHTLY.replace("0 3", "0 4")].concat(),
    );
    let finished = place.run(&["work", "--once"]);
    assert_eq!(finished.code, Some(0));
    assert!(
        finished.stderr.contains("the cron table differs"),
        "{finished:?}"
    );
    assert_eq!(rows(&place)[0]["cron"], "0 3 * * *");
}

#[test]
fn a_worker_fires_what_is_due_and_makes_up_for_what_was_missed() {
    let yearly = NIGHTLY.replace("0 3 * * *", "0 0 1 1 *") + "missed = \"one\"\n";
    let place = applied(&[ECHO, &yearly]);
    let file = rusqlite::Connection::open(place.path("rowlock.db")).unwrap();
    let missed = "UPDATE rowlock_cron SET next_at = (unixepoch() - 600) * 1000";
    assert_eq!(file.execute(missed, []).unwrap(), 1);
    let mut worker = place.start(&["work", "-v"]);
    worker.line_with("ticks were missed");
    worker.line_with("settled job=1");
    worker.signal("TERM");
    let (code, _) = worker.wait();
    assert_eq!(code, Some(0));
    let row = rows(&place).remove(0);
    assert_eq!(row["last_job"], 1);
    assert!(
        row["next_at"].as_str().unwrap() > row["last_tick"].as_str().unwrap(),
        "{row}"
    );
    assert_eq!(place.jobs(), 1);
    place.ok(&["verify"]);
    place.ok(&["doctor"]);
}
