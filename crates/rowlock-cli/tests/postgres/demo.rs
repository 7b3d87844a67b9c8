//! `demo crash` in a schema of its own.

use rowlock_testbed::Process;
use serde_json::Value;

use crate::store::{CANARY, Store, checked};

/// The demonstration, with its folder in a place of the test's own.
fn demo(store: &Store, flags: &[&str]) -> std::process::Command {
    let mut command = store.command(&[&["demo", "crash"], flags].concat());
    command.env("TMPDIR", store.place.folder.path());
    command
}

fn nothing_is_left(store: &Store) {
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'rowlock%'";
    assert_eq!(store.session().value(schemas), "0");
    std::fs::remove_file(store.place.path("rowlock.toml")).unwrap();
    let left = std::fs::read_dir(store.place.folder.path()).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn every_fault_hits_a_running_job_and_nothing_is_lost() {
    let store = Store::empty("");
    let flags = ["--jobs", "300", "--kills", "8", "--seed", "7341", "--json"];
    let finished = checked(&flags, Process::run(&mut demo(&store, &flags), ""));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let told: Value = serde_json::from_str(&finished.stdout).unwrap();
    for (field, value) in [
        ("jobs", 300),
        ("kills", 4),
        ("stops", 4),
        ("lost", 0),
        ("accepted", 300),
        ("late_accepted", 0),
    ] {
        assert_eq!(told[field], value, "{field}: {told}");
    }
    assert!(told["late_refused"].as_u64() > Some(0), "{told}");
    assert_eq!(told["clean"], true, "{told}");
    nothing_is_left(&store);
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let store = Store::empty("");
    let mut demo = Process::start(&mut demo(&store, &["--jobs", "20000", "--kills", "10000"]));
    demo.line_with("20,000 jobs");
    demo.signal("INT");
    let (code, lines) = demo.wait();
    assert_eq!(code, Some(1), "{lines:#?}");
    let said = |word: &str| lines.iter().any(|line| line.contains(word));
    assert!(said("nothing is left behind"), "{lines:#?}");
    assert!(!said(CANARY), "{lines:#?}");
    nothing_is_left(&store);
}

#[test]
fn the_users_own_store_is_not_touched() {
    let store = Store::new("[handlers.echo]\nbuiltin = \"echo\"\n");
    store.ok(&["enqueue", "echo"]);
    let flags = ["--jobs", "50", "--kills", "0"];
    let finished = checked(&flags, Process::run(&mut demo(&store, &flags), ""));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let stats = store.json(&["stats", "--json"]);
    assert_eq!(stats["pending"], 1, "{stats}");
    assert_eq!(stats["completed"], 0, "{stats}");
}

#[cfg(feature = "test-hooks")]
#[test]
fn a_fence_that_was_taken_out_is_noticed() {
    const FENCELESS: &str = r#"
about = "a settle matches the job but not the claim's token"
caught_by = []
[[edit]]
engine = "postgres"
statement = "settle_finish"
find = "job.token IS NOT DISTINCT FROM done.token"
put = "true"
[[edit]]
engine = "postgres"
statement = "whereabouts"
find = " AND coalesce(job.token, 0) = ANY (every)"
put = ""
[[edit]]
engine = "postgres"
statement = "whereabouts"
find = "found.token IS NOT DISTINCT FROM v.token"
put = "(found.token IS NULL) = (v.token IS NULL)"
"#;
    let (store, elsewhere) = (Store::empty(""), crate::place::Place::new());
    elsewhere.write("mutant.toml", FENCELESS);
    let flags = ["--jobs", "400", "--kills", "16", "--seed", "7"];
    let mut command = demo(&store, &flags);
    command.env("ROWLOCK_MUTANT", elsewhere.path("mutant.toml"));
    let finished = checked(&flags, Process::run(&mut command, ""));
    assert_eq!(finished.code, Some(6), "{finished:?}");
    let said = "answers of workers that had been given up were accepted";
    assert!(finished.stderr.contains(said), "{finished:?}");
    nothing_is_left(&store);
}
