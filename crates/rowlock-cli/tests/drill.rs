//! `rowlock reconcile drill`: the queue is thrown away and comes back, beside a worker too.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use rowlock_testbed::{Process, until};
use serde_json::{Value, json};

const DRILL: [&str; 3] = ["reconcile", "drill", "nap"];
const ROWS: i64 = 1_200;

/// A kind whose jobs take long, as many rows that ask for one, and nothing queued yet.
fn place() -> Place {
    let place = Place::with_config(
        "[worker]\nconcurrency = 1\n[handlers.nap]\nbuiltin = \"sleep\"\n[[pair]]\nkind = \"nap\"\n\
         every = \"1h\"\nkey = [\"id\"]\n\
         query = \"SELECT id, '1h' AS \\\"for\\\" FROM naps WHERE state = 'pending'\"\n",
    );
    place.ok(&["migrate", "up"]);
    place.sql("CREATE TABLE naps (id INTEGER PRIMARY KEY, state TEXT NOT NULL)");
    place.sql(&format!(
        "INSERT INTO naps WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
         SELECT i, 'pending' FROM n"
    ));
    place.ok(&["apply"]);
    place
}

fn count(place: &Place, condition: &str) -> i64 {
    let count = format!("SELECT count(*) FROM rowlock_job WHERE {condition}");
    place
        .file()
        .query_row(&count, [], |row| row.get(0))
        .unwrap()
}

fn queued(place: &Place) -> i64 {
    count(place, "state = 'pending'")
}

/// Waits until the worker has jobs, and names the first: it won't end.
fn running(place: &Place) -> i64 {
    let first = "SELECT min(id) FROM rowlock_job WHERE state = 'processing'";
    until("a job that runs", || {
        let id = place.file().query_row(first, [], |row| row.get(0));
        id.unwrap()
    })
}

/// `19:22:01` becomes `<time>`.
fn masked(text: &str) -> String {
    let time = |word: &str| {
        let digits = word.split(':').collect::<Vec<_>>();
        digits.len() == 3
            && digits
                .iter()
                .all(|part| part.len() == 2 && part.parse::<u8>().is_ok())
    };
    let words = text.split(' ');
    words
        .map(|word| if time(word) { "<time>" } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_queue_that_was_thrown_away_is_back_after_one_tick() {
    let place = place();
    place.ok(&["reconcile", "run"]);
    assert_eq!(queued(&place), ROWS);
    let refused = place.run(&DRILL);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains(
            "this deletes 1,200 queued jobs of nap; 1,200 rows still ask for them. Without a terminal"
        ),
        "{refused:?}"
    );
    assert_eq!(queued(&place), ROWS);
    let first: i64 = place
        .file()
        .query_row("SELECT max(id) FROM rowlock_job", [], |row| row.get(0))
        .unwrap();
    let done = place.ok(&[&DRILL[..], &["--yes"]].concat());
    assert_eq!(
        masked(&done),
        "queue empty <time> · back <time> (1,200 of 1,200, one tick) · nothing lost\n"
    );
    assert_eq!(queued(&place), ROWS);
    let old = count(&place, &format!("id <= {first}"));
    assert_eq!(old, 0, "every job is a new one");
}

#[test]
fn whoever_sits_at_a_terminal_is_asked() {
    let place = place();
    place.ok(&["reconcile", "run"]);
    for (answer, code, left) in [("n", 1, "nothing was deleted"), ("y", 0, "nothing lost")] {
        let line = format!("{} {}", env!("CARGO_BIN_EXE_rowlock"), DRILL.join(" "));
        let mut terminal = std::process::Command::new("script");
        terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        terminal.current_dir(place.folder.path());
        let finished = Process::run(&mut terminal, &format!("{answer}\n"));
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.stdout.contains("Go on? [y/N]"), "{finished:?}");
        assert!(finished.stdout.contains(left), "{finished:?}");
    }
}

#[test]
fn what_runs_goes_on_and_what_no_row_asks_for_stays() {
    let place = place();
    place.ok(&["reconcile", "run"]);
    place.ok(&["enqueue", "nap", r#"{"id":9999,"for":"1h"}"#]);
    let mut worker = place.start(&["work"]);
    worker.line_with("  scheduler  1 pair");
    let first = running(&place);
    let refused = place.run(&DRILL);
    assert!(
        refused
            .stderr
            .contains("; 1 job that no row asks for stays"),
        "{refused:?}"
    );
    let done = place.json(&[&DRILL[..], &["--yes", "--json"]].concat());
    assert_eq!(done["found"], ROWS);
    assert_eq!(done["back"], ROWS);
    assert_eq!(done["held_back"], 0);
    // What it had taken ahead it may have given back by now; the job that it runs it keeps.
    let deleted = done["deleted"].as_i64().unwrap();
    assert!(deleted > 0 && deleted < ROWS, "{done}");
    let runs = format!("state = 'processing' AND id = {first}");
    assert_eq!(count(&place, &runs), 1);
    assert_eq!(count(&place, "true"), ROWS + 1);
    let stayed = place.ok(&["job", "list", "--kind", "nap", "--key", "[9999]", "--json"]);
    assert_eq!(stayed.lines().count(), 1, "{stayed}");
    worker.signal("TERM");
    worker.signal("TERM");
    worker.wait();
}

#[test]
fn keys_that_are_held_back_are_told() {
    let place = place();
    place.ok(&["reconcile", "run"]);
    place.ok(&["job", "cancel", "--kind", "nap", "--limit", "2"]);
    let done = place.ok(&[&DRILL[..], &["--yes"]].concat());
    assert_eq!(
        masked(&done),
        "queue empty <time> · back <time> (1,198 of 1,200, one tick) · 2 held back (rowlock reconcile \
         list nap) · nothing lost\n"
    );
    let done = place.json(&[&DRILL[..], &["--yes", "--json"]].concat());
    assert_eq!(done["held_back"], 2);
}

#[test]
fn nothing_is_thrown_away_that_could_not_come_back() {
    let place = place();
    place.ok(&["reconcile", "run"]);
    let yes = [&DRILL[..], &["--yes"]].concat();
    for target in [["kind:nap", "reject"], ["pair:nap", "pause"]] {
        place.ok(&["switch", "set", target[0], target[1], "--reason", "x"]);
        let refused = place.run(&yes);
        assert_eq!(refused.code, Some(7), "{refused:?}");
        let remedy = format!("`rowlock switch clear {}`", target[0]);
        assert!(refused.stderr.contains(&remedy), "{refused:?}");
        place.ok(&["switch", "clear", target[0]]);
    }
    place.sql("ALTER TABLE naps RENAME TO gone");
    let failed = place.run(&yes);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.contains("no such table"), "{failed:?}");
    assert_eq!(queued(&place), ROWS);
}

#[test]
fn a_worker_derives_by_itself_and_the_list_names_who_leads() {
    let place = place();
    let mut worker = place.start(&["work"]);
    worker.line_with("  scheduler  1 pair");
    let row: Value = until("a tick", || {
        let row = place.json(&["reconcile", "list", "--json"]);
        Some(row).filter(|row| row["last_success"].is_string())
    });
    assert_eq!(row["found"], ROWS);
    assert_eq!(row["enqueued"], ROWS);
    assert!(row["leader"].is_string(), "{row}");
    assert_eq!(row["paused"], json!(false));
    worker.signal("TERM");
    worker.signal("TERM");
    worker.wait();
}
