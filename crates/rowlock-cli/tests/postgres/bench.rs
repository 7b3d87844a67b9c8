//! `bench postgres`, `bench pairs` and `bench redis` in a schema of their own.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rowlock_testbed::{Process, Redis, until};
use serde_json::Value;

use crate::store::{CANARY, Store};

/// Databases are the whole server's: whoever looks for what was left must not see another case's.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nothing_is_left(store: &Store) {
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'rowlock%'";
    assert_eq!(store.session().value(schemas), "0");
    let databases = "SELECT count(*) FROM pg_database WHERE datname LIKE 'rowlock_bench%'";
    assert_eq!(store.session().value(databases), "0");
    std::fs::remove_file(store.place.path("rowlock.toml")).unwrap();
    let left = std::fs::read_dir(store.place.folder.path()).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn ticks_are_measured_on_the_server_that_is_named() {
    let _alone = alone();
    let store = Store::empty("this is = not [a configuration");
    let lines = figures(&store, &["bench", "pairs", "--quick", "--json"]);
    let steps = [
        ("first_tick", 25_000, true),
        ("tick_over_live_jobs", 25_000, false),
        ("tick_with_nothing_to_do", 0, false),
    ];
    assert_eq!(lines.len(), steps.len(), "{lines:#?}");
    for (line, (step, rows, has_limit)) in lines.iter().zip(steps) {
        assert_eq!(line["bench"], "pairs_postgres");
        assert_eq!((&line["step"], &line["jobs"]), (&step.into(), &rows.into()));
        assert_eq!(line["of_limit"].is_number(), has_limit, "{step}");
    }
    assert_eq!(lines[2]["index_scans"], 1.0, "one look for a whole tick");
    nothing_is_left(&store);
}

#[test]
fn the_engine_is_measured_on_the_server_that_is_named() {
    let _alone = alone();
    let store = Store::empty("this is = not [a configuration");
    let lines = figures(&store, &["bench", "postgres", "--quick", "--json"]);
    let steps = [
        ("enqueue_1", 16, true, true),
        ("enqueue_16", 64, true, true),
        ("enqueue_bulk", 2_000, true, false),
        ("drain", 2_500, true, true),
        ("drain_without_history", 2_500, true, true),
        ("drain_with_keys", 2_500, true, true),
        ("start", 10, false, false),
        ("idle_worker", 0, false, false),
        ("claims_behind_history", 3, false, false),
        ("stats_behind_history", 3, false, false),
        ("list_behind_history", 3, false, false),
    ];
    assert_eq!(lines.len(), steps.len(), "{lines:#?}");
    for (line, (step, jobs, has_limit, has_canonical)) in lines.iter().zip(steps) {
        assert_eq!(line["bench"], "postgres");
        assert_eq!((&line["step"], &line["jobs"]), (&step.into(), &jobs.into()));
        assert_eq!(line["of_limit"].is_number(), has_limit, "{step}");
        assert_eq!(line["of_canonical"].is_number(), has_canonical, "{step}");
    }
    nothing_is_left(&store);
}

#[test]
fn the_api_is_measured_on_the_server_that_is_named() {
    let _alone = alone();
    let store = Store::empty("this is = not [a configuration");
    let lines = figures(&store, &["bench", "api", "--quick", "--json"]);
    let (last, looks) = lines.split_last().unwrap();
    assert!(looks.len() >= 20, "{lines:#?}");
    for line in looks {
        assert_eq!((&line["bench"], &line["jobs"]), (&"api".into(), &2.into()));
        assert_eq!(
            (&line["unit"], &line["rows"]),
            (&"ms p95".into(), &2_500.0.into())
        );
        assert!(line["of_without"].is_number(), "{line}");
    }
    assert_eq!(
        (&last["step"], &last["jobs"]),
        (&"jobs_while_asked".into(), &1_000.into())
    );
    assert!(last["requests"].as_f64().unwrap() > 0.0, "{last}");
    nothing_is_left(&store);
}

#[test]
fn every_page_is_measured_on_the_server_that_is_named_and_in_a_file() {
    let _alone = alone();
    let store = Store::empty("this is = not [a configuration");
    let lines = figures(&store, &["bench", "pages", "--quick", "--json"]);
    let (pages, others): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line["unit"] == "ms p95");
    assert_eq!((pages.len(), others.len()), (42, 3), "{lines:#?}");
    for line in &pages {
        assert_eq!(
            (&line["bench"], &line["jobs"], &line["rows"]),
            (&"pages".into(), &2.into(), &2_500.0.into())
        );
        assert!(line["of_without"].is_number(), "{line}");
    }
    let of_file = |line: &&&Value| line["step"].as_str().unwrap().ends_with("_sqlite");
    assert_eq!(pages.iter().filter(of_file).count(), 21);
    assert_eq!(others[0]["step"], "open_dashboard");
    for page in ["overview", "job_list", "drains", "health"] {
        assert!(
            others[0][page].as_f64() > Some(0.0),
            "{page}: {}",
            others[0]
        );
    }
    assert_eq!(others[1]["step"], "large_tables_read");
    assert_eq!(others[2]["step"], "rows_read");
    assert!(others[2]["ours"].as_f64() > Some(0.0), "{}", others[2]);
    nothing_is_left(&store);
}

#[test]
fn open_transactions_are_measured_in_databases_of_their_own() {
    let _alone = alone();
    let store = Store::empty("this is = not [a configuration");
    let lines = figures(
        &store,
        &["bench", "postgres", "--pinned", "--quick", "--json"],
    );
    let steps = [
        "under_a_snapshot",
        "under_a_writer",
        "under_a_snapshot_with_keys",
    ];
    assert_eq!(lines.len(), steps.len(), "{lines:#?}");
    for (line, step) in lines.iter().zip(steps) {
        assert_eq!(line["bench"], "postgres_pinned");
        assert_eq!(
            (&line["step"], &line["jobs"]),
            (&step.into(), &4_000.into())
        );
        for figure in [
            "ours",
            "of_without",
            "enqueue_of_without",
            "textbook_fell",
            "wal_per_job",
        ] {
            assert!(line[figure].as_f64() > Some(0.0), "{step} {figure}");
        }
    }
    nothing_is_left(&store);
}

#[test]
fn a_soak_does_every_job_in_a_database_of_its_own() {
    let _alone = alone();
    let store = Store::empty("this is = not [a configuration");
    let lines = figures(&store, &["bench", "soak", "--quick", "--json"]);
    let [line] = &lines[..] else {
        panic!("{lines:#?}");
    };
    assert_eq!(
        (&line["bench"], &line["step"]),
        (&"soak".into(), &"soak".into())
    );
    assert!(line["jobs"].as_u64() > Some(0), "{line}");
    for figure in ["ours", "of_first", "memory_mb", "segment_bytes"] {
        assert!(line[figure].as_f64() > Some(0.0), "{figure}: {line}");
    }
    nothing_is_left(&store);
}

#[test]
fn long_reports_are_measured_with_a_budget_and_without() {
    let _alone = alone();
    let store = Store::empty("this is = not [a configuration");
    let out = store.place.path("out");
    let args = [
        "bench",
        "horizon",
        "--quick",
        "--json",
        "--out",
        out.to_str().unwrap(),
    ];
    let lines = figures(&store, &args);
    let steps = [
        "three_reports_at_once",
        "one_report_at_a_time",
        "prepared_transaction",
        "abandoned_slot",
    ];
    assert_eq!(lines.len(), steps.len(), "{lines:#?}");
    for (line, step) in lines.iter().zip(steps) {
        assert_eq!(
            (&line["bench"], &line["step"]),
            (&"horizon".into(), &step.into())
        );
        assert!(line["jobs"].as_u64() > Some(0), "{line}");
        let looks = line["runs"]["seconds"].as_array().unwrap().len();
        assert_eq!(line["runs"]["dead_orders"].as_array().unwrap().len(), looks);
    }
    for line in &lines[..2] {
        assert_eq!(line["named_by_guard"], 3.0, "{line}");
        assert!(line["horizon_age_max"].as_f64() > Some(0.0), "{line}");
        assert!(line["dead_orders_max"].as_f64() > Some(0.0), "{line}");
    }
    for line in &lines[2..] {
        let rows = |when: &str| line[when].as_f64().unwrap();
        assert!(rows("dead_before_remedy") > 0.0, "{line}");
        assert!(
            rows("dead_after_remedy") < rows("dead_before_remedy"),
            "{line}"
        );
    }
    let svg = std::fs::read_to_string(out.join("horizon.svg")).unwrap();
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    assert_eq!(svg.matches("<polyline").count(), 12, "{svg}");
    let kept: Value =
        serde_json::from_slice(&std::fs::read(out.join("horizon.json")).unwrap()).unwrap();
    assert_eq!(kept["measurements"].as_array().unwrap().len(), 4);
    std::fs::remove_dir_all(out).unwrap();
    nothing_is_left(&store);
}

fn figures(store: &Store, args: &[&str]) -> Vec<Value> {
    let text = store.ok(args);
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn draining_is_measured_on_the_server_that_is_named() {
    let _alone = alone();
    let store = Store::empty("this is = not [a configuration");
    let lines = figures(&store, &["bench", "redis", "--quick", "--json"]);
    let steps = [
        ("drain_to_redis", 2_500),
        ("drain_to_redis_postgres", 2_500),
        ("workers_from_redis", 2_500),
        ("drain_under_the_pin", 500),
        ("redis_away", 220),
        ("redis_away_postgres", 220),
    ];
    assert_eq!(lines.len(), steps.len(), "{lines:#?}");
    for (line, (step, jobs)) in lines.iter().zip(steps) {
        assert_eq!(line["bench"], "redis");
        assert_eq!((&line["step"], &line["jobs"]), (&step.into(), &jobs.into()));
        assert!(line["ours"].as_f64() > Some(0.0), "{step}");
    }
    let pinned = &lines[3];
    assert_eq!(pinned["under_the_pin"], 2_000.0, "{pinned}");
    for figure in ["without", "of_without", "a_a"] {
        assert!(pinned[figure].is_number(), "{figure}: {pinned}");
    }
    nothing_is_left(&store);
}

#[test]
fn ctrl_c_leaves_no_schema_behind() {
    let _alone = alone();
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

/// How many prepared transactions, slots and databases of ours the server has.
fn left(store: &Store) -> [String; 3] {
    [
        "SELECT count(*) FROM pg_prepared_xacts WHERE gid LIKE 'rowlock_bench_t%'",
        "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'rowlock_bench_t%'",
        "SELECT count(*) FROM pg_database WHERE datname LIKE 'rowlock_bench_t%'",
    ]
    .map(|text| store.session().value(text))
}

/// A run that holds a prepared transaction, or a slot.
fn in_the_middle(store: &Store, of: usize) -> Process {
    let mut run = store.command(&["bench", "horizon", "--quick", "--json"]);
    let run = Process::start(&mut run);
    until("it is in the middle", || {
        (left(store)[of] == "1").then_some(())
    });
    run
}

#[test]
fn what_a_killed_run_has_left_is_removed_by_clean_and_by_the_next_run() {
    let _alone = alone();
    let store = Store::empty("this is = not [a configuration");
    let session = store.session();
    // Others may be called nearly so.
    session
        .execute("CREATE SCHEMA rowlock_bench_theirs")
        .unwrap();
    session
        .execute("CREATE SCHEMA rowlock_bench_t1_2_3_theirs")
        .unwrap();
    for next in [
        &["bench", "horizon", "--clean"] as &[&str],
        &["bench", "pairs", "--quick", "--json"],
    ] {
        let run = in_the_middle(&store, 0);
        run.signal("KILL");
        run.wait();
        assert_eq!(left(&store), ["1", "0", "2"]);
        let schema = "SELECT pid FROM pg_stat_activity WHERE application_name ~ '^rowlock_bench_t[0-9a-f]+_[0-9a-f]+$'";
        until("its session has ended", || {
            session.query(schema).unwrap().is_empty().then_some(())
        });
        let done = store.run(next);
        assert_eq!(done.code, Some(0), "{done:?}");
        let told = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(
            told.matches("removed the database rowlock_bench_t").count(),
            2,
            "{told}"
        );
        assert_eq!(
            told.matches("removed the prepared transaction").count(),
            1,
            "{told}"
        );
        assert!(!told.contains(CANARY), "{told}");
        assert_eq!(left(&store), ["0", "0", "0"]);
    }
    let theirs = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'rowlock_bench_%theirs'";
    assert_eq!(session.value(theirs), "2");
    let nothing = store.ok(&["bench", "horizon", "--clean"]);
    assert_eq!(nothing, "nothing was left over\n");
}

#[test]
fn a_run_that_lives_is_left_alone() {
    let _alone = alone();
    let store = Store::empty("this is = not [a configuration");
    let run = in_the_middle(&store, 0);
    let nothing = store.ok(&["bench", "horizon", "--clean"]);
    assert_eq!(nothing, "nothing was left over\n");
    run.signal("INT");
    assert_eq!(run.wait().0, Some(1));
    assert_eq!(left(&store), ["0", "0", "0"]);
}

#[test]
fn a_slot_goes_with_the_run_however_that_ends() {
    let _alone = alone();
    let store = Store::empty("this is = not [a configuration");
    for signal in ["HUP", "TERM", "KILL"] {
        let run = in_the_middle(&store, 1);
        run.signal(signal);
        run.wait();
        until("the slot is gone", || {
            (left(&store)[1] == "0").then_some(())
        });
        if signal != "KILL" {
            assert_eq!(left(&store), ["0", "0", "0"], "{signal}");
        }
    }
    store.ok(&["bench", "horizon", "--clean"]);
}

#[test]
fn keys_of_a_killed_run_are_removed_from_redis() {
    let redis = Redis::start();
    redis.command(&["SET", "rowlock:{rowlock_bench_others}:x", "1"]);
    let place = crate::place::Place::new();
    let to = redis.url();
    let run = place.start(&["bench", "redis", "--quick", "--to", &to]);
    let keys = || {
        redis.command(&[
            "EVAL",
            "return #redis.call('KEYS', 'rowlock:{rowlock_bench_t*')",
            "0",
        ])
    };
    until("there are keys", || (keys() != "0").then_some(()));
    run.signal("KILL");
    run.wait();
    assert_ne!(keys(), "0");
    until("they are removed", || {
        place.ok(&["bench", "redis", "--to", &to, "--clean"]);
        (keys() == "0").then_some(())
    });
    assert_eq!(
        redis.command(&["EXISTS", "rowlock:{rowlock_bench_others}:x"]),
        "1"
    );
}
