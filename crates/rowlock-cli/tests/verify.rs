//! The checker's own test: each invariant broken once, and reported by exactly that one.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use std::io::{Seek, SeekFrom, Write};

use place::Place;
use rusqlite::Connection;
use serde_json::{Value, json};

const LOGS: [&str; 4] = ["--told", "told.ndjson", "--ran", "ran.ndjson"];

/// Three jobs, enqueued and done, with both logs.
fn worked() -> Place {
    let place = Place::with_config("[handlers.noop]\nbuiltin = \"noop\"\n");
    place.ok(&["enqueue", "noop", "--unique", "a", "--told", "told.ndjson"]);
    place.write("jobs.ndjson", "{\"kind\":\"noop\"}\n{\"kind\":\"noop\"}\n");
    let bulk = ["enqueue", "--from", "jobs.ndjson", "--told", "told.ndjson"];
    place.ok(&bulk);
    work(&place);
    place
}

fn work(place: &Place) {
    place.ok(&["work", "--once", "--quiet", "--ran", "ran.ndjson"]);
}

fn verify(place: &Place, flags: &[&str]) -> (Option<i32>, Vec<Value>) {
    let finished = place.run(&[&["verify", "--json"], flags].concat());
    let lines = finished.stdout.lines();
    let checked = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(finished.stderr, "", "{checked:#?}");
    (finished.code, checked)
}

/// What the only broken invariant says, as people see it.
fn only(place: &Place, invariant: &str, flags: &[&str]) -> String {
    let (code, checked) = verify(place, flags);
    assert_eq!(code, Some(6), "{checked:#?}");
    let bad: Vec<_> = checked.iter().filter(|each| each["ok"] != true).collect();
    assert_eq!(bad.len(), 1, "{checked:#?}");
    assert_eq!(bad[0]["invariant"], invariant, "{checked:#?}");
    let text = place.run(&[&["verify"], flags].concat()).stdout;
    let line = text.lines().find_map(|line| line.strip_prefix("FAIL  "));
    line.unwrap().to_owned()
}

fn append(place: &Place, log: &str, line: &Value) {
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(place.path(log))
        .unwrap();
    writeln!(file, "{line}").unwrap();
}

fn told(place: &Place, id: i64, ok: bool) {
    let t = "2026-01-01T00:00:00Z";
    let line = json!({"t": t, "op": "enqueue", "id": id, "unique_key": null, "ok": ok});
    append(place, "told.ndjson", &line);
}

/// A whole attempt in the ran log.
fn ran(place: &Place, id: i64, token: i64, worker: &str, end: Option<(&str, bool)>) {
    let mut line = json!({"t": "2026-01-01T00:00:00Z", "id": id, "token": token, "attempt": 1,
        "worker": worker, "event": "start", "outcome": null, "accepted": null});
    append(place, "ran.ndjson", &line);
    if let Some((outcome, accepted)) = end {
        line["event"] = json!("end");
        line["outcome"] = json!(outcome);
        line["accepted"] = json!(accepted);
        append(place, "ran.ndjson", &line);
    }
}

fn store(place: &Place, statement: &str) {
    let store = Connection::open(place.path("rowlock.db")).unwrap();
    assert_eq!(store.execute(statement, []).unwrap(), 1, "{statement}");
}

#[test]
fn what_went_well_is_clean_in_every_invariant() {
    let place = worked();
    let (code, checked) = verify(&place, &LOGS);
    assert_eq!(code, Some(0), "{checked:#?}");
    let names: Vec<_> = checked.iter().map(|each| &each["invariant"]).collect();
    assert_eq!(names, ["I1", "I2", "I3", "I4", "I5", "I6", "I7"]);
    let text = place.ok(&["verify"]);
    let names: Vec<_> = text.lines().map(|line| line.get(..8).unwrap()).collect();
    assert_eq!(names, ["ok    I3", "ok    I4", "ok    I6", "ok    I7"]);
}

#[test]
fn the_logs_have_the_documented_form() {
    let place = worked();
    let log = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    let first = |name: &str| -> Value {
        let text = log(name);
        serde_json::from_str(text.lines().next().unwrap()).unwrap()
    };
    let mut line = first("told.ndjson");
    assert!(line["t"].take().is_string());
    let form = json!({"t": null, "op": "enqueue", "id": 1, "unique_key": "a", "ok": true});
    assert_eq!(line, form);
    let mut line = first("ran.ndjson");
    assert!(line["t"].take().is_string() && line["worker"].take().is_string());
    assert!(line["token"].take().is_i64());
    // They run side by side: any of them may be the first.
    assert!(line["id"].take().is_i64());
    let form = json!({"t": null, "id": null, "token": null, "attempt": 1, "worker": null,
        "event": "start", "outcome": null, "accepted": null});
    assert_eq!(line, form);
    let ends = log("ran.ndjson")
        .matches("\"outcome\":\"done\",\"accepted\":true")
        .count();
    assert_eq!(ends, 3);
}

#[test]
fn i1_an_acknowledged_job_that_is_missing() {
    let place = worked();
    told(&place, 99, true);
    let said = only(&place, "I1", &LOGS);
    assert_eq!(said, "I1  acknowledged and missing: 1 job: 99");
    only(&place, "I1", &LOGS[..2]);
}

#[test]
fn i1_is_content_with_a_job_that_ended_and_was_deleted() {
    let place = worked();
    place.ok(&["job", "delete", "1"]);
    assert_eq!(verify(&place, &LOGS).0, Some(0));
    place.ok(&["enqueue", "noop", "--told", "told.ndjson"]);
    place.ok(&["job", "delete", "4", "--told", "told.ndjson"]);
    assert_eq!(verify(&place, &LOGS).0, Some(0));
}

#[test]
fn i1_is_content_with_a_job_that_was_called_off_and_is_gone() {
    let place = worked();
    place.ok(&["enqueue", "noop", "--told", "told.ndjson"]);
    place.ok(&["job", "cancel", "4", "--told", "told.ndjson"]);
    let log = std::fs::read_to_string(place.path("told.ndjson")).unwrap();
    let line: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!((&line["op"], &line["id"]), (&json!("cancel"), &json!(4)));
    // As if its retention were over.
    place.ok(&["job", "delete", "4"]);
    assert_eq!(verify(&place, &LOGS).0, Some(0));
}

#[test]
fn i2_is_content_with_a_job_that_began_and_was_deleted() {
    let place = worked();
    // Somebody without a log enqueued it; its worker died, and then it was removed.
    place.ok(&["enqueue", "noop"]);
    ran(&place, 4, 5, "b", None);
    place.ok(&["job", "delete", "4", "--told", "told.ndjson"]);
    assert_eq!(verify(&place, &LOGS).0, Some(0));
}

#[test]
fn i2_a_job_that_was_rolled_back_and_ran() {
    let place = worked();
    place.ok(&["enqueue", "noop"]);
    told(&place, 4, false);
    assert_eq!(verify(&place, &LOGS).0, Some(0));
    work(&place);
    let said = only(&place, "I2", &LOGS);
    assert_eq!(said, "I2  rolled back, and ran: 1 job: 4");
}

#[test]
fn i2_a_job_that_ran_and_nobody_staged() {
    let place = worked();
    ran(&place, 77, 5, "b", None);
    let said = only(&place, "I2", &LOGS);
    assert_eq!(said, "I2  ran, and nobody staged it: 1 job: 77");
}

#[test]
fn i3_a_second_accepted_outcome() {
    let place = worked();
    ran(&place, 1, 5, "b", Some(("done", true)));
    ran(&place, 2, 6, "b", Some(("retry", true)));
    // A late one that was refused is what happens when a worker wakes up.
    ran(&place, 3, 7, "b", Some(("done", false)));
    let said = only(&place, "I3", &LOGS);
    let found = "I3  more than one accepted outcome: 1 job: 1; went on after its end: 1 job: 2";
    assert_eq!(said, found);
}

#[test]
fn i3_a_store_that_disagrees_with_the_accepted_outcome() {
    let place = worked();
    store(
        &place,
        "UPDATE rowlock_history SET state = 'failed' WHERE id = 2",
    );
    store(
        &place,
        "UPDATE rowlock_tally SET n = 2 WHERE state = 'completed'",
    );
    let tally = "INSERT INTO rowlock_tally SELECT expires_at / 86400000, queue, state, 1 \
                 FROM rowlock_history WHERE id = 2";
    store(&place, tally);
    let said = only(&place, "I3", &LOGS);
    let found = "I3  the store and the accepted outcome disagree: 1 job: 2";
    assert_eq!(said, found);
}

#[test]
fn i3_a_job_that_is_live_and_ended() {
    let place = worked();
    let twice = "INSERT INTO rowlock_job (id, kind, queue, priority, state, max_attempts, \
                 scheduled_at, created_at, unique_until, payload) \
                 VALUES (2, 'noop', 'default', 0, 'pending', 5, 0, 0, 'finished', '{}')";
    store(&place, twice);
    let said = only(&place, "I3", &[]);
    assert_eq!(said, "I3  both live and ended: 1 job: 2");
}

#[test]
fn i3_a_redrive_that_was_told_allows_another_outcome() {
    let place = worked();
    place.ok(&["job", "retry", "2", "--told", "told.ndjson"]);
    work(&place);
    assert_eq!(verify(&place, &LOGS).0, Some(0));
    place.ok(&["job", "retry", "3"]);
    work(&place);
    let said = only(&place, "I3", &LOGS);
    assert_eq!(said, "I3  more than one accepted outcome: 1 job: 3");
}

#[test]
fn i4_a_token_that_two_workers_used() {
    let place = worked();
    ran(&place, 1, 5, "b", None);
    ran(&place, 2, 5, "c", None);
    let said = only(&place, "I4", &LOGS);
    assert_eq!(said, "I4  two workers used the same token: 1 job: 2");
}

#[test]
fn i4_a_job_that_began_twice_under_one_token() {
    let place = worked();
    ran(&place, 1, 5, "b", None);
    ran(&place, 1, 5, "b", None);
    let said = only(&place, "I4", &LOGS);
    assert_eq!(said, "I4  begun twice under one token: 1 job: 1");
}

#[test]
fn i4_more_attempts_than_a_job_may_have() {
    let place = worked();
    store(
        &place,
        "UPDATE rowlock_history SET attempt = 6 WHERE id = 3",
    );
    let said = only(&place, "I4", &[]);
    assert_eq!(said, "I4  more attempts than it may have: 1 job: 3");
}

#[test]
fn i4_a_running_job_in_nobodys_hands() {
    let place = worked();
    place.ok(&["enqueue", "noop"]);
    store(
        &place,
        "UPDATE rowlock_job SET state = 'processing' WHERE id = 4",
    );
    let said = only(&place, "I4", &[]);
    assert_eq!(said, "I4  processing in nobody's hands: 1 job: 4");
}

#[test]
fn i5_a_job_that_still_waits() {
    let place = worked();
    let later = ["enqueue", "noop", "--in", "1h", "--told", "told.ndjson"];
    place.ok(&later);
    assert_eq!(verify(&place, &LOGS).0, Some(0));
    place.ok(&["enqueue", "noop", "--told", "told.ndjson"]);
    let said = only(&place, "I5", &LOGS);
    assert_eq!(said, "I5  still waiting: 1 job: 5");
}

/// A cron that was run by hand.
fn ticked() -> Place {
    let place = worked();
    let cron = "[handlers.noop]\nbuiltin = \"noop\"\n[[cron]]\nname = \"nightly\"\nkind = \"noop\"\n\
                cron = \"0 3 * * *\"\n";
    place.write("rowlock.toml", cron);
    place.ok(&["apply"]);
    place.ok(&["cron", "run", "nightly"]);
    place
}

#[test]
fn i6_a_job_of_two_ticks() {
    let place = ticked();
    store(
        &place,
        "INSERT INTO rowlock_cron_tick SELECT name, tick + 86400000, job_id FROM rowlock_cron_tick",
    );
    assert_eq!(
        only(&place, "I6", &[]),
        "I6  job 4 stands for 2 ticks of cron nightly"
    );
    // One with a key was there already when the second tick came.
    store(&place, "UPDATE rowlock_job SET unique_key = 'k'");
    assert_eq!(verify(&place, &[]).0, Some(0));
}

#[test]
fn i6_a_tick_that_was_fired_twice() {
    let place = ticked();
    let file = Connection::open(place.path("rowlock.db")).unwrap();
    file.execute_batch(
        "CREATE TABLE keyless AS SELECT name, 1767236400000 AS tick, job_id FROM rowlock_cron_tick;
         INSERT INTO keyless SELECT name, tick, job_id + 1 FROM keyless;
         DROP TABLE rowlock_cron_tick;
         ALTER TABLE keyless RENAME TO rowlock_cron_tick;",
    )
    .unwrap();
    let (code, checked) = verify(&place, &[]);
    assert_eq!(code, Some(6));
    let broken: Vec<_> = checked.iter().filter(|each| each["ok"] != true).collect();
    assert_eq!(
        (&broken[0]["invariant"], broken.len()),
        (&json!("I6"), 2),
        "{checked:#?}"
    );
    assert_eq!(
        broken[0]["findings"][0]["what"],
        "cron nightly has fired its tick of 2026-01-01T03:00:00Z 2 times"
    );
    // The table isn't as we made it, either.
    assert_eq!(broken[1]["invariant"], "I7");
}

#[test]
fn i7_counts_that_are_wrong() {
    let place = worked();
    store(&place, "UPDATE rowlock_tally SET n = n + 1");
    let said = only(&place, "I7", &LOGS);
    let found = "I7  queue default counts 4 completed jobs and keeps 3";
    assert_eq!(said, found);
}

#[test]
fn i7_an_index_that_lacks_a_row() {
    let place = worked();
    let store = Connection::open(place.path("rowlock.db")).unwrap();
    let index = "SELECT rootpage FROM sqlite_schema WHERE name = 'rowlock_history_expiry'";
    let page: i64 = store.query_row(index, [], |row| row.get(0)).unwrap();
    store.pragma_update(None, "writable_schema", true).unwrap();
    // The index now leads into somebody else's pages.
    let other = format!(
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema \
         WHERE name = 'rowlock_job_ready') WHERE rootpage = {page}"
    );
    store.execute(&other, []).unwrap();
    drop(store);
    let said = only(&place, "I7", &[]);
    assert!(said.starts_with("I7  "), "{said}");
}

#[test]
fn i7_a_page_of_jobs_that_was_overwritten() {
    let place = worked();
    let store = Connection::open(place.path("rowlock.db")).unwrap();
    let number = |text: &str| -> u32 { store.query_row(text, [], |row| row.get(0)).unwrap() };
    let page = number("SELECT rootpage FROM sqlite_schema WHERE name = 'rowlock_job'");
    let size = number("PRAGMA page_size");
    store
        .pragma_update(None, "wal_checkpoint", "TRUNCATE")
        .unwrap();
    drop(store);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .open(place.path("rowlock.db"))
        .unwrap();
    file.seek(SeekFrom::Start(u64::from((page - 1) * size)))
        .unwrap();
    file.write_all(&[0xa5; 512]).unwrap();
    drop(file);
    let said = only(&place, "I7", &LOGS);
    assert!(said.contains("the database is damaged"), "{said}");
    // Nothing is said to hold that couldn't be read through.
    assert_eq!(verify(&place, &LOGS).1.len(), 1);
}

#[test]
fn many_jobs_are_counted_and_ten_are_named() {
    let place = worked();
    for id in 100..112 {
        told(&place, id, true);
    }
    let said = only(&place, "I1", &LOGS);
    let ids = "100, 101, 102, 103, 104, 105, 106, 107, 108, 109, ...";
    let found = format!("I1  acknowledged and missing: 12 jobs: {ids}");
    assert_eq!(said, found);
}

#[test]
fn a_bad_line_is_named_and_a_torn_last_one_is_not() {
    let place = worked();
    let whole = std::fs::read_to_string(place.path("ran.ndjson")).unwrap();
    place.write("ran.ndjson", whole.trim_end_matches("true}\n"));
    assert_eq!(verify(&place, &LOGS).0, Some(0));
    let finished = place.run(&["work", "--once", "--ran", "ran.ndjson"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(
        finished.stderr.contains("go on with a new file"),
        "{finished:?}"
    );
    place.write("ran.ndjson", format!("{whole}{{}}\n{whole}"));
    let finished = place.run(&[&["verify"], &LOGS[..]].concat());
    assert_eq!(finished.code, Some(2), "{finished:?}");
    let named = "error: ran.ndjson line 7 is not a line of this log: missing field";
    assert!(finished.stderr.starts_with(named), "{finished:?}");
    let finished = place.run(&["verify", "--told", "nowhere"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
}
