//! Logs on a disk that is full: what was done stays done, is said, and isn't asked for again.
#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use rowlock_testbed::Finished;

/// A file that can be opened and takes nothing.
const FULL: [&str; 2] = ["--told", "/dev/full"];

/// Runs a command that does its work and can't write it down; the answer is its stdout.
fn unlogged(place: &Place, args: &[&str], said: &str) -> String {
    let Finished {
        code,
        stdout,
        stderr,
    } = place.run(&[args, &FULL[..]].concat());
    assert_eq!(code, Some(1), "{stderr}");
    let error = stderr.lines().last().unwrap();
    let whole = format!(
        "error: {said}; only the log is incomplete: can't write to the log /dev/full: No space"
    );
    assert!(error.starts_with(&whole), "{error}");
    assert!(!stderr.contains("try again"), "{stderr}");
    stdout
}

#[test]
fn a_job_that_is_queued_is_said_to_be() {
    let place = Place::new();
    let enqueue = ["enqueue", "echo", "--unique", "a"];
    let said = unlogged(&place, &enqueue, "job 1 is queued");
    assert_eq!(said, "queued 1  echo  queue default\n");
    let said = unlogged(&place, &["enqueue", "echo", "--json"], "job 2 is queued");
    assert_eq!(said, "{\"id\":2,\"status\":\"queued\"}\n");
    unlogged(&place, &enqueue, "job 1 has this key");
    assert_eq!(place.jobs(), 2);
}

#[test]
fn many_jobs_go_on_after_those_that_are_in() {
    let place = Place::new();
    place.write("jobs.ndjson", "{\"kind\":\"echo\"}\n".repeat(1_500));
    let load = ["enqueue", "--from", "jobs.ndjson", "--json"];
    let said = unlogged(&place, &load, "everything before line 1001 is in");
    assert_eq!(said.lines().count(), 1_000);
    assert_eq!(place.jobs(), 1_000);
    let finished = place.run(&["enqueue", "--from", "jobs.ndjson", FULL[0], FULL[1]]);
    let go_on = "then go on with: tail -n +1001 jobs.ndjson | rowlock enqueue --from - \
                 --told /dev/full (the 1,000 lines before it are in, queued 1,000)";
    assert!(finished.stderr.contains(go_on), "{finished:?}");
}

#[test]
fn the_last_of_many_jobs_leaves_nothing_to_go_on_with() {
    let place = Place::new();
    place.write("jobs.ndjson", "{\"kind\":\"echo\"}\n".repeat(3));
    let load = ["enqueue", "--from", "jobs.ndjson"];
    unlogged(&place, &load, "every line is in (queued 3)");
    assert_eq!(place.jobs(), 3);
}

#[test]
fn a_bad_line_matters_more_than_a_log_without_it() {
    let place = Place::new();
    place.write("jobs.ndjson", "{}\n");
    let finished = place.run(&["enqueue", "--from", "jobs.ndjson", FULL[0], FULL[1]]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    let go_on = "| rowlock enqueue --from - --told /dev/full (nothing is in yet";
    assert!(finished.stderr.contains(go_on), "{finished:?}");
}

#[test]
fn jobs_that_were_changed_are_named() {
    let place = Place::new();
    place.write("jobs.ndjson", "{\"kind\":\"echo\"}\n".repeat(3));
    place.ok(&["enqueue", "--from", "jobs.ndjson"]);
    let cancel = ["job", "cancel", "1", "2"];
    let said = unlogged(&place, &cancel, "cancelled 2, as told above, and no more");
    assert_eq!(said, "cancelled 1\ncancelled 2\n");
    let delete = ["job", "delete", "--kind", "echo"];
    let said = unlogged(&place, &delete, "deleted 3, as told above, and no more");
    assert_eq!(said, "deleted 1\ndeleted 2\ndeleted 3\n");
    assert_eq!(place.jobs(), 0);
}

#[test]
fn a_worker_works_on_without_its_log_and_says_so_once() {
    let place = Place::with_config("[handlers.noop]\nbuiltin = \"noop\"\n");
    place.write("jobs.ndjson", "{\"kind\":\"noop\"}\n".repeat(3));
    place.ok(&["enqueue", "--from", "jobs.ndjson"]);
    let finished = place.run(&["work", "--once", "--quiet", "--ran", "/dev/full"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let said = finished.stderr.matches("the ran log is incomplete").count();
    assert_eq!(said, 1, "{finished:?}");
    assert_eq!(place.json(&["stats", "--json"])["completed"], 3);
}
