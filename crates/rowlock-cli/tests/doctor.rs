//! Every finding of `doctor`, provoked on a real file.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use place::Place;
use rowlock_testbed::{Process, until};
use rusqlite::Connection;

const ECHO: &str = "[handlers.echo]\nbuiltin = \"echo\"\n";

/// A store with the kinds of its configuration.
fn well() -> Place {
    let place = Place::with_config(ECHO);
    place.ok(&["apply"]);
    place
}

fn open(place: &Place) -> Connection {
    Connection::open(place.path("rowlock.db")).unwrap()
}

#[test]
fn a_store_that_is_well_has_no_findings() {
    let place = well();
    let (exit, found) = place.doctor(&[]);
    assert_eq!(exit, Some(0));
    assert_eq!(found.len(), 19);
    assert!(found.iter().all(|each| each["level"] == "ok"), "{found:#?}");
    let text = place.ok(&["doctor"]);
    assert!(
        text.starts_with("ok     R001  the file is whole\n"),
        "{text}"
    );
    let missing = Place::new().run(&["doctor"]);
    assert_eq!(missing.code, Some(4), "{missing:?}");
}

#[test]
fn damage_is_found() {
    let place = well();
    let file = open(&place);
    let filler = "INSERT INTO rowlock_enqueue (kind, payload)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        SELECT 'echo', '\"' || hex(zeroblob(200)) || '\"' FROM n";
    file.execute_batch(filler).unwrap();
    let (root, page): (u32, u32) = file
        .query_row(
            "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_master
             WHERE name = 'rowlock_job_ready'",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(file);
    let raw = File::options().write(true).open(place.path("rowlock.db"));
    let start = u64::from(root - 1) * u64::from(page);
    raw.unwrap().write_all_at(&[0xff; 1_000], start).unwrap();
    let (level, what, remedy) = place.only("R001", &[]);
    assert_eq!(level, "error");
    assert!(what.starts_with("the file is damaged: "), "{what}");
    assert_eq!(remedy, "sqlite3 ./rowlock.db .dump | sqlite3 recovered.db");
    place.remedy(&remedy);
    let (exit, found) = place.doctor(&["--url", "sqlite:recovered.db"]);
    assert_eq!(exit, Some(0), "{found:#?}");
    let stats = ["stats", "--json", "--url", "sqlite:recovered.db"];
    assert_eq!(place.json(&stats)["pending"], 2_000);
}

#[test]
fn another_schema_is_found() {
    let place = well();
    let file = open(&place);
    file.execute_batch("DROP INDEX rowlock_job_ready").unwrap();
    let (level, what, remedy) = place.only("R002", &[]);
    assert_eq!(level, "error");
    assert_eq!(what, "the index rowlock_job_ready is missing");
    let part = "rowlock migrate sql --part 'index rowlock_job_ready' | sqlite3 ./rowlock.db";
    assert_eq!(remedy, part);
    file.execute_batch("CREATE INDEX rowlock_job_ready ON rowlock_job (queue)")
        .unwrap();
    let (_, what, remedy) = place.only("R002", &[]);
    assert_eq!(what, "the index rowlock_job_ready was changed");
    place.mend(&remedy);
    file.execute_batch("DROP TRIGGER rowlock_enqueue_stages; DROP VIEW rowlock_enqueue")
        .unwrap();
    let (_, found) = place.doctor(&[]);
    let mut of_it: Vec<_> = found.iter().filter(|each| each["code"] == "R002").collect();
    // A view first, then the trigger on it.
    of_it.reverse();
    for each in of_it {
        place.remedy(each["remedy"].as_str().unwrap());
    }
    assert_eq!(place.doctor(&[]).0, Some(0));
    assert_eq!(
        place.run(&["migrate", "sql", "--part", "table x"]).code,
        Some(3)
    );
    file.execute_batch("UPDATE rowlock_migration SET checksum = 'x'")
        .unwrap();
    let (_, what, remedy) = place.only("R002", &[]);
    assert!(what.contains("another form"), "{what}");
    assert_eq!(remedy, "rowlock migrate status");
    file.execute_batch("DELETE FROM rowlock_migration").unwrap();
    let (_, what, remedy) = place.only("R002", &[]);
    assert!(what.contains("has schema 0"), "{what}");
    assert_eq!(remedy, "rowlock migrate up");
}

/// A shell of SQLite's that has begun to read and doesn't end.
fn forgotten_shell(place: &Place) -> std::process::Child {
    let mut shell = Command::new("sqlite3");
    shell
        .arg("rowlock.db")
        .current_dir(place.folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut shell = shell.spawn().unwrap();
    let words = b"BEGIN;\nSELECT count(*) FROM rowlock_job;\n.shell touch reading\n";
    let stdin = shell.stdin.as_mut().unwrap();
    stdin.write_all(words).and_then(|()| stdin.flush()).unwrap();
    until("it reads", || place.path("reading").exists().then_some(()));
    shell
}

#[test]
fn a_log_that_a_reader_holds_up_is_found() {
    let place = well();
    let writer = open(&place);
    let mut reader = forgotten_shell(&place);
    writer
        .execute_batch("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(20000000))")
        .unwrap();
    let (level, what, remedy) = place.only("R003", &[]);
    assert_eq!(level, "warn");
    let who = format!(
        "only: sqlite3 (process {}) has been reading for long",
        reader.id()
    );
    assert!(what.contains(&who), "{what}");
    assert_eq!(remedy, format!("kill {}", reader.id()));
    place.remedy(&remedy);
    reader.wait().unwrap();
    assert_eq!(place.doctor(&[]).0, Some(0));
}

#[test]
fn jobs_of_an_unknown_kind_are_found() {
    let place = well();
    place.ok(&["enqueue", "typo"]);
    let (level, what, remedy) = place.only("R004", &[]);
    assert_eq!(level, "warn");
    assert!(what.starts_with("1 job is waiting of kind typo"), "{what}");
    assert_eq!(
        remedy,
        "rowlock job cancel --kind typo --state pending  # or start the worker that knows it"
    );
    place.mend(&remedy);
    place.ok(&["enqueue", "new"]);
    place.write(
        "rowlock.toml",
        format!("{ECHO}[handlers.new]\nbuiltin = \"noop\"\n"),
    );
    let (_, found) = place.doctor(&[]);
    let unknown = found.iter().find(|each| each["code"] == "R004").unwrap();
    place.mend(unknown["remedy"].as_str().unwrap());
}

#[test]
fn a_dead_worker_is_found() {
    let place = Place::with_config(&format!("{ECHO}[worker]\nlease = \"1s\"\n"));
    place.ok(&["apply"]);
    let mut worker = place.start(&["work", "-v"]);
    place.ok(&["enqueue", "echo"]);
    worker.line_with("settled job=1");
    assert_eq!(place.doctor(&[]).0, Some(0));
    worker.signal("KILL");
    worker.wait();
    let file = open(&place);
    file.execute_batch("UPDATE rowlock_worker SET seen_at = seen_at - 91000")
        .unwrap();
    let (level, what, remedy) = place.only("R005", &[]);
    assert_eq!((level.as_str(), remedy.as_str()), ("warn", "rowlock work"));
    assert!(
        what.contains("(its lease is 1 s) and holds 0 jobs"),
        "{what}"
    );
    // A worker that lives gives it up.
    let mut worker = Process::start(&mut place.shell(&format!("exec {remedy}")));
    worker.line_with("silent");
    worker.signal("TERM");
    assert_eq!(worker.wait().0, Some(0));
    assert_eq!(place.doctor(&[]).0, Some(0));
}

#[test]
fn due_jobs_without_a_worker_are_found() {
    let place = well();
    place.ok(&["enqueue", "echo"]);
    assert_eq!(place.doctor(&[]).0, Some(0));
    open(&place)
        .execute_batch("UPDATE rowlock_job SET scheduled_at = scheduled_at - 120000")
        .unwrap();
    let (level, what, remedy) = place.only("R009", &[]);
    assert_eq!(level, "warn");
    assert!(what.contains("has been due for 2 m"), "{what}");
    place.mend(&format!("{remedy} --once"));
}

#[test]
fn a_job_whose_verdict_can_not_be_written_is_found() {
    let place = well();
    place.ok(&["enqueue", "echo"]);
    // As a worker leaves it that can write nothing else.
    let note = |attempt: u32| {
        place.sql(&format!(
            "UPDATE rowlock_job SET state = 'processing', token = 7, attempt = 2, started_at = created_at,
                 errors = '[{{\"attempt\":{attempt},\"at\":\"2026-01-01T00:00:00Z\",\"kind\":\"error\",
                             \"message\":\"the verdict could not be written: not this one\"}}]'"
        ));
    };
    // That was an attempt before this one.
    note(1);
    assert_eq!(place.doctor(&[]).0, Some(0));
    note(2);
    let (level, what, remedy) = place.only("R038", &[]);
    assert_eq!(
        (level.as_str(), remedy.as_str()),
        ("warn", "rowlock job show 1")
    );
    assert!(
        what.ends_with("the verdict could not be written: not this one"),
        "{what}"
    );
    // By hand: what refuses the verdict is removed, and the worker writes it.
    place.sql("DELETE FROM rowlock_job");
    assert_eq!(place.doctor(&[]).0, Some(0));
}

#[test]
fn a_kind_that_no_worker_handles_is_found() {
    let place = well();
    place.write("other.toml", "[handlers.other]\nbuiltin = \"noop\"\n");
    let worker = place.start(&["work", "--config", "other.toml"]);
    let joined = "SELECT count(*) FROM rowlock_worker";
    until("it has joined", || {
        let workers = open(&place).query_row(joined, [], |row| row.get::<_, i64>(0));
        (workers.unwrap() == 1).then_some(())
    });
    place.ok(&["enqueue", "echo"]);
    place.sql("UPDATE rowlock_job SET scheduled_at = scheduled_at - 120000");
    let (level, what, remedy) = place.only("R034", &[]);
    assert_eq!((level.as_str(), remedy.as_str()), ("warn", "rowlock work"));
    assert!(
        what.starts_with("1 job is of kind echo due, for 2 m")
            && what.contains(" by now, and none runs"),
        "{what}"
    );
    let (_, found) = place.doctor(&["--config", "other.toml"]);
    let elsewhere = found.iter().find(|each| each["code"] == "R034").unwrap();
    let words = elsewhere["remedy"].as_str().unwrap();
    assert!(
        words.ends_with("# or start the worker that handles it"),
        "{words}"
    );
    place.remedy(words);
    place.mend(&format!("{remedy} --once"));
    worker.signal("TERM");
    assert_eq!(worker.wait().0, Some(0));
}

#[test]
fn a_configuration_that_was_not_applied_is_found() {
    let place = well();
    place.write("rowlock.toml", format!("{ECHO}queue = \"mail\"\n"));
    let (level, what, remedy) = place.only("R006", &[]);
    assert_eq!(level, "warn");
    assert_eq!(what, "kind echo: queue: \"default\" -> \"mail\"");
    place.mend(&remedy);
    place.write(
        "new.toml",
        format!("{ECHO}queue = \"mail\"\n[handlers.new]\nbuiltin = \"noop\"\n"),
    );
    let (_, what, remedy) = place.only("R006", &["--config", "new.toml"]);
    assert_eq!(what, "kind new: has no row yet");
    assert_eq!(remedy, "rowlock apply --config new.toml");
    place.mend(&remedy);
}

#[test]
fn a_less_durable_setting_is_found() {
    let place = well();
    let url = "sqlite:rowlock.db?synchronous=normal";
    let (level, what, remedy) = place.only("R007", &["--url", url]);
    assert_eq!(level, "warn");
    assert!(what.contains("a power cut can lose"), "{what}");
    assert_eq!(remedy, "rowlock work --url sqlite:rowlock.db");
    place.mend(&format!("{remedy} --once"));
}

#[test]
fn pauses_and_switches_that_were_left_on_are_found() {
    let place = well();
    place.ok(&["queue", "pause", "mail", "--reason", "provider is down"]);
    let (level, what, remedy) = place.only("R008", &[]);
    assert_eq!(level, "warn");
    assert_eq!(what, "queue:mail is set to pause: provider is down");
    assert_eq!(remedy, "rowlock switch clear queue:mail");
    place.mend(&remedy);
    let hold = [
        "switch",
        "set",
        "kind:echo",
        "hold",
        "--reason",
        "x",
        "--until",
    ];
    place.ok(&[&hold[..], &["2100-01-01T00:00:00Z"]].concat());
    let (_, what, remedy) = place.only("R008", &[]);
    assert_eq!(
        what,
        "kind:echo is set to hold until 2100-01-01T00:00:00Z: x"
    );
    place.mend(&remedy);
    open(&place)
        .execute_batch("UPDATE rowlock_kind SET switch = 'hold', switch_until = 1")
        .unwrap();
    assert_eq!(place.doctor(&[]).0, Some(0));
}

const NIGHTLY: &str = "[[cron]]\nname = \"nightly\"\nkind = \"echo\"\ncron = \"0 3 * * *\"\n";

#[test]
fn a_cron_that_is_not_as_declared_is_found() {
    let place = well();
    place.write("rowlock.toml", [ECHO, NIGHTLY].concat());
    let (level, what, remedy) = place.only("R016", &[]);
    assert_eq!(
        (level.as_str(), what.as_str()),
        ("warn", "cron nightly: has no row yet")
    );
    place.mend(&remedy);
    place.write(
        "rowlock.toml",
        [ECHO, &NIGHTLY.replace("0 3", "0 4")].concat(),
    );
    let (_, what, remedy) = place.only("R016", &[]);
    assert_eq!(what, "cron nightly: cron: \"0 3 * * *\" -> \"0 4 * * *\"");
    place.mend(&remedy);
    place.write("rowlock.toml", ECHO);
    let (level, what, remedy) = place.only("R016", &[]);
    assert_eq!(
        (level.as_str(), what.as_str()),
        ("warn", "cron nightly is not in rowlock.toml")
    );
    assert_eq!(remedy, "rowlock cron remove nightly");
    // Without a file there is nothing to compare it with.
    let moved = place.path("elsewhere.toml");
    std::fs::rename(place.path("rowlock.toml"), moved).unwrap();
    assert_eq!(place.doctor(&[]).0, Some(0));
    place.mend(&remedy);
}

#[test]
fn a_cron_that_nobody_fires_is_found() {
    let place = Place::with_config(&[ECHO, NIGHTLY].concat());
    place.ok(&["apply"]);
    let late = "UPDATE rowlock_cron SET next_at = (unixepoch() - 600) * 1000";
    assert_eq!(open(&place).execute(late, []).unwrap(), 1);
    let (level, what, remedy) = place.only("R016", &[]);
    assert_eq!(level, "warn");
    assert!(
        what.starts_with("cron nightly has been due for 10 m"),
        "{what}"
    );
    assert!(what.ends_with(": no worker fires it"), "{what}");
    assert_eq!(remedy, "rowlock work");
    let mut worker = Process::start(&mut place.shell(&format!("exec {remedy} -v")));
    worker.line_with("settled job=1");
    worker.signal("TERM");
    assert_eq!(worker.wait().0, Some(0));
    assert_eq!(place.doctor(&[]).0, Some(0));
    place.ok(&["cron", "pause", "nightly"]);
    let (exit, found) = place.doctor(&[]);
    assert_eq!(exit, Some(0));
    let paused = found.iter().find(|each| each["code"] == "R016").unwrap();
    assert_eq!(
        (&paused["level"], &paused["what"]),
        (&"info".into(), &"cron nightly is paused".into())
    );
    place.mend(paused["remedy"].as_str().unwrap());
}

#[test]
fn a_file_that_everybody_may_read_is_told_and_left_as_it_is() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.ok(&["migrate", "up"]);
    let file = place.path("rowlock.db");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (level, what, remedy) = place.only("R037", &[]);
    assert_eq!(level, "info", "{what}");
    place.mend(&remedy);
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let (_, found) = place.doctor(&[]);
    let well = found.iter().find(|each| each["code"] == "R037").unwrap();
    assert_eq!(well["level"], "ok", "{well}");
}
