//! `enqueue --from`: whole files, bad lines, and going on where it stopped.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use serde_json::Value;

fn line(n: usize) -> String {
    format!("{{\"kind\":\"echo\",\"payload\":{{\"n\":{n}}}}}\n")
}

fn lines(range: std::ops::Range<usize>) -> String {
    range.map(line).collect()
}

fn ns(place: &Place) -> Vec<u64> {
    let listed = place.ok(&["job", "list", "--limit", "100000", "--json"]);
    let job = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    listed
        .lines()
        .map(|line| job(line)["payload"]["n"].as_u64().unwrap())
        .collect()
}

#[test]
fn a_whole_file_goes_in_by_its_order() {
    let place = Place::new();
    place.write("jobs.ndjson", lines(0..2_345));
    assert_eq!(
        place.ok(&["enqueue", "--from", "jobs.ndjson"]),
        "queued 2,345\n"
    );
    assert_eq!(ns(&place), (0..2_345).collect::<Vec<_>>());
}

#[test]
fn every_field_of_a_line_reaches_the_job() {
    let place = Place::new();
    let text = r#"{"kind":"mail","payload":{"b":12345678901234567890123,"a":null},"queue":"q","priority":-7,"scheduled_at":"2030-01-01T01:00:00+01:00","max_attempts":9,"unique_key":"k","unique_until":"start","tags":["x","y"]}"#;
    let answer = place.feed(
        &["enqueue", "--from", "-", "--json"],
        &format!("\u{feff}{text}\r\n\n  \n{text}"),
    );
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(
        answer.stdout,
        "{\"id\":1,\"status\":\"queued\"}\n{\"id\":1,\"status\":\"duplicate\"}\n"
    );
    let job = place.json(&["job", "show", "1", "--json"]);
    assert_eq!(
        (&job["queue"], &job["priority"]),
        (&"q".into(), &(-7).into())
    );
    assert_eq!(job["scheduled_at"], "2030-01-01T00:00:00Z");
    assert_eq!(
        (&job["max_attempts"], &job["unique_key"]),
        (&9.into(), &"k".into())
    );
    assert_eq!(job["tags"], serde_json::json!(["x", "y"]));
    let shown = place.ok(&["job", "show", "1"]);
    assert!(
        shown.contains(r#"{"b":12345678901234567890123,"a":null}"#),
        "{shown}"
    );
}

#[test]
fn a_bad_line_is_named_and_everything_before_it_is_in() {
    for (bad, word) in [
        (
            "{\"kind\":\"echo\",\"prioritt\":1}",
            "unknown field `prioritt`",
        ),
        ("{\"kind\":\"echo\",\"kind\":\"echo\"}", "duplicate field"),
        ("{\"payload\":{}}", "missing field `kind`"),
        ("{\"kind\":\"a b\"}", "valid name"),
        (
            "{\"kind\":\"echo\",\"payload\":{\"a\":1,\"a\":2}}",
            "appears twice",
        ),
        ("{\"kind\":\"echo\",\"priority\":99999}", "99999"),
        ("{\"kind\":\"echo\",\"max_attempts\":0}", "use 1 to"),
        ("{\"kind\":\"echo\",\"scheduled_at\":\"soon\"}", "column"),
        ("{\"kind\":\"echo\",\"unique_key\":\"\"}", "unique key"),
        ("{\"kind\":\"echo\",\"tags\":[\"a b\"]}", "valid name"),
        ("[1]", "column"),
        ("5", "column"),
        ("{\"kind\":\"echo\"", "column"),
        ("{\"kind\":\"echo\"} {}", "trailing"),
    ] {
        let place = Place::new();
        place.write(
            "jobs.ndjson",
            lines(0..1_500) + bad + "\n" + &lines(1_500..1_600),
        );
        let finished = place.run(&["enqueue", "--from", "jobs.ndjson"]);
        assert_eq!(finished.code, Some(2), "{bad}: {finished:?}");
        let error = finished.stderr.lines().last().unwrap();
        assert!(error.starts_with("error: line 1501: "), "{error}");
        assert!(error.contains(word), "{bad}: {error}");
        assert!(
            error.contains("tail -n +1501 jobs.ndjson | rowlock enqueue --from -"),
            "{error}"
        );
        assert_eq!(finished.stdout, "", "{bad}");
        assert_eq!(ns(&place).len(), 1_500, "{bad}");
    }
}

#[test]
fn going_on_as_the_message_says_adds_everything_exactly_once() {
    let place = Place::new();
    place.write(
        "jobs.ndjson",
        lines(0..1_200) + "oops\n" + &lines(1_201..2_500),
    );
    assert_eq!(
        place.run(&["enqueue", "--from", "jobs.ndjson"]).code,
        Some(2)
    );
    place.write("jobs.ndjson", lines(0..2_500));
    let rest = lines(1_200..2_500);
    let finished = place.feed(&["enqueue", "--from", "-"], &rest);
    assert_eq!(finished.stdout, "queued 1,300\n", "{finished:?}");
    assert_eq!(ns(&place), (0..2_500).collect::<Vec<_>>());
}

#[test]
fn a_line_that_lacks_a_field_of_its_kinds_key_is_named_too() {
    let place = Place::with_config("[handlers.mail]\nbuiltin = \"noop\"\nkey = [\"to\"]");
    let good = |n: usize| format!("{{\"kind\":\"mail\",\"payload\":{{\"to\":{n}}}}}\n");
    let head: String = (0..300).map(good).collect();
    let bad = "{\"kind\":\"mail\",\"payload\":{}}\n";
    let finished = place.feed(
        &["enqueue", "--from", "-"],
        &format!("\n{head}{bad}{}", good(9_999)),
    );
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(
        finished
            .stderr
            .contains("line 302: the payload lacks the field \"to\""),
        "{finished:?}"
    );
    assert!(
        finished.stderr.contains("from line 302 on again"),
        "{finished:?}"
    );
    assert_eq!(place.jobs(), 300);
}

#[test]
fn bytes_that_are_no_text_and_lines_without_end_are_bad_lines() {
    let place = Place::new();
    place.write(
        "bytes",
        [line(0).as_bytes(), b"{\"kind\":\"\xff\"}\n"].concat(),
    );
    let finished = place.run(&["enqueue", "--from", "bytes"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(
        finished.stderr.contains("line 2: is not UTF-8"),
        "{finished:?}"
    );

    place.write("long", line(1) + &" ".repeat(20 * 1024 * 1024));
    let finished = place.run(&["enqueue", "--from", "long"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(
        finished.stderr.contains("line 2: is longer than"),
        "{finished:?}"
    );

    place.write(
        "deep",
        line(2) + "{\"kind\":\"echo\",\"payload\":" + &"[".repeat(1_000_000) + "\n",
    );
    let finished = place.run(&["enqueue", "--from", "deep"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.stderr.contains("error: line 2: "), "{finished:?}");
    assert_eq!(ns(&place), [0, 1, 2]);
}

#[test]
fn known_makes_an_unknown_kind_a_bad_line() {
    let place = Place::with_config("[handlers.echo]\nbuiltin = \"echo\"");
    let text = line(0) + "{\"kind\":\"nobody\"}\n";
    let finished = place.feed(&["enqueue", "--from", "-", "--known"], &text);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(
        finished
            .stderr
            .contains("line 2: nobody is known to run nobody"),
        "{finished:?}"
    );
    assert_eq!(place.jobs(), 1);
    let finished = place.feed(&["enqueue", "--from", "-"], &text);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished
            .stderr
            .contains("warning: nobody is known to run nobody"),
        "{finished:?}"
    );
}

#[test]
fn a_database_that_fails_half_way_says_from_which_line_to_go_on() {
    let place = Place::new();
    place.ok(&["migrate", "up"]);
    let file = rusqlite::Connection::open(place.path("rowlock.db")).unwrap();
    file.execute_batch(
        "CREATE TRIGGER full BEFORE INSERT ON rowlock_job WHEN NEW.payload = '{\"n\":1700}'
         BEGIN SELECT RAISE(ABORT, 'disk I/O error of a kind'); END",
    )
    .unwrap();
    place.write("jobs.ndjson", lines(0..3_000));
    let finished = place.run(&["enqueue", "--from", "jobs.ndjson"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.stderr.contains("tail -n +1001 jobs.ndjson"),
        "{finished:?}"
    );
    assert!(
        finished.stderr.contains("the 1,000 lines before it are in"),
        "{finished:?}"
    );
    assert_eq!(place.jobs(), 1_000);
}

#[test]
fn a_file_that_can_not_be_read_is_exit_2_and_makes_no_store() {
    let place = Place::new();
    for from in ["nope.ndjson", "."] {
        let finished = place.run(&["enqueue", "--from", from]);
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(finished.stderr.contains("can't read"), "{finished:?}");
    }
    assert!(!place.path("rowlock.db").exists());
}

#[test]
fn nothing_to_add_is_fine() {
    let place = Place::new();
    assert_eq!(
        place.feed(&["enqueue", "--from", "-"], "\n\n").stdout,
        "queued 0\n"
    );
}

#[test]
fn an_interrupt_keeps_whole_lines_and_says_how_to_go_on() {
    use std::io::Write;
    let place = Place::new();
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    let mut load = place.start(&["enqueue", "--from", "pipe"]);
    let mut pipe = std::fs::File::create(place.path("pipe")).unwrap();
    pipe.write_all(line(0).as_bytes()).unwrap();
    // It has read the first line, and waits for more.
    load.line_with("warning: nobody is known to run echo");
    load.signal("INT");
    load.line_with("stopping after this line");
    // It may have asked for a second line before the signal came, or be gone already.
    let _ = pipe.write_all(line(1).as_bytes());
    let said = load.line_with("error: stopped; go on with: tail -n +");
    assert_eq!(load.wait().0, Some(1));
    let stored = place.jobs();
    assert!(
        said.contains(&format!("tail -n +{} pipe |", stored + 1)),
        "{stored} in, but: {said}"
    );
}
