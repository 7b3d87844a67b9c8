//! Handlers that are programs: what they get, what their end means, and that they do end.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use place::Place;
use rowlock_testbed::Process;

/// It only ever fails a test.
const DEADLINE: Duration = Duration::from_secs(120);

/// A worker hears of a cancel with its next heartbeat, three in a lease. A shorter lease could be lost on a busy machine.
const QUICK_TO_HEAR: &str = "[worker]\nlease = \"3s\"\n";

/// Long enough for a program to begin on a busy machine.
const TIMEOUT: &str = "timeout = \"8s\"";

/// A place whose kind `it` is a shell script.
fn script(text: &str, settings: &str) -> Place {
    let place = Place::with_config(&format!(
        "{QUICK_TO_HEAR}[handlers.it]\nexec = [\"sh\", \"it.sh\"]\n{settings}\n"
    ));
    place.write("it.sh", text);
    place
}

/// Runs one job; the answer is the job with its errors.
fn once(place: &Place, payload: &str) -> serde_json::Value {
    place.ok(&["enqueue", "it", payload]);
    place.ok(&["work", "--once", "--quiet"]);
    place.json(&["job", "show", "1", "--json"])
}

fn error(job: &serde_json::Value) -> &str {
    job["errors"][0]["message"].as_str().unwrap()
}

/// A FIFO whose lines are events, and whose end means that every process that held it is gone.
struct Held(Receiver<String>);

impl Held {
    fn new(place: &Place) -> Self {
        let path = place.path("held");
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let (sender, lines) = channel();
        std::thread::Builder::new()
            .name("fifo".to_owned())
            .spawn(move || {
                let file = std::fs::File::open(path).unwrap();
                for line in BufReader::new(file).lines().map_while(Result::ok) {
                    sender.send(line).unwrap();
                }
            })
            .unwrap();
        Self(lines)
    }

    fn line(&self) -> String {
        self.0.recv_timeout(DEADLINE).unwrap()
    }

    fn ends(&self) {
        let last = self.0.recv_timeout(DEADLINE);
        assert_eq!(last, Err(RecvTimeoutError::Disconnected));
    }
}

#[test]
fn each_exit_code_has_its_meaning() {
    for (end, state, word) in [
        ("exit 0", "completed", ""),
        ("exit 75", "pending", "sh exited with 75: the reason"),
        ("exit 65", "failed", "sh exited with 65: the reason"),
        ("exit 1", "pending", "sh exited with 1: the reason"),
        ("exit 255", "pending", "sh exited with 255: the reason"),
        ("kill -9 $$", "pending", "ended by signal 9: the reason"),
    ] {
        let place = script(&format!("echo the reason >&2\n{end}"), "");
        let job = once(&place, "{}");
        assert_eq!(job["state"], state, "{end}: {job}");
        assert_eq!(job["attempt"], 1, "{end}: {job}");
        match word {
            "" => assert_eq!(job["errors"], serde_json::json!([]), "{end}"),
            word => assert!(error(&job).ends_with(word), "{end}: {job}"),
        }
    }
}

#[test]
fn the_last_attempt_ends_in_failed() {
    let place = script("exit 1", "max_attempts = 1");
    let job = once(&place, "{}");
    assert_eq!(job["state"], "failed", "{job}");
    assert_eq!(error(&job), "sh exited with 1");
}

#[test]
fn the_trace_a_job_was_enqueued_in_reaches_the_program() {
    let place = script("echo \"$TRACEPARENT\" > trace", "");
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for (told, carried) in [(trace, trace), ("nonsense", "")] {
        let mut enqueue = place.command(&["enqueue", "it"]);
        let enqueued = Process::run(enqueue.env("TRACEPARENT", told), "");
        assert_eq!(enqueued.code, Some(0), "{enqueued:?}");
        let mut work = place.command(&["work", "--once", "--quiet"]);
        let worked = Process::run(work.env("TRACEPARENT", "the worker's own"), "");
        assert_eq!(worked.code, Some(0), "{worked:?}");
        let got = std::fs::read_to_string(place.path("trace")).unwrap();
        assert_eq!(got.trim_end(), carried);
    }
    // A flag goes before the environment, for many at once too, and must be right.
    let other = trace.replace("-01", "-00");
    let flags = ["--traceparent", &other];
    let line = "{\"kind\":\"it\"}\n";
    for (verb, input) in [
        (&["enqueue", "it"][..], ""),
        (&["enqueue", "--from", "-"], line),
    ] {
        let mut enqueue = place.command(&[verb, &flags].concat());
        let enqueued = Process::run(enqueue.env("TRACEPARENT", trace), input);
        assert_eq!(enqueued.code, Some(0), "{enqueued:?}");
        place.ok(&["work", "--once", "--quiet"]);
        let got = std::fs::read_to_string(place.path("trace")).unwrap();
        assert_eq!(got.trim_end(), other);
        std::fs::remove_file(place.path("trace")).unwrap();
    }
    let refused = place.run(&["enqueue", "it", "--traceparent", "nonsense"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("is not a W3C traceparent"),
        "{refused:?}"
    );
}

#[test]
fn what_is_logged_in_an_attempt_says_which_it_is() {
    let place = script("true", "queue = \"mail\"");
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    place.ok(&["enqueue", "it", "--traceparent", trace]);
    let worked = place.run(&["work", "--once", "-v", "--log", "json"]);
    assert_eq!(worked.code, Some(0), "{worked:?}");
    let lines = worked
        .stderr
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let mut ended = lines.filter(|line: &serde_json::Value| line["message"] == "program ended");
    let span = ended.next().unwrap_or_else(|| panic!("{worked:?}"))["span"].clone();
    for (field, value) in [
        ("name", "rowlock.run"),
        ("job", "1"),
        ("kind", "it"),
        ("queue", "mail"),
        ("trace", trace),
    ] {
        assert_eq!(span[field], value, "{field}: {span}");
    }
    assert_eq!(span["attempt"], 1, "{span}");
    assert!(
        span["worker"]
            .as_str()
            .is_some_and(|worker| !worker.is_empty()),
        "{span}"
    );
}

#[test]
fn a_program_gets_the_payload_on_stdin_and_the_rest_in_its_environment() {
    let text = "cat > got\nenv | grep ^ROWLOCK_ | sort > env";
    let place = script(text, "queue = \"mail\"\nmax_attempts = 3");
    let job = once(&place, r#"{"to":"ada ö $HOME `x`"}"#);
    assert_eq!(job["state"], "completed", "{job}");
    let got = std::fs::read_to_string(place.path("got")).unwrap();
    assert_eq!(got, r#"{"to":"ada ö $HOME `x`"}"#);
    let env = std::fs::read_to_string(place.path("env")).unwrap();
    let key = job["idempotency_key"].as_str().unwrap();
    assert_eq!(
        env,
        format!(
            "ROWLOCK_ATTEMPT=1\nROWLOCK_JOB_ID=1\nROWLOCK_JOB_KEY={key}\nROWLOCK_KIND=it\nROWLOCK_MAX_ATTEMPTS=3\nROWLOCK_QUEUE=mail\n"
        )
    );
}

/// Runs one job of a worker whose own environment has secrets; the answer is the environment of its program.
fn handed_on(place: &Place) -> String {
    place.ok(&["enqueue", "it"]);
    let mut command = place.command(&["work", "--once", "--quiet"]);
    for (name, value) in [
        ("ROWLOCK_DASHBOARD_TOKEN", "s3cret"),
        ("ROWLOCK_DASHBOARD_READER_TOKEN", "s3cret"),
        ("ROWLOCK_DRAIN_REDIS", "redis://:s3cret@cache/0"),
        ("ROWLOCK_URL", "sqlite:rowlock.db"),
        ("PGPASSWORD", "s3cret"),
        ("TZ", "UTC"),
        ("API_TOKEN", "t0ken"),
        ("OTHER", "other"),
    ] {
        command.env(name, value);
    }
    let worked = Process::run(&mut command, "");
    assert_eq!(worked.code, Some(0), "{worked:?}");
    std::fs::read_to_string(place.path("env")).unwrap()
}

#[test]
fn a_program_gets_none_of_the_workers_own_secrets() {
    for settings in ["", "env = \"inherit\""] {
        let place = script("env | sort > env", settings);
        let env = handed_on(&place);
        assert!(!env.contains("s3cret"), "{env}");
        assert!(!env.contains("ROWLOCK_URL"), "{env}");
        for line in [
            "API_TOKEN=t0ken\n",
            "OTHER=other\n",
            "TZ=UTC\n",
            "ROWLOCK_JOB_ID=1\n",
        ] {
            assert!(env.contains(line), "{line}: {env}");
        }
    }
}

#[test]
fn a_list_names_all_that_a_program_gets() {
    let place = script(
        "env | sort > env",
        "env = [\"API_TOKEN\", \"ROWLOCK_URL\", \"NOT_SET\"]",
    );
    let env = handed_on(&place);
    // The shell itself adds PWD and its like.
    let names = env
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name);
    let shells = ["PWD", "OLDPWD", "SHLVL", "_", "LANG", "HOME"];
    let names: Vec<&str> = names.filter(|name| !shells.contains(name)).collect();
    let job = [
        "ATTEMPT",
        "JOB_ID",
        "JOB_KEY",
        "KIND",
        "MAX_ATTEMPTS",
        "QUEUE",
    ];
    let of_the_job = |name: &str| {
        let name = name.strip_prefix("ROWLOCK_");
        name.is_some_and(|name| job.contains(&name))
    };
    let others: Vec<&str> = names.into_iter().filter(|name| !of_the_job(name)).collect();
    assert_eq!(others, ["API_TOKEN", "PATH", "ROWLOCK_URL", "TZ"], "{env}");
}

#[test]
fn a_rowlock_inside_a_handler_makes_no_store_of_its_own() {
    let binary = env!("CARGO_BIN_EXE_rowlock");
    let text = format!("cd elsewhere\n'{binary}' enqueue echo 2> ../said\necho $? > ../code");
    for (settings, code, word) in [
        ("", "4", "env = [\"ROWLOCK_URL\", ...]"),
        ("env = [\"ROWLOCK_URL\"]", "0", ""),
    ] {
        let place = script(&text, settings);
        std::fs::create_dir(place.path("elsewhere")).unwrap();
        place.ok(&["enqueue", "it"]);
        let url = format!("sqlite:{}", place.path("rowlock.db").display());
        let mut command = place.command(&["work", "--once", "--quiet"]);
        let worked = Process::run(command.env("ROWLOCK_URL", &url), "");
        assert_eq!(worked.code, Some(0), "{worked:?}");
        let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
        let said = read("said");
        assert_eq!(read("code").trim(), code, "{said}");
        assert!(said.contains(word), "{said}");
        let made = std::fs::read_dir(place.path("elsewhere")).unwrap().count();
        assert_eq!(made, 0, "{said}");
    }
}

#[test]
fn arguments_meet_no_shell() {
    let place = Place::with_config("[handlers.it]\nexec = [\"touch\", \"$HOME; a b\"]");
    assert_eq!(once(&place, "{}")["state"], "completed");
    assert!(place.path("$HOME; a b").exists());
}

#[test]
fn a_program_that_never_reads_a_large_payload_is_fine() {
    let place = script("exec <&-\nexit 0", "");
    let payload = format!("\"{}\"", "x".repeat(1_000_000));
    let line = format!("{{\"kind\":\"it\",\"payload\":{payload}}}\n");
    place.feed(&["enqueue", "--from", "-"], &line);
    place.ok(&["work", "--once", "--quiet"]);
    let job = place.json(&["job", "show", "1", "--json"]);
    assert_eq!(job["state"], "completed");
}

#[test]
fn a_large_payload_is_read_while_output_is_written() {
    let place = script("cat\nexit 65", "");
    let line = format!(
        "{{\"kind\":\"it\",\"payload\":\"{}\"}}\n",
        "x".repeat(1_000_000)
    );
    place.feed(&["enqueue", "--from", "-"], &line);
    place.ok(&["work", "--once", "--quiet"]);
    let job = place.json(&["job", "show", "1", "--json"]);
    assert!(error(&job).ends_with("xxx\""), "{}", error(&job));
}

#[test]
fn of_8_mb_of_output_only_the_end_is_kept() {
    let text = "head -c 8000000 /dev/zero | tr '\\0' a\necho; echo the end\nexit 65";
    let place = script(text, "");
    let job = once(&place, "{}");
    let error = error(&job);
    assert!(error.starts_with("sh exited with 65: ...aaa"), "{error}");
    assert!(error.ends_with("aaa\nthe end"), "{error}");
    assert!(error.len() <= 4096, "{}", error.len());
    let shown = place.ok(&["job", "show", "1"]);
    assert!(shown.contains("sh exited with 65: ..."), "{shown}");
    assert!(shown.contains("the end"), "{shown}");
    assert!(shown.len() < 2_000, "{}", shown.len());
}

#[test]
fn output_bytes_says_how_much_is_kept() {
    let place = script("echo 0123456789\nexit 65", "[limits]\noutput_bytes = 5");
    assert_eq!(error(&once(&place, "{}")), "sh exited with 65: ...6789");
}

#[test]
fn a_program_that_cannot_be_started_is_named_with_the_reason() {
    let place = Place::with_config("[handlers.it]\nexec = [\"no-such-program\", \"x\"]");
    let job = once(&place, "{}");
    assert_eq!(job["state"], "pending", "{job}");
    let why = error(&job);
    assert!(
        why.starts_with("can't start no-such-program: No such file"),
        "{why}"
    );
}

#[test]
fn a_relative_program_and_its_folder_start_at_the_configuration() {
    let place = Place::new();
    let app = place.path("app");
    std::fs::create_dir(&app).unwrap();
    std::fs::write(
        app.join("rowlock.toml"),
        "[handlers.it]\nexec = [\"./it\"]\n",
    )
    .unwrap();
    std::fs::write(app.join("it"), "#!/bin/sh\npwd > here\n").unwrap();
    let made = Command::new("chmod").arg("+x").arg(app.join("it")).status();
    assert!(made.unwrap().success());
    let config = ["--config", "app/rowlock.toml"];
    place.ok(&[&["enqueue", "it"], &config[..]].concat());
    place.ok(&[&["work", "--once", "--quiet"], &config[..]].concat());
    let here = std::fs::read_to_string(app.join("here")).unwrap();
    assert_eq!(
        std::path::Path::new(here.trim()),
        app.canonicalize().unwrap()
    );
}

#[test]
fn what_a_program_leaves_running_does_not_hold_its_job() {
    // The background process keeps the output's pipe until the test lets it go.
    let place = script("cat wait > /dev/null &\necho done", "");
    let made = Command::new("mkfifo").arg(place.path("wait")).status();
    assert!(made.unwrap().success());
    assert_eq!(once(&place, "{}")["state"], "completed");
    drop(
        std::fs::File::options()
            .write(true)
            .open(place.path("wait")),
    );
}

#[test]
fn a_timeout_ends_the_whole_group() {
    let text = "exec 9>held\nsh -c 'echo grandchild >&9; exec sleep 600' &\nwait";
    let place = script(text, TIMEOUT);
    let held = Held::new(&place);
    let job = once(&place, "{}");
    assert_eq!(job["state"], "pending", "{job}");
    assert_eq!(job["errors"][0]["kind"], "timeout", "{job}");
    // The worker has ended, and it waits for what it ends.
    assert_eq!(held.line(), "grandchild");
    held.ends();
}

#[test]
fn a_program_may_tidy_up_when_it_is_asked_to_end() {
    let text = "trap 'echo tidy > tidied; exit 0' TERM\necho ready > held\n\
                while :; do sleep 600 & wait; done";
    let place = script(text, TIMEOUT);
    let held = Held::new(&place);
    once(&place, "{}");
    assert_eq!(held.line(), "ready");
    held.ends();
    let tidied = std::fs::read_to_string(place.path("tidied")).unwrap();
    assert_eq!(tidied, "tidy\n");
}

#[test]
fn dev_runs_programs_beside_its_demo_kinds() {
    let place = script("cat > got", "");
    let mut dev = place.start(&["dev", "-v"]);
    dev.line_with("kinds echo sleep flaky it");
    place.ok(&["enqueue", "it", "[1]", "--known"]);
    dev.line_with("settled job=1");
    assert_eq!(std::fs::read_to_string(place.path("got")).unwrap(), "[1]");
    dev.signal("TERM");
    assert_eq!(dev.wait().0, Some(0));
}

/// A worker whose one job has started a program that never ends by itself.
fn busy(place: &Place) -> (rowlock_testbed::Process, Held) {
    let held = Held::new(place);
    place.ok(&["enqueue", "it"]);
    let work = place.start(&["work", "-v"]);
    assert_eq!(held.line(), "ready");
    (work, held)
}

/// It does nothing, and doesn't mind that nobody reads its output any more.
const ENDLESS: &str = "exec 9>held\necho ready >&9\nexec sleep 600";

#[test]
fn a_cancel_ends_the_program() {
    let place = script(ENDLESS, "");
    let (mut work, held) = busy(&place);
    place.ok(&["job", "cancel", "1"]);
    work.line_with("settled job=1");
    held.ends();
    let job = place.json(&["job", "show", "1", "--json"]);
    assert_eq!(job["state"], "cancelled", "{job}");
    work.signal("TERM");
    assert_eq!(work.wait().0, Some(0));
}

#[test]
fn a_worker_that_stops_at_once_ends_the_program_and_gives_its_job_back() {
    let place = script(ENDLESS, "");
    let (mut work, held) = busy(&place);
    work.signal("TERM");
    work.line_with("stopping, running jobs have");
    work.signal("TERM");
    held.ends();
    let (code, lines) = work.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    let job = place.json(&["job", "show", "1", "--json"]);
    assert_eq!(
        (&job["state"], &job["attempt"]),
        (&"pending".into(), &0.into())
    );
}

#[test]
fn a_group_that_ignores_sigterm_is_killed_while_its_worker_goes_on() {
    let text = "trap '' TERM\nexec 9>held\nsh -c 'echo ready >&9; exec sleep 600' &\n\
                while :; do wait; done";
    let place = script(text, "");
    let (mut work, held) = busy(&place);
    place.ok(&["job", "cancel", "1"]);
    work.line_with("settled job=1");
    held.ends();
    work.signal("TERM");
    assert_eq!(work.wait().0, Some(0));
}
