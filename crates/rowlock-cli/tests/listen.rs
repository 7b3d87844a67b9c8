//! What a worker tells over HTTP, asked by a client that knows nothing but a socket.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use place::Place;
use rowlock_testbed::{Process, repository, until};

const KINDS: &str = "[handlers.echo]\nbuiltin = \"echo\"\n[handlers.flaky]\nbuiltin = \"flaky\"\n";

/// A pair beside them.
const PAIR: &str = "[[pair]]\nkind = \"make\"\nevery = \"1h\"\nkey = [\"id\"]\n\
                    query = \"SELECT id FROM things\"\nqueue = \"made\"\n";

/// Where the start block says that it listens.
fn address(process: &mut Process) -> String {
    let line = process.line_with("  http       http://");
    let rest = line.trim_start().strip_prefix("http       http://");
    let address = rest.and_then(|rest| rest.strip_suffix("/metrics  /livez  /readyz"));
    address.unwrap_or_else(|| panic!("{line}")).to_owned()
}

/// The status and the body.
fn ask(address: &str, method: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.unwrap_or_else(|| panic!("{head}")), body.to_owned())
}

fn get(address: &str, path: &str) -> (u16, String) {
    ask(address, "GET", path)
}

/// A worker that has joined and has run two jobs, one of them to be tried again.
fn worker(place: &Place) -> (Process, String) {
    place.ok(&["enqueue", "echo"]);
    place.ok(&["enqueue", "flaky"]);
    let mut worker = place.start(&["work", "-v", "--listen", "127.0.0.1:0"]);
    let address = address(&mut worker);
    // The order of the two is nobody's promise.
    for _ in 0..2 {
        worker.line_with("settled job=");
    }
    (worker, address)
}

/// The same beside a pair, which has found its one row.
fn worker_with_pair(place: &Place) -> (Process, String) {
    place.ok(&["migrate", "up"]);
    place.sql("CREATE TABLE things (id INTEGER PRIMARY KEY); INSERT INTO things VALUES (7)");
    let (worker, address) = worker(place);
    until("a tick", || {
        let (_, text) = get(&address, "/metrics");
        text.contains("rowlock_pair_ticks_total{").then_some(())
    });
    (worker, address)
}

#[test]
fn a_worker_tells_that_it_lives_and_works_until_it_ends() {
    let place = Place::with_config(KINDS);
    let (worker, address) = worker(&place);
    assert_eq!(get(&address, "/livez"), (200, "ok\n".to_owned()));
    assert_eq!(get(&address, "/readyz"), (200, "ok\n".to_owned()));
    assert_eq!(get(&address, "/jobs").0, 404);
    assert_eq!(get(&address, "/").0, 404);
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(ask(&address, "POST", path).0, 405, "{path}");
        assert_eq!(ask(&address, "DELETE", path).0, 405, "{path}");
    }
    worker.signal("TERM");
    let (code, lines) = worker.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    assert!(TcpStream::connect(&address).is_err());
}

#[test]
fn a_client_that_never_finishes_its_request_does_not_keep_a_worker_from_ending() {
    let place = Place::with_config(KINDS);
    let (worker, address) = worker(&place);
    let mut slow = TcpStream::connect(&address).unwrap();
    slow.write_all(b"GET /livez HTTP/1.1\r\nHos").unwrap();
    assert_eq!(get(&address, "/livez").0, 200);
    worker.signal("TERM");
    assert_eq!(worker.wait().0, Some(0));
}

/// Connections that begin a request and never end it.
fn slow(address: &str, count: usize) -> Vec<TcpStream> {
    let open = |number: usize| {
        let mut stream = TcpStream::connect(address).unwrap();
        let said = ["", "GET /livez HTTP/1.1\r\nX-Slow: "][number % 2];
        stream.write_all(said.as_bytes()).unwrap();
        stream
    };
    (0..count).map(open).collect()
}

fn probes_are_answered_beside(slow: &[TcpStream], address: &str) {
    for path in ["/livez", "/readyz", "/livez"] {
        assert_eq!(get(address, path), (200, "ok\n".to_owned()));
    }
    // Nothing was waited for: the last of them is still there.
    let last = slow.last().unwrap();
    last.set_nonblocking(true).unwrap();
    let still = last.peek(&mut [0]).unwrap_err();
    assert_eq!(still.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn probes_are_answered_beside_a_thousand_slow_connections() {
    let place = Place::with_config(KINDS);
    let (worker, address) = worker(&place);
    let mut all = slow(&address, 300);
    probes_are_answered_beside(&all, &address);
    all.extend(slow(&address, 700));
    probes_are_answered_beside(&all, &address);
    worker.signal("TERM");
    assert_eq!(worker.wait().0, Some(0));
}

#[test]
fn probes_are_answered_by_a_worker_that_may_have_few_files() {
    let place = Place::with_config(KINDS);
    let mut shell = place.shell("ulimit -n 64; exec rowlock work --listen 127.0.0.1:0");
    let mut worker = Process::start(&mut shell);
    let address = address(&mut worker);
    let all = slow(&address, 300);
    probes_are_answered_beside(&all, &address);
    // It still has files for its store.
    place.ok(&["enqueue", "echo"]);
    rowlock_testbed::until("the job is done", || {
        (place.json(&["stats", "--json"])["completed"] == 1).then_some(())
    });
    worker.signal("TERM");
    assert_eq!(worker.wait().0, Some(0));
}

#[test]
fn a_worker_is_not_ready_when_its_file_is_moved_away() {
    let place = Place::with_config(KINDS);
    let (_worker, address) = worker(&place);
    assert_eq!(get(&address, "/readyz").0, 200);
    std::fs::rename(place.path("rowlock.db"), place.path("away.db")).unwrap();
    let (status, why) = get(&address, "/readyz");
    assert_eq!(status, 503, "{why}");
    assert_eq!(why.lines().count(), 1, "{why}");
    assert!(why.contains("can't be seen any more"), "{why}");
    assert_eq!(get(&address, "/livez").0, 200);
    let (status, text) = get(&address, "/metrics");
    assert_eq!(status, 200);
    assert!(text.contains("\nrowlock_store_up 0\n"), "{text}");
}

#[test]
fn what_is_exported_is_what_the_table_and_the_page_list() {
    let place = Place::with_config(&format!("{KINDS}{PAIR}"));
    let (_worker, address) = worker_with_pair(&place);
    place.ok(&["switch", "set", "kind:make", "reject", "--reason", "x"]);
    place.ok(&["enqueue", "make", r#"{"id":8}"#]);
    let (status, text) = get(&address, "/metrics");
    assert_eq!(status, 200);
    let words = |line: &str| -> Option<(String, String)> {
        let (name, of) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        Some((name.to_owned(), of.to_owned()))
    };
    let exported: BTreeMap<_, _> = text.lines().filter_map(words).collect();
    let table: BTreeMap<_, _> = rowlock::event::TABLE
        .iter()
        .map(|each| (each.name.to_owned(), each.of.as_str().to_owned()))
        .collect();
    // Crons are counted when they fire, routes by a drain, some by whoever has a guard or a budget, and the rest
    // only a server has.
    let mut steady = table.clone();
    let others = [
        "rowlock_cron_",
        "rowlock_drain_",
        "rowlock_guard_",
        "rowlock_budget_",
        "rowlock_horizon_",
        "rowlock_dead_rows",
        "rowlock_database_dead_rows",
        "rowlock_ring_",
        "rowlock_segment_",
        "rowlock_wal_bytes_total",
        // Only once the store has refused one.
        "rowlock_verdicts_held",
    ];
    steady.retain(|name, _| !others.iter().any(|other| name.starts_with(other)));
    assert_eq!(exported, steady, "{text}");
    let page = std::fs::read_to_string(repository().join("docs/metrics.md")).unwrap();
    let named = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let named: Vec<_> = named.filter_map(|rest| rest.split('`').next()).collect();
    assert_eq!(named.len(), table.len());
    assert!(named.iter().all(|name| table.contains_key(*name)));
    for line in [
        "rowlock_claimed_jobs_total 2",
        "rowlock_attempts_total{kind=\"echo\",outcome=\"done\"} 1",
        "rowlock_attempts_total{kind=\"flaky\",outcome=\"retry\"} 1",
        "rowlock_retries_total{kind=\"flaky\"} 1",
        "rowlock_settled_total{answer=\"accepted\"} 2",
        "rowlock_settled_total{answer=\"lease_lost\"} 0",
        "rowlock_run_seconds_count{kind=\"echo\"} 1",
        "rowlock_wait_seconds_bucket{kind=\"echo\",le=\"+Inf\"} 1",
        "rowlock_ack_batch_jobs_sum 2",
        "rowlock_queue_jobs{queue=\"default\",state=\"completed\"} 1",
        "rowlock_queue_jobs{queue=\"default\",state=\"retrying\"} 1",
        "rowlock_queue_oldest_seconds{queue=\"default\"} 0",
        "rowlock_store_up 1",
        "rowlock_pair_found{pair=\"make\"} 1",
        "rowlock_pair_held_back{pair=\"make\"} 0",
        "rowlock_pair_uncovered_rows{pair=\"make\"} 0",
        "rowlock_pair_paused{pair=\"make\"} 0",
        "rowlock_pair_lost_enqueues_total{pair=\"make\"} 1",
        "rowlock_pair_ineffective_total{pair=\"make\"} 0",
        "rowlock_switch_rejected_total{target=\"kind\",name=\"make\"} 1",
    ] {
        assert!(text.lines().any(|each| each == line), "{line}\n{text}");
    }
}

#[test]
fn a_worker_is_not_ready_while_a_pair_is_overdue_unless_it_is_paused() {
    let place = Place::with_config(&format!("{KINDS}{PAIR}"));
    let (_worker, address) = worker_with_pair(&place);
    assert_eq!(get(&address, "/readyz"), (200, "ok\n".to_owned()));
    let late = "UPDATE rowlock_post SET last_success = last_success - 4 * 3600000";
    place.sql(late);
    let (status, why) = get(&address, "/readyz");
    assert_eq!(status, 503, "{why}");
    assert!(why.starts_with("pair make is overdue by 2 h"), "{why}");
    place.ok(&["switch", "set", "pair:make", "pause", "--reason", "x"]);
    assert_eq!(get(&address, "/readyz").0, 200);
    let (_, text) = get(&address, "/metrics");
    let paused = "rowlock_pair_paused{pair=\"make\"} 1\n";
    assert!(text.contains(paused), "{text}");
    place.ok(&["switch", "clear", "pair:make"]);
    assert_eq!(get(&address, "/readyz").0, 503);
    place.ok(&["reconcile", "run", "make"]);
    assert_eq!(get(&address, "/readyz").0, 200);
}

#[test]
fn a_port_that_is_taken_is_an_error_when_it_was_asked_for() {
    let place = Place::with_config(KINDS);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for verb in ["work", "dev"] {
        let refused = place.run(&[verb, "--listen", &address]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let why = format!("can't listen on {address}");
        assert!(refused.stderr.contains(&why), "{refused:?}");
    }
    let typo = place.run(&["work", "--listen", "9090"]);
    assert_eq!(typo.code, Some(2), "{typo:?}");
}

#[test]
fn dev_listens_and_goes_on_without_when_its_usual_port_is_taken() {
    let place = Place::new();
    let mut dev = place.start(&["dev", "--listen", "127.0.0.1:0"]);
    let address = address(&mut dev);
    assert_eq!(get(&address, "/livez").0, 200);
    // Of two that want the usual port one at most gets it, whatever else runs on this machine.
    let others = [(); 2].map(|()| {
        let mut other = place.start(&["dev"]);
        other.line_with("Try:");
        other
    });
    let mut without = 0;
    for process in [dev].into_iter().chain(others) {
        process.signal("TERM");
        let (code, lines) = process.wait();
        assert_eq!(code, Some(0), "{lines:#?}");
        let said = |words: &str| lines.iter().any(|line| line.contains(words));
        let warned = said("warning: can't listen on 127.0.0.1:7878");
        assert_eq!(warned, said("going on without"), "{lines:#?}");
        assert_ne!(warned, said("http://"), "{lines:#?}");
        without += usize::from(warned);
    }
    assert!(without >= 1, "two have one port");
}

/// The same with a header of the client's.
fn ask_with(address: &str, path: &str, header: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: x\r\n{header}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.unwrap_or_else(|| panic!("{answer}")), answer)
}

#[test]
fn numbers_can_ask_for_a_token_and_probes_never_do() {
    const TOKENS: [&str; 2] = ["0123456789abcdef-of-file", "0123456789abcdef-of-env"];
    let place = Place::with_config(&format!("{KINDS}[metrics]\ntoken_file = \"tokens\"\n"));
    place.write("tokens", format!("reader {}\n", TOKENS[0]));
    for dashboard in [false, true] {
        let verb: &[&str] = match dashboard {
            true => &["dashboard", "--bind", "127.0.0.1:0"],
            false => &["work", "--listen", "127.0.0.1:0"],
        };
        place.ok(&["migrate", "up"]);
        let mut command = place.command(verb);
        command.env("ROWLOCK_METRICS_TOKEN", TOKENS[1]);
        let mut process = Process::start(&mut command);
        let address = address(&mut process);
        for token in TOKENS {
            let bearer = format!("Authorization: Bearer {token}");
            let (status, text) = ask_with(&address, "/metrics", &bearer);
            assert_eq!(status, 200, "{text}");
            assert!(text.contains("rowlock_"), "{text}");
        }
        for none in [
            "X-Nothing: 1",
            "Authorization: Bearer 0123456789abcdef-of-none",
        ] {
            let (status, text) = ask_with(&address, "/metrics", none);
            assert_eq!(status, 401, "{text}");
            let named = text
                .to_ascii_lowercase()
                .contains("www-authenticate: bearer");
            assert!(named && !text.contains("rowlock_jobs"), "{text}");
        }
        assert_eq!(get(&address, "/livez").0, 200);
        assert_ne!(get(&address, "/readyz").0, 401);
        process.signal("TERM");
        process.wait();
    }
}
