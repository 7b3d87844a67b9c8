//! What is in deploy/: judged by the tools that will read it, and held against what a worker serves.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use place::Place;
use rowlock_testbed::{Finished, Process, Redis, repository, until};
use serde_json::Value;

fn read(path: &str) -> String {
    let whole = repository().join(path);
    std::fs::read_to_string(whole).unwrap_or_else(|why| panic!("{path}: {why}"))
}

fn promtool(args: &[&str], input: &str) -> Finished {
    let mut promtool = Command::new("promtool");
    promtool.args(args).current_dir(repository());
    Process::run(&mut promtool, input)
}

/// Every metric of docs/metrics.md with its labels; a histogram under all of its names.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let mut metrics = BTreeMap::new();
    let page = read("docs/metrics.md");
    for line in page.lines().filter(|line| line.starts_with("| `rowlock_")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`');
        let labels = cells[3]
            .split(", ")
            .map(|label| label.trim_matches('`').to_owned());
        let labels: BTreeSet<String> = labels.filter(|label| !label.is_empty()).collect();
        if cells[2] == "histogram" {
            for part in ["_bucket", "_sum", "_count"] {
                metrics.insert(format!("{name}{part}"), labels.clone());
            }
        } else {
            metrics.insert(name.to_owned(), labels);
        }
    }
    assert!(metrics.len() > 30, "{metrics:?}");
    metrics
}

/// The words of an expression that begin like a metric of ours, each with the labels it is selected by.
fn named(expression: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for (at, _) in expression.match_indices("rowlock_") {
        let rest = &expression[at..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let labels = match rest[end..].strip_prefix('{') {
            Some(rest) => rest.split('}').next().unwrap().split(',').collect(),
            None => Vec::new(),
        };
        let label = |text: &str| text.split(['=', '!']).next().unwrap().trim().to_owned();
        found.push((
            rest[..end].to_owned(),
            labels.into_iter().map(label).collect(),
        ));
    }
    found
}

fn every_metric_is_documented(file: &str, expressions: &[String]) {
    let documented = documented();
    let mut used = BTreeSet::new();
    for expression in expressions {
        let metrics = named(expression);
        assert!(!metrics.is_empty(), "{file}: {expression}");
        for (name, labels) in metrics {
            let known = documented.get(&name);
            let known = known.unwrap_or_else(|| panic!("{file} has {name}: {expression}"));
            for label in labels {
                assert!(
                    known.contains(&label),
                    "{file}: {name} has no {label}: {expression}"
                );
            }
            used.insert(name);
        }
    }
    assert!(used.len() > 10, "{file} uses only {used:?}");
}

#[test]
fn the_rules_are_sound_and_their_tests_hold() {
    let rules = "deploy/prometheus/rowlock.rules.yml";
    let checked = promtool(&["check", "rules", rules], "");
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stdout.contains("rules found"), "{checked:?}");
    let tested = promtool(
        &["test", "rules", "deploy/prometheus/rowlock.rules.test.yml"],
        "",
    );
    assert_eq!(tested.code, Some(0), "{tested:?}");
    // An expression is one line, or goes on in those that are indented further.
    let text = read(rules);
    let mut expressions: Vec<String> = Vec::new();
    let mut deeper = false;
    for line in text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
    {
        if let Some(rest) = line.strip_prefix("        expr: ") {
            expressions.push(rest.trim_start_matches(">-").to_owned());
            deeper = true;
        } else if deeper && line.starts_with("          ") {
            expressions.last_mut().unwrap().push_str(line);
        } else {
            deeper = false;
        }
    }
    assert_eq!(expressions.len(), text.matches("- alert: ").count());
    every_metric_is_documented(rules, &expressions);
}

#[test]
fn the_dashboard_asks_only_for_metrics_that_there_are() {
    let file = "deploy/grafana/rowlock.json";
    let board: Value = serde_json::from_str(&read(file)).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels
        .iter()
        .map(|panel| panel["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids.len(), panels.len(), "numbers of panels are their own");
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array());
    let mut expressions: Vec<String> = targets
        .flatten()
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect();
    let variables = board["templating"]["list"].as_array().unwrap();
    let queries = variables
        .iter()
        .filter_map(|each| each["definition"].as_str());
    expressions.extend(queries.map(str::to_owned));
    every_metric_is_documented(file, &expressions);
    // Prometheus reads what Grafana leaves of it.
    let mut rules = "groups:\n- name: x\n  rules:\n".to_owned();
    for (n, expression) in expressions.iter().enumerate() {
        if expression.starts_with("label_values(") {
            continue;
        }
        let plain = expression.replace("$__rate_interval", "5m");
        let plain = serde_json::to_string(&plain).unwrap();
        rules += &format!("  - record: x:{n}\n    expr: {plain}\n");
    }
    let place = Place::new();
    place.write("board.yml", &rules);
    let path = place.path("board.yml");
    let checked = promtool(&["check", "rules", path.to_str().unwrap()], "");
    assert_eq!(checked.code, Some(0), "{checked:?}\n{rules}");
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Where the start block says that it listens.
fn address(process: &mut Process) -> String {
    let line = process.line_with("  http       http://");
    let rest = line.split("http://").nth(1).unwrap();
    rest.split('/').next().unwrap().to_owned()
}

#[test]
fn what_a_worker_and_a_drain_serve_is_what_prometheus_wants() {
    let redis = Redis::start();
    let config = format!(
        "[handlers.echo]\nbuiltin = \"echo\"\n[handlers.flaky]\nbuiltin = \"flaky\"\n\
         [[pair]]\nkind = \"make\"\nevery = \"1h\"\nkey = [\"id\"]\nquery = \"SELECT id FROM things\"\n\
         [[cron]]\nname = \"often\"\nkind = \"echo\"\ncron = \"0 3 * * *\"\n\
         [[drain]]\nkinds = [\"sent\"]\nto = \"{}\"\n",
        redis.url()
    );
    let place = Place::with_config(&config);
    place.ok(&["migrate", "up"]);
    place.sql("CREATE TABLE things (id INTEGER PRIMARY KEY); INSERT INTO things VALUES (7)");
    place.ok(&["apply"]);
    // It was due two days ago.
    place.sql("UPDATE rowlock_cron SET next_at = next_at - 2 * 86400000");
    for kind in ["echo", "flaky", "sent"] {
        place.ok(&["enqueue", kind]);
    }
    let mut worker = place.start(&["work", "--listen", "127.0.0.1:0"]);
    let worker_at = address(&mut worker);
    let mut drain = place.start(&["drain", "run", "--listen", "127.0.0.1:0"]);
    let drain_at = address(&mut drain);
    let mut exported = BTreeSet::new();
    for (at, telling) in [
        (
            &worker_at,
            &[
                "rowlock_pair_ticks_total{",
                "rowlock_cron_jobs_total{",
                "outcome=\"retry\"",
            ][..],
        ),
        (&drain_at, &["rowlock_drain_sent_total{"][..]),
    ] {
        let text = until("numbers of everything", || {
            let text = get(at, "/metrics");
            telling
                .iter()
                .all(|name| text.contains(name))
                .then_some(text)
        });
        let judged = promtool(&["check", "metrics"], &text);
        // Its advice is not an error: there must be none.
        let said = format!("{}{}", judged.stdout, judged.stderr);
        assert_eq!((judged.code, said.as_str()), (Some(0), ""), "{text}");
        let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        exported.extend(
            names
                .filter_map(|rest| rest.split(' ').next())
                .map(str::to_owned),
        );
    }
    let known: BTreeSet<String> = rowlock::event::TABLE
        .iter()
        .map(|each| each.name.to_owned())
        .collect();
    assert!(exported.is_subset(&known), "{exported:?}");
}

#[test]
fn the_units_can_be_read_and_start_what_there_is() {
    let place = Place::new();
    for (file, verb) in [
        ("deploy/systemd/rowlock-work.service", &["work"][..]),
        (
            "deploy/systemd/rowlock-drain.service",
            &["drain", "run"][..],
        ),
    ] {
        let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        let mut section = String::new();
        for line in read(file).lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
            {
                section = name.to_owned();
                continue;
            }
            let (key, value) = line
                .split_once('=')
                .unwrap_or_else(|| panic!("{file}: {line}"));
            let entries = sections.entry(section.clone()).or_default();
            let before = entries.insert(key.to_owned(), value.to_owned());
            assert_eq!(before, None, "{file} has {key} twice");
            assert!(
                key.chars().all(|c| c.is_ascii_alphanumeric()),
                "{file}: {line}"
            );
        }
        let names: Vec<&str> = sections.keys().map(String::as_str).collect();
        assert_eq!(names, ["Install", "Service", "Unit"], "{file}");
        // It goes on trying, however long the database is away.
        assert_eq!(sections["Unit"]["StartLimitIntervalSec"], "0", "{file}");
        let service = &sections["Service"];
        assert_eq!(service["User"], "rowlock", "{file}");
        let (program, args) = service["ExecStart"].split_once(' ').unwrap();
        assert_eq!(program, "/usr/local/bin/rowlock");
        let args: Vec<&str> = args.split(' ').collect();
        assert!(args.starts_with(verb), "{file}: {args:?}");
        let help = place.ok(&[verb, &["--help"]].concat());
        for flag in args.iter().filter(|arg| arg.starts_with("--")) {
            assert!(help.contains(flag), "{file}: {flag}");
        }
        // Longer than a worker takes to give its jobs back.
        let stop: u64 = service["TimeoutStopSec"].parse().unwrap();
        assert!(stop > 25, "{file}");
    }
}

#[test]
fn the_image_has_a_user_without_rights_and_a_verb_that_there_is() {
    let text = read("deploy/Dockerfile");
    let of = |word: &str| -> Vec<&str> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(word));
        lines.map(str::trim).collect()
    };
    let images = of("FROM ");
    assert_eq!(images.len(), 2, "{images:?}");
    assert!(
        images.iter().all(|image| !image.contains('/')),
        "{images:?}"
    );
    assert!(
        images[1].starts_with("debian:") && images[1].ends_with("-slim"),
        "{images:?}"
    );
    // A build of today is a build of tomorrow: the compiler is named to the last number, and knows this code.
    let (_, rest) = images[0].split_once("rust:").unwrap();
    let (version, _) = rest.split_once('-').unwrap();
    let numbers: Vec<u32> = version
        .split('.')
        .map(|part| part.parse().unwrap())
        .collect();
    let needed = read("Cargo.toml");
    let needed = needed
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .unwrap();
    let needed: Vec<u32> = needed
        .trim_matches('"')
        .split('.')
        .map(|part| part.parse().unwrap())
        .collect();
    assert!(
        numbers.len() == 3 && numbers >= needed,
        "{version} {needed:?}"
    );
    let user: u32 = of("USER ")[0].parse().unwrap();
    assert!(user > 0);
    assert_eq!(of("ENTRYPOINT "), ["[\"rowlock\"]"]);
    let args: Vec<String> = serde_json::from_str(of("CMD ")[0]).unwrap();
    let help = Place::new().ok(&[&args[0], "--help"]);
    for flag in args.iter().filter(|arg| arg.starts_with("--")) {
        assert!(help.contains(flag.as_str()), "{flag}");
    }
}
