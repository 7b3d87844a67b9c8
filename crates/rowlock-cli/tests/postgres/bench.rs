//! `bench pairs` in a schema of its own.

use serde_json::Value;

use crate::store::{CANARY, Store};

fn nothing_is_left(store: &Store) {
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'rowlock%'";
    assert_eq!(store.session().value(schemas), "0");
    std::fs::remove_file(store.place.path("rowlock.toml")).unwrap();
    let left = std::fs::read_dir(store.place.folder.path()).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn ticks_are_measured_on_the_server_that_is_named() {
    let store = Store::empty("this is = not [a configuration");
    let text = store.ok(&["bench", "pairs", "--quick", "--json"]);
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let steps = [
        ("first_tick", 25_000, true),
        ("tick_over_live_jobs", 25_000, false),
        ("tick_with_nothing_to_do", 0, false),
    ];
    assert_eq!(lines.len(), steps.len(), "{text}");
    for (line, (step, rows, has_limit)) in lines.iter().zip(steps) {
        assert_eq!(line["bench"], "pairs_postgres");
        assert_eq!((&line["step"], &line["jobs"]), (&step.into(), &rows.into()));
        assert_eq!(line["of_limit"].is_number(), has_limit, "{step}");
    }
    assert_eq!(lines[2]["index_scans"], 1.0, "one look for a whole tick");
    nothing_is_left(&store);
}

#[test]
fn ctrl_c_leaves_no_schema_behind() {
    let store = Store::empty("");
    let mut bench = store.start(&["bench", "pairs"]);
    bench.line_with("round 1 of 3");
    bench.signal("INT");
    let (code, lines) = bench.wait();
    assert_eq!(code, Some(1), "{lines:#?}");
    let said = |word: &str| lines.iter().any(|line| line.contains(word));
    assert!(said("stopped before the end"), "{lines:#?}");
    assert!(!said(CANARY), "{lines:#?}");
    nothing_is_left(&store);
}
