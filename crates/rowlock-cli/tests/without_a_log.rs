//! Processes that can't write to stderr, or whose tasks panic: they go on, and hold no job that they don't run.
#![cfg(target_os = "linux")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use std::fs::File;
use std::io::{ErrorKind, PipeReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use place::Place;
use rowlock_testbed::{Redis, until};
use serde_json::Value;

/// Every attempt fails, which is logged; the last one ends the job.
const FAILS: &str = "[worker]\nlease = \"1s\"\n[handlers.fails]\nexec = [\"false\"]\nmax_attempts = 2\n\
                     backoff = { kind = \"fixed\", base = \"10ms\" }\n";
const JOBS: u64 = 30;
/// As the system has it.
const O_NONBLOCK: i32 = 0o4000;

/// What is wrong with a stderr.
#[derive(Debug, Clone, Copy)]
enum Stderr {
    /// A disk without room.
    Full,
    Closed,
    /// A pipe that lost its reader.
    Abandoned,
    /// A pipe that its reader doesn't read, and that takes nothing more.
    Unread,
}

const ALL: [Stderr; 4] = [
    Stderr::Full,
    Stderr::Closed,
    Stderr::Abandoned,
    Stderr::Unread,
];

/// A process of which nothing is heard. It is killed when this is dropped.
struct Silent {
    child: Child,
    /// The other end of its stderr.
    reader: Option<PipeReader>,
}

impl Silent {
    fn start(place: &Place, args: &[&str], stderr: Stderr) -> Self {
        Self::spawn(place.command(args), stderr)
    }

    /// Its stdout is a pipe that isn't read, and that takes nothing more.
    fn mute(place: &Place, args: &[&str]) -> (Self, PipeReader) {
        let (reader, writer) = std::io::pipe().unwrap();
        fill(writer.as_raw_fd());
        let child = place
            .command(args)
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let silent = Self {
            child,
            reader: None,
        };
        (silent, reader)
    }

    fn spawn(mut command: Command, stderr: Stderr) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (to, reader) = match stderr {
            Stderr::Full => (Stdio::from(full), None),
            Stderr::Closed => (Stdio::null(), None),
            Stderr::Abandoned => (Stdio::from(writer), None),
            Stderr::Unread => {
                fill(writer.as_raw_fd());
                (Stdio::from(writer), Some(reader))
            }
        };
        if matches!(stderr, Stderr::Closed) {
            command = closed(&command);
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(to)
            .spawn()
            .unwrap();
        Self { child, reader }
    }

    /// Asks it to stop, and it does.
    fn stop(&mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        let code = until("the end", || self.child.try_wait().unwrap());
        assert_eq!(code.code(), Some(0));
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same command with its stderr closed, by a shell.
fn closed(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" 2>&-"]);
    shell.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// Writes to a pipe until it takes nothing more.
fn fill(pipe: i32) {
    // Opened anew: whether a write waits is a matter of the opened file, which the child inherits.
    let mut options = File::options();
    options.write(true).custom_flags(O_NONBLOCK);
    let mut pipe = options.open(format!("/proc/self/fd/{pipe}")).unwrap();
    while match pipe.write(&[b'.'; 4096]) {
        Ok(_) => true,
        Err(why) if why.kind() == ErrorKind::WouldBlock => false,
        Err(why) => panic!("{why}"),
    } {}
}

/// A port that was free a moment ago: a process that can't say where it listens is told.
fn free() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// The status and the body, as soon as somebody listens.
fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = until("a listener", || TcpStream::connect(address).ok());
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.unwrap_or_else(|| panic!("{head}")), body.to_owned())
}

fn wait_for(place: &Place, what: &str, number: u64) -> Value {
    until(&format!("{what} is {number}"), || {
        let stats = place.json(&["stats", "--json"]);
        (stats[what] == number).then_some(stats)
    })
}

fn enqueue(place: &Place, kind: &str, jobs: u64) {
    let jobs = usize::try_from(jobs).unwrap();
    place.write(
        "jobs.ndjson",
        format!("{{\"kind\":\"{kind}\"}}\n").repeat(jobs),
    );
    place.ok(&["enqueue", "--from", "jobs.ndjson"]);
}

fn works_on(stderr: Stderr) {
    let place = Place::with_config(FAILS);
    enqueue(&place, "fails", JOBS);
    let address = free();
    let mut worker = Silent::start(&place, &["work", "--listen", &address], stderr);
    let stats = wait_for(&place, "failed", JOBS);
    assert_eq!(stats["processing"], 0, "{stats}");
    enqueue(&place, "fails", 1);
    wait_for(&place, "failed", JOBS + 1);
    assert_eq!(get(&address, "/readyz"), (200, "ok\n".to_owned()));
    worker.stop();
    assert_eq!(place.json(&["stats", "--json"])["processing"], 0);
}

#[test]
fn a_worker_goes_on_when_its_log_disk_is_full() {
    works_on(Stderr::Full);
}

#[test]
fn a_worker_goes_on_when_its_stderr_is_closed() {
    works_on(Stderr::Closed);
}

#[test]
fn a_worker_goes_on_when_the_reader_of_its_log_is_gone() {
    works_on(Stderr::Abandoned);
}

#[test]
fn a_worker_goes_on_when_the_reader_of_its_log_reads_nothing() {
    works_on(Stderr::Unread);
}

#[test]
fn a_worker_says_how_many_lines_were_lost_once_its_log_is_read_again() {
    let place = Place::with_config("[handlers.echo]\nbuiltin = \"echo\"\n");
    // More than waits in memory.
    enqueue(&place, "echo", 26_000);
    let mut worker = Silent::start(&place, &["work", "-v"], Stderr::Unread);
    wait_for(&place, "completed", 26_000);
    let mut text = worker.reader.take().unwrap();
    let reading = std::thread::Builder::new().spawn(move || {
        let mut all = String::new();
        text.read_to_string(&mut all).unwrap();
        all
    });
    enqueue(&place, "echo", 1);
    wait_for(&place, "completed", 26_001);
    worker.stop();
    let all = reading.unwrap().join().unwrap();
    assert!(all.contains("lines of the log are lost"), "{}", all.len());
    let last = all.lines().last().unwrap();
    assert!(last.ends_with("stopped settled=26001 lost=0"), "{last}");
}

#[test]
fn a_dashboard_and_dev_go_on_without_their_log() {
    for stderr in ALL {
        for verb in [&["dashboard", "--bind"], &["dev", "--listen"]] {
            let place = Place::new();
            place.ok(&["enqueue", "sleep", "{\"seconds\":0}"]);
            let address = free();
            let mut process = Silent::start(&place, &[verb[0], verb[1], &address], stderr);
            assert_eq!(get(&address, "/livez").0, 200, "{verb:?} {stderr:?}");
            assert_eq!(get(&address, "/").0, 200, "{verb:?} {stderr:?}");
            let ended = if verb[0] == "dev" { 1 } else { 0 };
            wait_for(&place, "completed", ended);
            process.stop();
        }
    }
}

#[test]
fn a_drain_goes_on_without_its_log() {
    for stderr in ALL {
        let redis = Redis::start();
        let url = redis.url();
        let place = Place::with_config(&format!(
            "[worker]\nlease = \"1s\"\n[handlers.mail]\nbuiltin = \"noop\"\n[[drain]]\nkinds = [\"mail\"]\nto = \"{url}\"\n"
        ));
        place.ok(&["apply"]);
        let address = free();
        let mut drain = Silent::start(&place, &["drain", "run", "--listen", &address], stderr);
        let sink_is = |up: u8| {
            let line = format!("rowlock_drain_sink_up{{route=\"redis\"}} {up}");
            until(&line, || {
                get(&address, "/metrics").1.contains(&line).then_some(())
            });
        };
        sink_is(1);
        // Of this it says many lines.
        redis.kill();
        sink_is(0);
        redis.restart();
        enqueue(&place, "mail", 10);
        until("all of it sent", || {
            let status = place.json(&["drain", "status", "--json"]);
            (status["ready"] == 10).then_some(())
        });
        until("it is ready", || {
            (get(&address, "/readyz").0 == 200).then_some(())
        });
        drain.stop();
    }
}

/// A worker whose tasks panic at a place.
fn panicking(place: &Place, at: &str, args: &[&str]) -> Silent {
    let mut command = place.command(args);
    command.env("ROWLOCK_PANIC_AT", at);
    Silent::spawn(command, Stderr::Closed)
}

const NOOP: &str = "[worker]\nlease = \"1s\"\n[handlers.noop]\nbuiltin = \"noop\"\n\
                    backoff = { kind = \"fixed\", base = \"10ms\" }\n";

#[test]
fn a_slot_that_panics_gives_its_job_back_and_is_replaced() {
    let place = Place::with_config(NOOP);
    enqueue(&place, "noop", 10);
    let address = free();
    let args = ["work", "--concurrency", "1", "--listen", &address];
    let mut worker = panicking(&place, "slot.took#3", &args);
    wait_for(&place, "completed", 10);
    assert_eq!(get(&address, "/readyz"), (200, "ok\n".to_owned()));
    let (_, numbers) = get(&address, "/metrics");
    let counted = "rowlock_task_panics_total{task=\"rowlock-slot\"} 1";
    assert!(numbers.contains(counted), "{numbers}");
    let jobs = (1..=10).map(|id| place.json(&["job", "show", &id.to_string(), "--json"]));
    let charged: Vec<Value> = jobs
        .filter(|job| job["errors"] != serde_json::json!([]))
        .collect();
    assert_eq!(charged.len(), 1, "{charged:?}");
    assert_eq!(charged[0]["errors"][0]["kind"], "panic", "{charged:?}");
    worker.stop();
}

#[test]
fn a_worker_whose_slots_cannot_be_replaced_is_not_ready() {
    let place = Place::with_config(NOOP);
    enqueue(&place, "noop", 1);
    let address = free();
    let mut worker = panicking(&place, "slot.begins", &["work", "--listen", &address]);
    let why = until("it isn't ready", || {
        let (status, why) = get(&address, "/readyz");
        (status == 503 && why.contains("panicking")).then_some(why)
    });
    let words = "a task keeps panicking and is not replaced: rowlock-slot (";
    assert!(why.starts_with(words), "{why}");
    worker.stop();
    assert_eq!(place.json(&["stats", "--json"])["pending"], 1);
}

#[test]
fn a_loop_of_a_drain_that_panics_is_started_again() {
    let redis = Redis::start();
    let url = redis.url();
    let place = Place::with_config(&format!(
        "{NOOP}[[drain]]\nkinds = [\"noop\"]\nto = \"{url}\"\n"
    ));
    place.ok(&["apply"]);
    enqueue(&place, "noop", 10);
    let address = free();
    let args = ["drain", "run", "--listen", &address];
    let mut drain = panicking(&place, "drain.pumps#2", &args);
    until("it was started again", || {
        let (_, numbers) = get(&address, "/metrics");
        let counted = "rowlock_task_panics_total{task=\"rowlock-drain\"} 1";
        numbers.contains(counted).then_some(())
    });
    until("all of it sent", || {
        let status = place.json(&["drain", "status", "--json"]);
        (status["ready"] == 10).then_some(())
    });
    drain.stop();
}

#[test]
fn a_stdout_that_takes_nothing_stops_no_other_job() {
    let place = Place::with_config(
        "[handlers.echo]\nbuiltin = \"echo\"\ntimeout = \"1s\"\nmax_attempts = 1\n\
         [handlers.noop]\nbuiltin = \"noop\"\n",
    );
    for _ in 0..20 {
        place.ok(&["enqueue", "echo"]);
    }
    let address = free();
    let (mut worker, _reader) = Silent::mute(&place, &["work", "--listen", &address]);
    let ended = |state: &str| place.json(&["stats", "--json"])[state].clone();
    until("the time of those that echo is up", || {
        (ended("failed") == 20).then_some(())
    });
    place.ok(&["enqueue", "noop"]);
    until("another job", || (ended("completed") == 1).then_some(()));
    assert_eq!(get(&address, "/readyz").0, 200);
    worker.stop();
}
