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
use rowlock_testbed::{Process, Redis};
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

/// The same of `bench pairs`: rows, and as many jobs.
const PAIR_STEPS: [(&str, &str, u64, bool); 3] = [
    ("first_tick", "rows/s", 25_000, true),
    ("tick_over_live_jobs", "rows/s", 25_000, false),
    ("tick_with_nothing_to_do", "ms", 0, false),
];

/// The same of `bench redis`, and whether workers that pop one by one are beside it.
const REDIS_STEPS: [(&str, &str, u64, bool, bool); 3] = [
    ("drain_to_redis", "jobs/s", 2_500, true, false),
    ("workers_from_redis", "jobs/s", 2_500, true, true),
    ("redis_away", "ms", 220, false, false),
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
fn ticks_over_rows_with_and_without_jobs_are_measured() {
    let place = Place::new();
    let args = ["bench", "pairs", "--quick", "--json", "--out", "figures"];
    let text = place.ok(&[&args[..], &["--url", "sqlite:own.db"]].concat());
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), PAIR_STEPS.len(), "{text}");
    for (line, (step, unit, rows, has_limit)) in lines.iter().zip(PAIR_STEPS) {
        assert_eq!(line["bench"], "pairs_sqlite");
        assert_eq!((&line["step"], &line["unit"]), (&step.into(), &unit.into()));
        assert_eq!(line["jobs"], rows, "{step}");
        for figure in ["limit", "of_limit"] {
            assert_eq!(line[figure].is_number(), has_limit, "{step}: {figure}");
        }
        assert!(line["ours"].as_f64() > Some(0.0), "{step}");
    }
    assert!(lines[1]["of_first_seconds"].is_number(), "{text}");
    let kept = std::fs::read_to_string(place.path("figures/pairs_sqlite.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["measurements"].as_array().unwrap().len(), 3);
    let left = std::fs::read_dir(place.folder.path()).unwrap();
    assert_eq!(left.count(), 1, "figures alone; the store is not touched");
    let table = place.ok(&["bench", "pairs", "--quick"]);
    assert_eq!(table.lines().count(), 4, "{table}");
}

#[test]
fn ctrl_c_ends_a_measurement_and_leaves_nothing_behind() {
    let place = Place::new();
    let mut bench = place.start(&["bench", "pairs"]);
    bench.line_with("writing 1000000 rows");
    bench.signal("INT");
    let (code, lines) = bench.wait();
    assert_eq!(code, Some(1), "{lines:#?}");
    let left = std::fs::read_dir(place.folder.path()).unwrap();
    assert_eq!(left.count(), 0, "{lines:#?}");
}

#[test]
fn what_needs_a_server_says_how_to_name_one() {
    let place = Place::new();
    for bench in ["api", "pages", "soak", "horizon"] {
        let refused = place.run(&["bench", bench, "--quick"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        let line = format!("rowlock bench {bench} --url postgres://");
        assert!(refused.stderr.contains(&line), "{refused:?}");
    }
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

#[test]
fn draining_is_measured_with_a_redis_of_its_own() {
    let place = Place::with_config("this is = not [a configuration");
    let text = place.ok(&["bench", "redis", "--quick", "--json", "--out", "figures"]);
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), REDIS_STEPS.len(), "{text}");
    for (line, (step, unit, jobs, has_limit, has_canonical)) in lines.iter().zip(REDIS_STEPS) {
        assert_eq!(line["bench"], "redis");
        assert_eq!((&line["step"], &line["unit"]), (&step.into(), &unit.into()));
        assert_eq!(line["jobs"], jobs, "{step}");
        for (figure, is_there) in [
            ("limit", has_limit),
            ("of_limit", has_limit),
            ("canonical", has_canonical),
            ("of_canonical", has_canonical),
        ] {
            assert_eq!(line[figure].is_number(), is_there, "{step}: {figure}");
        }
        assert!(line["ours"].as_f64() > Some(0.0), "{step}");
        assert!(!line["goals"].as_array().unwrap().is_empty(), "{step}");
    }
    for figure in ["taken_at_once", "settled_at_once", "without_slots"] {
        assert!(lines[1][figure].as_f64() >= Some(1.0), "{figure}: {text}");
    }
    assert!(lines[2]["before"].as_f64() > Some(0.0), "{text}");
    let kept = std::fs::read_to_string(place.path("figures/redis.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["measurements"].as_array().unwrap().len(), 3);
    let left = std::fs::read_dir(place.folder.path()).unwrap();
    assert_eq!(left.count(), 2, "the configuration and the figures");
    assert_eq!(servers_of(&place), Vec::<String>::new());
}

#[test]
fn a_redis_that_is_given_is_neither_killed_nor_left_with_anything() {
    let redis = Redis::start();
    redis.command(&["SET", "theirs", "stays"]);
    let place = Place::new();
    let args = ["bench", "redis", "--quick", "--to", &redis.url()];
    let run = place.run(&args);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stdout.lines().count(), 3, "{run:?}");
    assert!(run.stderr.contains("redis_away is left out"), "{run:?}");
    assert_eq!(redis.command(&["KEYS", "*"]), "theirs");
    let nobody = place.run(&["bench", "redis", "--quick", "--to", "redis://127.0.0.1:1"]);
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
    assert!(nobody.stderr.contains("127.0.0.1:1"), "{nobody:?}");
}

#[test]
fn without_a_redis_it_says_how_to_get_one() {
    let place = Place::new();
    let mut bench = place.command(&["bench", "redis", "--quick"]);
    let refused = Process::run(bench.env("PATH", place.folder.path()), "");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for word in ["apt-get install redis-server", "--to redis://"] {
        assert!(refused.stderr.contains(word), "{refused:?}");
    }
}

#[test]
fn ctrl_c_ends_the_redis_as_well() {
    let place = Place::new();
    let mut bench = place.start(&["bench", "redis"]);
    bench.line_with("drain_to_redis of 200000");
    assert_eq!(servers_of(&place).len(), 1);
    bench.signal("INT");
    let (code, lines) = bench.wait();
    assert_eq!(code, Some(1), "{lines:#?}");
    assert_eq!(servers_of(&place), Vec::<String>::new());
    let left = std::fs::read_dir(place.folder.path()).unwrap();
    assert_eq!(left.count(), 0, "{lines:#?}");
}

/// The Redis servers whose files are in a place.
fn servers_of(place: &Place) -> Vec<String> {
    let folder = place.folder.path().canonicalize().unwrap();
    let here = std::fs::read_dir("/proc").unwrap().filter_map(|process| {
        let process = process.ok()?.path();
        let name = std::fs::read_to_string(process.join("comm")).ok()?;
        let at = std::fs::read_link(process.join("cwd")).ok()?;
        (name.starts_with("redis-server") && at.starts_with(&folder)).then_some(name)
    });
    here.collect()
}
