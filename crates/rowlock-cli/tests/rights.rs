//! Who else may read what the binary writes, and what becomes of a file that was moved away.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use place::Place;
use rowlock_testbed::{Finished, Process};

fn mode(place: &Place, name: &str) -> u32 {
    let about = fs::metadata(place.path(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
    about.permissions().mode() & 0o777
}

fn shell(place: &Place, line: &str) -> Finished {
    let finished = Process::run(&mut place.shell(line), "");
    assert_eq!(finished.code, Some(0), "{line}: {finished:?}");
    finished
}

#[test]
fn what_may_hold_payloads_or_passwords_is_for_its_owner_only() {
    let place = Place::new();
    shell(
        &place,
        "umask 0; rowlock init; rowlock enqueue hello --told told.jsonl",
    );
    shell(
        &place,
        "umask 0; rowlock work --once --quiet --ran ran.jsonl",
    );
    for name in ["rowlock.toml", "rowlock.db", "told.jsonl", "ran.jsonl"] {
        assert_eq!(mode(&place, name), 0o600, "{name}");
    }
}

#[test]
fn a_password_that_everybody_may_read_is_told_and_stops_nothing() {
    const WARNING: &str = "has a password in a URL: chmod o= ./rowlock.toml";
    let route = "[[drain]]\nto = \"redis://:s3cret@127.0.0.1:1/0\"\nkinds = [\"mail\"]\n";
    for (text, names) in [(route, true), ("[limits]\nerrors_kept = 3\n", false)] {
        let place = Place::with_config(text);
        for (mode, read_by_all) in [(0o644, true), (0o640, false), (0o600, false)] {
            fs::set_permissions(place.path("rowlock.toml"), Permissions::from_mode(mode)).unwrap();
            let finished = place.run(&["enqueue", "echo"]);
            assert_eq!(finished.code, Some(0), "{finished:?}");
            assert_eq!(
                finished.stderr.contains(WARNING),
                names && read_by_all,
                "{finished:?}"
            );
            assert!(!finished.stderr.contains("s3cret"), "{finished:?}");
        }
    }
}

#[test]
fn a_file_moved_away_from_its_log_is_not_made_again() {
    let place = Place::with_config("[handlers.echo]\nbuiltin = \"echo\"\n");
    place.ok(&["enqueue", "echo"]);
    // As a crash leaves it: its last jobs are in the log.
    let application = place.file();
    application
        .query_row("SELECT count(*) FROM rowlock_jobs", [], |_| Ok(()))
        .unwrap();
    place.ok(&["enqueue", "echo"]);
    fs::copy(place.path("rowlock.db-wal"), place.path("kept")).unwrap();
    drop(application);
    fs::rename(place.path("kept"), place.path("rowlock.db-wal")).unwrap();
    fs::rename(place.path("rowlock.db"), place.path("elsewhere.db")).unwrap();
    for verb in [
        &["enqueue", "echo"][..],
        &["stats"],
        &["migrate", "up"],
        &["work", "--once"],
    ] {
        let finished = place.run(verb);
        assert_eq!(finished.code, Some(5), "{verb:?}: {finished:?}");
        assert!(
            finished.stderr.contains("put the file back"),
            "{finished:?}"
        );
        assert!(!place.path("rowlock.db").exists(), "{verb:?}");
    }
    fs::rename(place.path("elsewhere.db"), place.path("rowlock.db")).unwrap();
    assert_eq!(place.jobs(), 2);
}
