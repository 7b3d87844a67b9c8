//! Every kind of bad input: its exit code, a word of its message, and nothing stored or lost.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use rowlock_testbed::Process;

/// What is typed, the exit code, and what the message must contain.
type Case<'a> = (&'a [&'a str], i32, &'a str);

/// One job is in the store; whatever is typed, it stays the only one.
fn nothing_changes(place: &Place, cases: &[Case<'_>]) {
    place.ok(&["enqueue", "echo", r#"{"n":1}"#, "--in", "1d"]);
    for (args, code, word) in cases {
        let finished = place.run(args);
        assert_eq!(finished.code, Some(*code), "{args:?}: {finished:?}");
        assert!(
            finished.stderr.starts_with("error: "),
            "{args:?}: {finished:?}"
        );
        assert!(
            finished.stderr.contains(word),
            "{args:?}: no {word:?} in {finished:?}"
        );
        assert_eq!(finished.stdout, "", "{args:?}");
    }
    assert_eq!(place.jobs(), 1);
    assert_eq!(
        place.json(&["job", "show", "1", "--json"])["payload"]["n"],
        1
    );
}

#[test]
fn what_can_not_be_a_job_is_exit_2_and_names_the_rule() {
    let long = "k".repeat(64);
    let deep = "[".repeat(200_000);
    let huge = format!("\"{}\"", "x".repeat(120_000));
    let place = Place::with_config("[limits]\npayload = \"64KiB\"");
    nothing_changes(
        &place,
        &[
            (&["enqueue"], 2, "<KIND>"),
            (&["enqueue", ""], 2, "valid name"),
            (&["enqueue", "a b"], 2, "start with a letter"),
            (&["enqueue", "-x"], 2, "unexpected argument"),
            (&["enqueue", "."], 2, "valid name"),
            (&["enqueue", "é"], 2, "valid name"),
            (&["enqueue", &long], 2, "1 to 63"),
            (&["enqueue", "echo", ""], 2, "not valid JSON"),
            (&["enqueue", "echo", "-"], 2, "not valid JSON"),
            (&["enqueue", "echo", "{oops"], 2, "single quotes"),
            (&["enqueue", "echo", "{} {}"], 2, "not valid JSON"),
            (&["enqueue", "echo", "NaN"], 2, "not valid JSON"),
            (&["enqueue", "echo", r#"{"a":1,"a":2}"#], 2, "appears twice"),
            (&["enqueue", "echo", r#"{"a":"\u0000"}"#], 2, "NUL"),
            (&["enqueue", "echo", r#""\ud800""#], 2, "not valid JSON"),
            (&["enqueue", "echo", &deep[..100_000]], 2, "deeper than 128"),
            (&["enqueue", "echo", &huge], 2, "the limit is 65536"),
            (&["enqueue", "echo", "{}", "{}"], 2, "unexpected argument"),
            (&["enqueue", "echo", "--queue", "a/b"], 2, "valid name"),
            (&["enqueue", "echo", "--tag", "a b"], 2, "valid name"),
            (&["enqueue", "echo", "--priority", "high"], 2, "high"),
            (&["enqueue", "echo", "--priority", "-40000"], 2, "-32768"),
            (&["enqueue", "echo", "--max-attempts", "0"], 2, "use 1 to"),
            (&["enqueue", "echo", "--max-attempts", "-1"], 2, "-1"),
            (&["enqueue", "echo", "--in", "soon"], 2, "500ms, 30s"),
            (&["enqueue", "echo", "--in", "-5m"], 2, "-5"),
            (&["enqueue", "echo", "--at", "tomorrow"], 2, "RFC 3339"),
            (
                &[
                    "enqueue",
                    "echo",
                    "--in",
                    "1m",
                    "--at",
                    "2030-01-01T00:00:00Z",
                ],
                2,
                "cannot be used",
            ),
            (&["enqueue", "echo", "--unique", ""], 2, "unique key"),
            (
                &["enqueue", "echo", "--unique-until", "never"],
                2,
                "start or finished",
            ),
            (
                &["enqueue", "nobody", "--known"],
                2,
                "nobody is known to run",
            ),
            (&["enqueue", "echo", "--from", "-"], 2, "cannot be used"),
        ],
    );
}

#[test]
fn what_can_not_be_a_command_is_exit_2() {
    nothing_changes(
        &Place::new(),
        &[
            (&["frobnicate"], 2, "unrecognized subcommand"),
            (&["--frob"], 2, "unexpected argument"),
            (&["work"], 2, "builtin = \"echo\""),
            (&["work", "--concurrency", "0"], 2, "1..=10000"),
            (&["work", "--queue", "a b"], 2, "valid name"),
            (&["apply"], 2, "rowlock init"),
            (&["job", "show", "one"], 2, "not a job id"),
            (&["job", "show", "0"], 2, "not a job id"),
            (&["job", "show", "99999999999999999999"], 2, "not a job id"),
            (&["job", "list", "--state", "done"], 2, "use pending"),
            (&["job", "list", "--since", "yesterday"], 2, "like 2h"),
            (&["job", "list", "--limit", "0"], 2, "0"),
            (&["job", "list", "1", "--kind", "echo"], 2, "cannot be used"),
            (&["job", "cancel"], 2, "--all --yes"),
            (&["job", "delete", "--all"], 2, "--all --yes"),
            (&["job", "delete", "--limit", "5"], 2, "--all --yes"),
            (&["job", "delete", "--yes"], 2, "--all"),
            (&["job", "retry", "--all", "1"], 2, "cannot be used"),
            (&["queue", "pause", "a b"], 2, "valid name"),
            (&["migrate", "down"], 2, "unrecognized subcommand"),
        ],
    );
}

#[test]
fn what_is_not_there_is_exit_3() {
    nothing_changes(
        &Place::new(),
        &[
            (&["job", "show", "7"], 3, "job 7 not found"),
            (&["job", "list", "7"], 3, "job 7 not found"),
            (&["job", "cancel", "7"], 3, "job 7 not found"),
            (&["job", "retry", "7"], 3, "job 7 not found"),
            (&["job", "delete", "7"], 3, "job 7 not found"),
            (&["queue", "resume", "default"], 3, "not paused"),
        ],
    );
}

#[test]
fn a_store_that_can_not_be_used_is_exit_2_4_or_5_and_says_what_to_do() {
    let place = Place::new();
    place.write(
        "text.db",
        "this is not a database, but it is long enough to be looked at as one\n",
    );
    place.write("empty.db", "");
    std::fs::create_dir(place.path("folder")).unwrap();
    let theirs = rusqlite::Connection::open(place.path("app.db")).unwrap();
    theirs.execute_batch("CREATE TABLE users (name)").unwrap();
    nothing_changes(
        &place,
        &[
            (
                &["stats", "--url", "mysql://me:secret@host/db"],
                2,
                "mysql: is not a store",
            ),
            (
                &["migrate", "roles", "--url", "sqlite:app.db"],
                2,
                "a SQLite file has no roles",
            ),
            (&["stats", "--url", "redis://host"], 2, "sqlite:PATH"),
            (&["stats", "--url", "rowlock.db"], 2, "sqlite:PATH"),
            (&["stats", "--url", ""], 2, "sqlite:PATH"),
            (&["stats", "--url", "sqlite:"], 2, "sqlite:PATH"),
            (&["stats", "--url", "sqlite::memory:"], 2, "outlives"),
            (
                &["stats", "--url", "sqlite:x.db?sync=off"],
                2,
                "synchronous=full",
            ),
            (
                &["stats", "--url", "sqlite:nope.db"],
                4,
                "rowlock migrate up --url sqlite:nope.db",
            ),
            (
                &["job", "list", "--url", "sqlite:nope.db"],
                4,
                "doesn't exist",
            ),
            (
                &["queue", "list", "--url", "sqlite:nope.db"],
                4,
                "doesn't exist",
            ),
            (
                &["migrate", "status", "--url", "sqlite:nope.db"],
                4,
                "doesn't exist",
            ),
            (
                &["enqueue", "echo", "--url", "sqlite:no/such/folder.db"],
                4,
                "its folder exists",
            ),
            (
                &["enqueue", "echo", "--url", "sqlite:folder"],
                4,
                "is a folder",
            ),
            (
                &["enqueue", "echo", "--url", "sqlite:text.db/x.db"],
                4,
                "can't open",
            ),
            (
                &["enqueue", "echo", "--url", "sqlite:/proc/x.db"],
                4,
                "can't open",
            ),
            (
                &["enqueue", "echo", "--url", "sqlite:text.db"],
                5,
                "not a SQLite database",
            ),
            (
                &["stats", "--url", "sqlite:text.db"],
                5,
                "not a SQLite database",
            ),
            (
                &["stats", "--url", "sqlite:empty.db"],
                5,
                "rowlock migrate up --url sqlite:empty.db",
            ),
            (
                &["enqueue", "echo", "--url", "sqlite:app.db"],
                5,
                "rowlock migrate up --url sqlite:app.db",
            ),
            (
                &["stats", "--url", "sqlite:app.db"],
                5,
                "rowlock migrate up --url sqlite:app.db",
            ),
        ],
    );
    assert!(!place.path("nope.db").exists());
    assert!(
        !place
            .run(&["stats", "--url", "mysql://me:secret@host/db"])
            .stderr
            .contains("secret")
    );
}

#[test]
fn a_newer_or_changed_schema_is_exit_5() {
    let place = Place::new();
    place.ok(&["enqueue", "echo"]);
    let file = rusqlite::Connection::open(place.path("rowlock.db")).unwrap();
    file.execute_batch("UPDATE rowlock_migration SET checksum = 'x'")
        .unwrap();
    for verb in [
        &["stats"][..],
        &["migrate", "status"],
        &["migrate", "up"],
        &["enqueue", "echo"],
    ] {
        let finished = place.run(verb);
        assert_eq!(finished.code, Some(5), "{finished:?}");
        assert!(finished.stderr.contains("another form"), "{finished:?}");
    }
    file.execute_batch("UPDATE rowlock_migration SET version = version + 900")
        .unwrap();
    let finished = place.run(&["enqueue", "echo"]);
    assert_eq!(finished.code, Some(5), "{finished:?}");
    assert!(
        finished.stderr.contains("install a newer rowlock"),
        "{finished:?}"
    );
}

#[test]
fn a_configuration_that_breaks_a_rule_is_exit_2_and_names_the_line() {
    for (text, word) in [
        (
            "[worker]\nconcurency = 4",
            "rowlock.toml:2: unknown key `concurency`: did you mean `concurrency`?",
        ),
        ("[handlers.a]\nexec = []", "[handlers.a]: exec is empty"),
        (
            "[handlers.a]\nbuiltin = \"shout\"",
            "use noop, echo, sleep or flaky",
        ),
        ("[handlers.\"a b\"]\nbuiltin = \"echo\"", "valid name"),
        ("[dashboard]\nhosts = [\"a:80\"]", "without a port"),
        (
            "[guard]\naction = \"kill\"",
            "use observe, cancel or terminate",
        ),
        ("[budget.analytics]\nmax = 0", "use 1 to 1000"),
        ("[[drain]]\nkinds = [\"x\"]", "missing field `to`"),
        (
            "[[drain]]\nkinds = [\"x\"]\nto = \"nats://x\"",
            "\"nats\" is not a sink: write redis://",
        ),
        ("[[cron]]\nname = \"x\"", "missing field `kind`"),
        (
            "[[pair]]\nkind = \"x\"\nkey = [\"id\"]\nquery = \"SELECT 1 AS id\"",
            "neither every nor cron",
        ),
        ("[worker]\nconcurrency = 0", "use 1 to"),
        ("[limits]\npayload = \"9GiB\"", "64KiB"),
        ("url = 5", "rowlock.toml:1"),
        ("url = \"mysql:x\"", "mysql: is not a store"),
        ("=", "rowlock.toml:1"),
    ] {
        let place = Place::with_config(text);
        for verb in [
            &["enqueue", "echo"][..],
            &["work", "--once"],
            &["dev"],
            &["apply"],
            &["stats"],
        ] {
            let finished = place.run(verb);
            assert_eq!(finished.code, Some(2), "{text}: {finished:?}");
            assert!(finished.stderr.contains(word), "{text}: {finished:?}");
        }
        assert!(!place.path("rowlock.db").exists(), "{text}");
    }
    let place = Place::new();
    let finished = place.run(&["stats", "--config", "nope.toml"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(
        finished.stderr.contains("rowlock init --config nope.toml"),
        "{finished:?}"
    );
    let finished = place.run(&["stats", "--config", "."]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
}

#[test]
fn init_never_writes_over_a_file() {
    let place = Place::with_config("# mine\n");
    let finished = place.run(&["init"]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let text = std::fs::read_to_string(place.path("rowlock.toml")).unwrap();
    assert_eq!(text, "# mine\n");
}

#[test]
fn a_move_that_does_not_exist_is_exit_7_and_the_rest_is_done() {
    let place = Place::with_config("[handlers.echo]\nbuiltin = \"echo\"");
    place.ok(&["enqueue", "echo", "--unique", "k"]);
    place.ok(&["work", "--once"]);
    place.ok(&["enqueue", "echo", "--unique", "k", "--in", "1d"]);
    let finished = place.run(&["job", "retry", "1"]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    assert!(finished.stderr.contains("same unique key"), "{finished:?}");
    let finished = place.run(&["job", "cancel", "1", "2", "9"]);
    assert_eq!(finished.code, Some(7), "{finished:?}");
    assert_eq!(finished.stdout, "cancelled 2\n");
    assert!(
        finished.stderr.contains("job 1 is completed"),
        "{finished:?}"
    );
    assert!(finished.stderr.contains("job 9 not found"), "{finished:?}");
    assert_eq!(place.ok(&["job", "retry", "1"]), "retried 1\n");
}

#[test]
fn a_lock_that_is_never_given_up_is_exit_4() {
    let place = Place::new();
    place.ok(&["enqueue", "echo"]);
    let file = rusqlite::Connection::open(place.path("rowlock.db")).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let finished = place.run(&["enqueue", "echo"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(finished.stderr.contains("write lock"), "{finished:?}");
    file.execute_batch("ROLLBACK").unwrap();
    assert_eq!(place.jobs(), 1);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let place = Place::new();
    let lines = "{\"kind\":\"echo\"}\n".repeat(20_000);
    place.write("jobs.ndjson", &lines);
    place.ok(&["enqueue", "--from", "jobs.ndjson"]);
    let line = format!(
        "{} job list --limit 20000 | head -n 1; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_rowlock")
    );
    let mut shell = std::process::Command::new("bash");
    let finished = Process::run(
        shell.args(["-c", &line]).current_dir(place.folder.path()),
        "",
    );
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stderr, "");
    assert!(finished.stdout.contains("KIND"), "{finished:?}");
}

/// The binary without the right to pass over the rights of files, which root has.
fn unprivileged(place: &Place, args: &[&str]) -> rowlock_testbed::Finished {
    use std::os::unix::fs::MetadataExt;
    let plain = place.command(args);
    let root = std::fs::metadata(place.folder.path()).unwrap().uid() == 0;
    let mut command = match root {
        true => std::process::Command::new("setpriv"),
        false => std::process::Command::new("env"),
    };
    if root {
        command.args(["--bounding-set", "-dac_override,-dac_read_search"]);
    }
    command
        .arg(plain.get_program())
        .args(args)
        .current_dir(place.folder.path());
    command
        .env_remove("ROWLOCK_URL")
        .env_remove("ROWLOCK_CONFIG");
    Process::run(&mut command, "")
}

#[test]
fn a_file_without_the_rights_is_exit_4_and_a_readable_one_can_still_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let mode = |name: &str, mode: u32| {
        let rights = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.path(name), rights).unwrap();
    };
    place.ok(&["enqueue", "echo"]);
    mode("rowlock.db", 0o444);
    let finished = unprivileged(&place, &["enqueue", "echo"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(finished.stderr.contains("read-only"), "{finished:?}");
    assert_eq!(unprivileged(&place, &["job", "show", "1"]).code, Some(0));
    mode("rowlock.db", 0);
    let finished = unprivileged(&place, &["stats"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(finished.stderr.contains("can't open"), "{finished:?}");
    mode("rowlock.db", 0o644);
    mode(".", 0o555);
    let finished = unprivileged(&place, &["enqueue", "echo", "--url", "sqlite:new.db"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    mode(".", 0o755);
    assert_eq!(place.jobs(), 1);
}
