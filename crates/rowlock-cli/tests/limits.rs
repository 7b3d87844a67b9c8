//! Limits of the machine: a full disk, and memory beside a long backlog.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use std::process::Command;

use place::Place;
use rowlock_testbed::Process;

/// Puts jobs into the store as any language would, but a million of them at once.
fn backlog(place: &Place, kind: &str, jobs: u32) {
    let connection = rusqlite::Connection::open(place.path("rowlock.db")).unwrap();
    let sql = format!(
        "INSERT INTO rowlock_job (kind, queue, priority, state, max_attempts, scheduled_at, created_at, unique_until, payload)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {jobs})
         SELECT '{kind}', 'default', 0, 'pending', 5, 0, 0, 'finished', '{{\"n\":' || i || '}}' FROM n"
    );
    connection.execute_batch(&sql).unwrap();
}

/// The most memory a process has had so far, in KiB, without the pages of its program: those of a build for
/// tests are several times those of a release, grow with everything that is linked, and are in a file.
fn peak_kib(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let number = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    number("VmHWM:") - number("RssFile:")
}

/// What a worker has needed at most when it has run 20,000 of so many jobs, in KiB.
fn peak_beside(jobs: u32) -> u64 {
    let place = Place::new();
    place.write("rowlock.toml", "[handlers.say]\nbuiltin = \"echo\"\n");
    place.ok(&["migrate", "up"]);
    backlog(&place, "say", jobs);
    let mut worker = Process::start(&mut place.command(&["work"]));
    worker.line_with("{\"n\":20000}");
    let peak = peak_kib(&worker);
    worker.signal("TERM");
    assert_eq!(worker.wait().0, Some(0));
    peak
}

#[test]
fn a_worker_needs_no_more_memory_beside_a_million_jobs_than_beside_few() {
    let (few, many) = (peak_beside(25_000), peak_beside(1_000_000));
    println!("peak memory of the worker: {few} KiB beside few, {many} KiB beside many");
    assert!(many * 2 < few * 3, "{many} KiB, {few} KiB beside few");
    // A release's program has 15 MiB: 30 in all.
    assert!(many < 15 * 1024, "{many} KiB");
}

/// The command under a limit on the size of the files it writes. The signal is ignored, so that the
/// process sees an error, as on a full disk.
fn limited(place: &Place, blocks: u32, arguments: &[&str]) -> Command {
    let plain = place.command(arguments);
    let mut command = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -S -f {blocks}; exec \"$0\" \"$@\"");
    command
        .arg("-c")
        .arg(script)
        .arg(plain.get_program())
        .args(plain.get_args());
    if let Some(folder) = plain.get_current_dir() {
        command.current_dir(folder);
    }
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[test]
fn a_bulk_enqueue_on_a_full_disk_says_where_to_go_on_and_loses_nothing() {
    let place = Place::new();
    place.ok(&["migrate", "up"]);
    let payload = "x".repeat(400);
    let lines: Vec<String> = (1..=20_000)
        .map(|n| format!("{{\"kind\":\"say\",\"payload\":{{\"n\":{n},\"x\":\"{payload}\"}}}}"))
        .collect();
    place.write("jobs.ndjson", lines.join("\n"));
    let full = Process::run(
        &mut limited(&place, 4_000, &["enqueue", "--from", "jobs.ndjson"]),
        "",
    );
    assert!(matches!(full.code, Some(1 | 4)), "{full:?}");
    let go_on = full.stderr.split("tail -n +").nth(1).expect("how to go on");
    let next: usize = go_on.split_whitespace().next().unwrap().parse().unwrap();
    assert!(next > 1 && next < 20_000, "{}", full.stderr);
    let rest = lines[next - 1..].join("\n");
    let done = Process::run(&mut place.command(&["enqueue", "--from", "-"]), &rest);
    assert_eq!(done.code, Some(0), "{done:?}");
    let connection = rusqlite::Connection::open(place.path("rowlock.db")).unwrap();
    let counted: (i64, i64) = connection
        .query_row(
            "SELECT count(*), count(DISTINCT json_extract(payload, '$.n')) FROM rowlock_job",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(counted, (20_000, 20_000), "each line once");
}

#[test]
fn a_worker_on_a_full_disk_waits_and_goes_on_when_there_is_room() {
    let place = Place::new();
    place.write("rowlock.toml", "[handlers.say]\nbuiltin = \"noop\"\n");
    place.ok(&["migrate", "up"]);
    backlog(&place, "say", 5_000);
    let mut worker = Process::start(&mut limited(&place, 2_000, &["work", "--once"]));
    worker.line_with("waits for the store");
    let pid = worker.id().to_string();
    let raised = Command::new("prlimit")
        .args(["--pid", &pid, "--fsize=unlimited"])
        .status()
        .unwrap();
    assert!(raised.success());
    // It ends by itself once nothing is due and everything was settled.
    let (code, lines) = worker.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    let stats = place.json(&["stats", "--json"]);
    assert_eq!(stats["completed"], 5_000, "{stats}");
}
