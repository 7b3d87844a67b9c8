//! The benchmark at its smallest size: everything is measured and counted. How fast is not a matter
//! for a test.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use serde_json::Value;

/// Every step, its unit, the jobs of one run, and whether it has a limit beside it.
const STEPS: [(&str, &str, u64, bool); 18] = [
    ("enqueue_1", "jobs/s", 16, true),
    ("enqueue_16", "jobs/s", 64, true),
    ("enqueue_256", "jobs/s", 256, true),
    ("enqueue_bulk", "jobs/s", 2_000, true),
    ("drain", "jobs/s", 500, true),
    ("drain_without_history", "jobs/s", 500, true),
    ("start_in_process", "ms", 10, false),
    ("start_across_processes", "ms", 10, false),
    ("start_across_processes_idle", "ms", 2, false),
    ("idle_worker", "% of a core", 0, false),
    ("enqueue_1_behind_history", "jobs/s", 16, false),
    ("enqueue_16_behind_history", "jobs/s", 64, false),
    ("enqueue_256_behind_history", "jobs/s", 256, false),
    ("enqueue_bulk_behind_history", "jobs/s", 2_000, false),
    ("drain_behind_history", "jobs/s", 2_536, false),
    ("drain_without_history_behind_history", "jobs/s", 200, false),
    ("start_in_process_behind_history", "ms", 10, false),
    ("start_across_processes_behind_history", "ms", 10, false),
];

#[test]
fn every_measurement_is_there_and_its_jobs_are_counted() {
    let place = Place::with_config("this is = not [a configuration");
    let text = place.ok(&["bench", "sqlite", "--quick", "--json", "--out", "figures"]);
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), STEPS.len(), "{text}");
    for (line, (step, unit, jobs, has_limit)) in lines.iter().zip(STEPS) {
        assert_eq!(line["bench"], "sqlite");
        assert_eq!(line["step"], step);
        assert_eq!(line["unit"], unit, "{step}");
        assert_eq!(line["jobs"], jobs, "{step}");
        for figure in ["limit", "canonical", "of_limit", "of_canonical"] {
            assert_eq!(line[figure].is_number(), has_limit, "{step}: {figure}");
        }
        let goals = line["goals"].as_array().unwrap();
        assert!(goals.iter().all(|goal| goal["ok"].is_boolean()), "{step}");
    }
    assert_eq!(lines[0]["rows_per_commit"], 1.0, "one producer waits alone");
    assert_eq!(lines[3]["rows_per_commit"], 1_000.0, "a batch is a commit");
    let kept = std::fs::read_to_string(place.path("figures/sqlite.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["measurements"].as_array().unwrap().len(), STEPS.len());
    for fact in ["version", "cpus", "file_system", "sqlite", "measured_at"] {
        assert!(!kept[fact].is_null(), "{fact}");
    }
    let chart = std::fs::read_to_string(place.path("figures/sqlite.svg")).unwrap();
    assert_eq!(chart.matches("drain").count(), 2, "{chart}");
    assert!(chart.ends_with("</svg>\n"), "{chart}");
}

#[test]
fn a_run_leaves_nothing_behind_and_touches_no_store() {
    let place = Place::new();
    let table = place.ok(&["bench", "sqlite", "--quick"]);
    assert_eq!(table.lines().count(), STEPS.len() + 1, "{table}");
    let left: Vec<_> = std::fs::read_dir(place.folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let place = Place::new();
    let refused = place.run(&["bench", "sqlite", "--quick", "--dir", "nowhere"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("nowhere"), "{refused:?}");
    assert!(refused.stderr.contains("--dir"), "{refused:?}");
    let both = place.run(&["bench", "sqlite", "--quick", "--check"]);
    assert_eq!(both.code, Some(2), "a quick run proves no speed");
}
