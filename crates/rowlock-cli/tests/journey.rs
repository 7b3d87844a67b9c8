//! A job's journey as an operator sees it, with real processes and signals.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;

const ECHO: &str = "[handlers.echo]\nbuiltin = \"echo\"\n[handlers.flaky]\nbuiltin = \"flaky\"\nmax_attempts = 1\n";

#[test]
fn a_job_is_queued_run_and_shown() {
    let place = Place::with_config(ECHO);
    let finished = place.run(&["enqueue", "echo", r#"{"hello":"world"}"#]);
    assert_eq!(finished.stdout, "queued 1  echo  queue default\n");
    assert_eq!(finished.stderr, "created ./rowlock.db (schema 3)\n");
    let pending = place.ok(&["job", "show", "1"]);
    assert!(
        pending.starts_with("1  echo  pending  attempt 0 of 5  waits "),
        "{pending}"
    );
    assert_eq!(place.ok(&["work", "--once"]), "{\"hello\":\"world\"}\n");
    let shown = place.ok(&["job", "show", "1"]);
    let first = shown.lines().next().unwrap();
    assert!(
        first.starts_with("1  echo  completed  attempt 1 of 5  waited "),
        "{shown}"
    );
    assert!(first.contains("  ran "), "{shown}");
    assert!(shown.contains("payload   {\"hello\":\"world\"}"), "{shown}");
    assert_eq!(
        place.json(&["job", "show", "1", "--json"])["state"],
        "completed"
    );
}

#[test]
fn a_later_job_waits_and_its_key_is_taken() {
    let place = Place::with_config(ECHO);
    let later = ["enqueue", "echo", "{}", "--in", "10m", "--unique", "k"];
    assert_eq!(place.ok(&later), "queued 1  echo  in 10 m\n");
    assert_eq!(
        place.ok(&later),
        "duplicate 1  echo  pending with the same key\n"
    );
    let again = place.json(&[&later[..], &["--json"]].concat());
    assert_eq!(again, serde_json::json!({"id": 1, "status": "duplicate"}));
    assert_eq!(place.ok(&["work", "--once"]), "");
    let shown = place.ok(&["job", "show", "1"]);
    assert!(
        shown.starts_with("1  echo  pending  attempt 0 of 5  due in "),
        "{shown}"
    );
}

#[test]
fn a_switch_that_holds_or_rejects_is_told() {
    let place = Place::with_config(ECHO);
    place.ok(&["apply"]);
    let file = rusqlite::Connection::open(place.path("rowlock.db")).unwrap();
    file.execute_batch("UPDATE rowlock_kind SET switch = 'hold'")
        .unwrap();
    assert_eq!(
        place.ok(&["enqueue", "echo"]),
        "held 1  echo  queue default\n"
    );
    file.execute_batch("UPDATE rowlock_kind SET switch = 'reject'")
        .unwrap();
    assert!(
        place
            .ok(&["enqueue", "echo"])
            .starts_with("rejected  echo  ")
    );
    let answer = place.json(&["enqueue", "echo", "--json"]);
    assert_eq!(
        answer,
        serde_json::json!({"id": null, "status": "rejected"})
    );
    assert_eq!(place.jobs(), 1);
}

#[test]
fn failed_jobs_are_found_retried_and_deleted_by_filter() {
    let place = Place::with_config(ECHO);
    for _ in 0..3 {
        place.ok(&["enqueue", "flaky", "--tag", "x"]);
    }
    place.ok(&["enqueue", "echo", "--tag", "x"]);
    place.ok(&["work", "--once"]);
    let failed = place.ok(&[
        "job", "list", "--state", "failed", "--since", "1h", "--json",
    ]);
    assert_eq!(failed.lines().count(), 3);
    let shown = place.ok(&["job", "show", "1"]);
    assert!(shown.contains("attempt 1 fails on purpose"), "{shown}");
    // Without --state only failed ones are meant: nobody gets the echo twice.
    assert_eq!(place.ok(&["job", "retry", "--tag", "x"]), "retried 3\n");
    assert_eq!(
        place.ok(&["job", "cancel", "--kind", "flaky", "--limit", "2"]),
        "cancelled 2\n"
    );
    assert_eq!(
        place.ok(&["job", "delete", "--state", "cancelled"]),
        "deleted 2\n"
    );
    assert_eq!(
        place.ok(&["job", "delete", "--all", "--yes"]),
        "deleted 2\n"
    );
    assert_eq!(place.jobs(), 0);
}

#[test]
fn lists_go_by_rising_number_in_pages() {
    let place = Place::with_config(ECHO);
    let lines = "{\"kind\":\"echo\"}\n".repeat(120);
    place.feed(&["enqueue", "--from", "-"], &lines);
    let page = place.run(&["job", "list"]);
    assert_eq!(page.stdout.lines().count(), 51);
    assert!(page.stderr.contains("--after 50"), "{page:?}");
    let rest = place.run(&["job", "list", "--after", "100"]);
    assert_eq!(rest.stdout.lines().count(), 21);
    assert_eq!(rest.stderr, "");
}

#[test]
fn a_paused_queue_keeps_its_jobs_until_it_is_resumed() {
    let place = Place::with_config(ECHO);
    place.ok(&["enqueue", "echo", "--queue", "mail"]);
    assert_eq!(
        place.ok(&["queue", "pause", "mail", "--reason", "down"]),
        "paused mail\n"
    );
    assert!(place.ok(&["queue", "list"]).contains("paused: down"));
    assert_eq!(place.ok(&["work", "--once"]), "");
    assert_eq!(place.ok(&["queue", "resume", "mail"]), "resumed mail\n");
    assert_eq!(place.ok(&["work", "--once", "--queue", "other"]), "");
    assert_eq!(place.ok(&["work", "--once", "--queue", "mail"]), "{}\n");
}

#[test]
fn the_starter_configuration_works() {
    let place = Place::new();
    place.ok(&["init"]);
    assert_eq!(place.ok(&["apply"]), "added      hello\n");
    assert_eq!(place.ok(&["apply"]), "unchanged  hello\n");
    place.ok(&["enqueue", "hello", "[1]"]);
    assert_eq!(place.ok(&["work", "--once"]), "[1]\n");
    place.write(
        "rowlock.toml",
        "[handlers.hello]\nbuiltin = \"echo\"\nqueue = \"mail\"",
    );
    let changed = place.ok(&["apply"]);
    assert_eq!(
        changed,
        "changed    hello  queue: \"default\" -> \"mail\"\n"
    );
}

#[test]
fn dev_makes_its_store_runs_jobs_and_ends_on_sigterm() {
    let place = Place::new();
    let mut dev = place.start(&["dev", "-v"]);
    dev.line_with("store      sqlite ./rowlock.db (WAL, synchronous=FULL), schema 3 created");
    dev.line_with("worker     8 slots, lease 30 s, kinds echo sleep flaky");
    dev.line_with("Try:  rowlock enqueue echo");
    place.ok(&["enqueue", "echo", r#"{"n":1}"#, "--known"]);
    dev.line_with("settled job=1");
    let shown = place.ok(&["job", "show", "1"]);
    assert!(
        shown.starts_with("1  echo  completed  attempt 1 of 5"),
        "{shown}"
    );
    place.ok(&["enqueue", "flaky"]);
    dev.line_with("attempt 1 fails on purpose");
    dev.signal("TERM");
    let (code, lines) = dev.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    assert!(
        !lines.iter().any(|line| line.contains("panicked")),
        "{lines:#?}"
    );
}

#[test]
fn a_first_signal_lets_a_job_finish_and_a_second_gives_it_back() {
    let place = Place::with_config("[handlers.echo]\nbuiltin = \"echo\"");
    let mut dev = place.start(&["dev", "-v"]);
    dev.line_with("Try:");
    place.ok(&["enqueue", "sleep", r#"{"for":"1h"}"#]);
    // One slot is asleep once this one, which came later, is done.
    place.ok(&["enqueue", "echo"]);
    dev.line_with("settled job=2");
    assert_eq!(
        place.json(&["job", "show", "1", "--json"])["state"],
        "processing"
    );
    let refused = place.run(&["job", "delete", "1"]);
    assert_eq!(refused.code, Some(7), "{refused:?}");
    assert!(
        refused.stderr.contains("rowlock job cancel 1"),
        "{refused:?}"
    );
    dev.signal("INT");
    dev.line_with("stopping, running jobs have 25 s");
    dev.signal("INT");
    dev.line_with("stopping at once");
    let (code, lines) = dev.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    let job = place.json(&["job", "show", "1", "--json"]);
    assert_eq!(
        (&job["state"], &job["attempt"]),
        (&"pending".into(), &0.into())
    );
}

#[test]
fn a_running_job_is_asked_to_stop() {
    // It is asked with the next heartbeat.
    let place = Place::with_config("[worker]\nlease = \"3s\"");
    let mut dev = place.start(&["dev", "-v"]);
    dev.line_with("Try:");
    place.ok(&["enqueue", "sleep", r#"{"for":"1h"}"#]);
    place.ok(&["enqueue", "echo"]);
    dev.line_with("settled job=2");
    assert_eq!(place.ok(&["job", "cancel", "1"]), "asked 1 to stop\n");
    dev.line_with("settled job=1");
    assert_eq!(
        place.json(&["job", "show", "1", "--json"])["state"],
        "cancelled"
    );
    dev.signal("TERM");
    assert_eq!(dev.wait().0, Some(0));
}

#[test]
fn several_processes_share_one_new_file() {
    let place = Place::with_config(ECHO);
    let mut producers: Vec<_> = (0..6)
        .map(|n| place.start(&["enqueue", "echo", &format!("{{\"n\":{n}}}"), "--json"]))
        .collect();
    for producer in &mut producers {
        producer.line_with("\"status\":\"queued\"");
    }
    for producer in producers {
        assert_eq!(producer.wait().0, Some(0));
    }
    let workers: Vec<_> = (0..3)
        .map(|_| place.start(&["work", "--once", "--quiet"]))
        .collect();
    let mut ran: Vec<String> = Vec::new();
    for worker in workers {
        let (code, lines) = worker.wait();
        assert_eq!(code, Some(0), "{lines:#?}");
        ran.extend(lines);
    }
    ran.sort_unstable();
    let expected: Vec<String> = (0..6).map(|n| format!("{{\"n\":{n}}}")).collect();
    assert_eq!(ran, expected);
    assert_eq!(place.json(&["stats", "--json"])["completed"], 6);
}

#[test]
fn stats_have_the_shape_that_people_script_against() {
    let place = Place::with_config(ECHO);
    place.ok(&["enqueue", "echo"]);
    place.ok(&["enqueue", "echo", "--in", "1h"]);
    let stats = place.json(&["stats", "--json"]);
    for of in [&stats, &stats["queues"]["default"]] {
        let numbers = [
            "retrying",
            "held",
            "processing",
            "completed",
            "failed",
            "cancelled",
        ];
        assert!(numbers.iter().all(|field| of[*field] == 0), "{of}");
        assert_eq!((&of["pending"], &of["scheduled"]), (&2.into(), &1.into()));
        assert!(of["oldest_pending_seconds"].is_number(), "{of}");
    }
}

#[test]
fn less_durable_settings_say_what_they_lose() {
    let place = Place::new();
    let finished = place.run(&["enqueue", "echo", "--url", "sqlite:x.db?synchronous=normal"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.stderr.contains("a power cut can lose"),
        "{finished:?}"
    );
}
