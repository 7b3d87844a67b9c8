//! An application's own SQLite file: ours go beside its tables, everything else stays.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use rusqlite::Connection;

const URL: &str = "sqlite:app.db";

fn application(place: &Place) -> Connection {
    let theirs = Connection::open(place.path("app.db")).unwrap();
    theirs
        .execute_batch(
            "PRAGMA application_id = 4711; PRAGMA user_version = 42;
             CREATE TABLE users (name TEXT PRIMARY KEY);
             CREATE TABLE job (id INTEGER PRIMARY KEY); -- a name close to ours
             INSERT INTO users VALUES ('ada');",
        )
        .unwrap();
    theirs
}

fn number(on: &Connection, sql: &str) -> i64 {
    on.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_strangers_file_is_refused_and_not_changed_by_a_byte() {
    let place = Place::new();
    drop(application(&place));
    let before = std::fs::read(place.path("app.db")).unwrap();
    for verb in [
        &["enqueue", "echo"][..],
        &["dev"],
        &["stats"],
        &["job", "list"],
        &["queue", "pause", "a"],
    ] {
        let finished = place.run(&[verb, &["--url", URL]].concat());
        assert_eq!(finished.code, Some(5), "{finished:?}");
        assert!(
            finished
                .stderr
                .contains("`rowlock migrate up --url sqlite:app.db`"),
            "{finished:?}"
        );
    }
    let status = place.ok(&["migrate", "status", "--url", URL]);
    assert!(status.contains("no rowlock tables"), "{status}");
    assert_eq!(std::fs::read(place.path("app.db")).unwrap(), before);
}

#[test]
fn jobs_beside_an_applications_tables_run_and_leave_them_alone() {
    let place = Place::with_config(&format!(
        "url = \"{URL}\"\n[handlers.welcome]\nbuiltin = \"echo\""
    ));
    let mut theirs = application(&place);
    assert_eq!(
        place.ok(&["migrate", "up"]),
        "applied 0001_jobs\napplied 0002_pairs\napplied 0003_routes\n./app.db has schema 3\n"
    );
    assert_eq!(
        place.ok(&["migrate", "up"]),
        "./app.db has schema 3, nothing to do\n"
    );

    // From any language: one statement, in the application's own transaction.
    let transaction = theirs.transaction().unwrap();
    transaction
        .execute("INSERT INTO users VALUES ('grace')", [])
        .unwrap();
    let stage =
        "INSERT INTO rowlock_enqueue (kind, payload) VALUES ('welcome', '{\"to\":\"grace\"}')";
    transaction.execute(stage, []).unwrap();
    transaction.commit().unwrap();
    let transaction = theirs.transaction().unwrap();
    transaction.execute(stage, []).unwrap();
    transaction.rollback().unwrap();
    // From Rust.
    let transaction = theirs.transaction().unwrap();
    let job = rowlock::NewJob::new("welcome").unwrap();
    rowlock::enqueue_blocking(&transaction, &job).unwrap();
    transaction.commit().unwrap();

    let worked = place.ok(&["work", "--once", "--quiet"]);
    let mut ran: Vec<_> = worked.lines().collect();
    ran.sort_unstable();
    assert_eq!(ran, ["{\"to\":\"grace\"}", "{}"]);
    let stats = place.json(&["stats", "--json"]);
    assert_eq!(
        (&stats["completed"], &stats["pending"]),
        (&2.into(), &0.into())
    );

    assert_eq!(number(&theirs, "PRAGMA application_id"), 4711);
    assert_eq!(number(&theirs, "PRAGMA user_version"), 42);
    assert_eq!(number(&theirs, "SELECT count(*) FROM users"), 2);
    assert_eq!(number(&theirs, "SELECT count(*) FROM job"), 0);
    let strange = "SELECT count(*) FROM sqlite_master WHERE name NOT LIKE 'rowlock\\_%' ESCAPE '\\'
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    assert_eq!(number(&theirs, strange), 2);
}

#[test]
fn a_relative_path_starts_at_its_configuration_or_at_the_current_folder() {
    let place = Place::new();
    std::fs::create_dir(place.path("deploy")).unwrap();
    place.write("deploy/rowlock.toml", "url = \"sqlite:jobs.db\"");
    place.ok(&["enqueue", "echo", "--config", "deploy/rowlock.toml"]);
    assert!(place.path("deploy/jobs.db").exists());
    place.ok(&[
        "enqueue",
        "echo",
        "--config",
        "deploy/rowlock.toml",
        "--url",
        "sqlite:jobs.db",
    ]);
    assert!(place.path("jobs.db").exists());
    let mut by_environment = place.command(&["enqueue", "echo", "--config", "deploy/rowlock.toml"]);
    by_environment.env("ROWLOCK_URL", "sqlite:env.db");
    let finished = rowlock_testbed::Process::run(&mut by_environment, "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(place.path("env.db").exists());
    by_environment.args(["--url", "sqlite:flag.db"]);
    let finished = rowlock_testbed::Process::run(&mut by_environment, "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(place.path("flag.db").exists());
}
