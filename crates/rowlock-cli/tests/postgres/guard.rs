//! `guard` and `budget`: what pins the horizon is shown and by policy ended, and budgets are kept.

use std::io::{Read, Write};

use rowlock_testbed::{Session, until};
use serde_json::{Value, json};

use crate::place::Place;
use crate::store::Store;

const ECHO: &str = "[handlers.echo]\nbuiltin = \"echo\"\n";
const ANALYTICS: &str =
    "[budget.analytics]\nmax = 1\nmatch = { application_name = \"metabase\" }\n";

/// A transaction that has a snapshot and goes on.
fn reader(store: &Store, application: &str) -> (Session, i32) {
    let url = format!("{}?application_name={application}", store.url());
    let session = Session::open(&url);
    let pid = session.pid();
    session
        .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 'a report'")
        .unwrap();
    (session, pid)
}

fn lives(session: &Session) -> bool {
    session.query("SELECT 1").is_ok()
}

/// What a guard saw of one process.
fn of(lines: &str, pid: i32) -> Value {
    let all = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let mut of = all.filter(|each: &Value| each["pid"] == pid);
    of.next().unwrap_or_else(|| panic!("no {pid} in {lines}"))
}

#[test]
fn what_pins_the_horizon_is_shown() {
    let store = Store::new(ANALYTICS);
    let nothing = store.run(&["guard", "--once"]);
    assert_eq!(nothing.code, Some(0), "{nothing:?}");
    assert_eq!(nothing.stderr, "nothing pins the horizon\n");
    let (session, pid) = reader(&store, "metabase");
    let lines = store.ok(&["guard", "--once", "--json"]);
    let mut seen = of(&lines, pid);
    assert!(seen["age_seconds"].is_f64() && seen["transactions"].is_u64());
    for figure in ["dead_rows", "dead_bytes", "rows_per_hour", "bytes_per_hour"] {
        assert!(seen["cost"][figure].is_u64(), "{figure}: {seen}");
    }
    let fields = seen.as_object_mut().unwrap();
    fields.remove("age_seconds");
    fields.remove("transactions");
    fields.remove("cost");
    assert_eq!(
        seen,
        json!({
            "what": "session", "pid": pid, "name": null, "application": "metabase", "role": "postgres",
            "query": "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 'a report'",
            "state": "idle in transaction", "catalog_only": false, "class": "analytics",
            "due": null, "spared": null, "did": "nothing", "remedy": null,
        })
    );
    let table = store.ok(&["guard", "--once"]);
    assert!(table.starts_with("WHAT "), "{table}");
    let row = format!("pid {pid} metabase (postgres)");
    assert!(table.contains(&row), "{table}");
    let costs = table.lines().last().unwrap();
    assert!(costs.starts_with("this database has "), "{table}");
    assert!(
        costs.ends_with(" an hour more while this goes on"),
        "{table}"
    );
    assert!(lives(&session));
}

#[test]
fn sessions_are_ended_by_age_and_class() {
    let store = Store::new(ANALYTICS);
    let ((old, old_pid), (other, _)) = (reader(&store, "metabase"), reader(&store, "web"));
    let guard = |flags: &[&str]| {
        store.ok(&[
            &["guard", "--once", "--json", "--class", "analytics"],
            flags,
        ]
        .concat())
    };
    let young = guard(&["--max-age", "1h", "--action", "terminate"]);
    assert_eq!(of(&young, old_pid)["did"], "nothing");
    let idle = guard(&["--max-age", "0s", "--action", "cancel"]);
    assert_eq!(of(&idle, old_pid)["did"], "idle");
    assert!(lives(&old));
    let (young, young_pid) = reader(&store, "metabase");
    let too_many = guard(&["--max-age", "1h", "--action", "terminate"]);
    assert_eq!(of(&too_many, young_pid)["due"], "max");
    assert_eq!(of(&too_many, young_pid)["did"], "terminated");
    assert_eq!(of(&too_many, old_pid)["did"], "nothing");
    assert!(lives(&old) && !lives(&young));
    let ended = store.run(&["guard", "--once", "--json", "--max-age", "0s"]);
    assert_eq!(of(&ended.stdout, old_pid)["due"], "age");
    assert_eq!(of(&ended.stdout, old_pid)["did"], "observed");
    let mut command = store.command(&["guard", "--once", "--json", "--class", "analytics"]);
    command.args(["--max-age", "0s", "--action", "terminate"]);
    let ended = rowlock_testbed::Process::run(&mut command, "");
    assert_eq!(of(&ended.stdout, old_pid)["did"], "terminated");
    assert!(ended.stderr.contains("did=\"terminated\""), "{ended:?}");
    assert!(!lives(&old) && lives(&other));
    let hasty = store.run(&["guard", "--every", "1ms"]);
    assert_eq!(hasty.code, Some(2), "{hasty:?}");
    let unknown = store.run(&["guard", "--once", "--class", "reports"]);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
}

#[test]
fn a_guard_goes_on_until_a_signal() {
    let store =
        Store::new("[guard]\naction = \"terminate\"\nmax_age = \"0s\"\nevery = \"100ms\"\n");
    let guard = store.start(&["guard"]);
    for _ in 0..2 {
        let (session, _) = reader(&store, "web");
        until("it is ended", || (!lives(&session)).then_some(()));
    }
    guard.signal("TERM");
    let (code, lines) = guard.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
}

#[test]
fn a_worker_has_a_guard_inside() {
    let config = "[guard]\naction = \"terminate\"\nmax_age = \"0s\"\nevery = \"100ms\"\n";
    let store = Store::new(&format!("{ECHO}{config}"));
    let mut worker = store.start(&["work", "--listen", "127.0.0.1:0"]);
    worker.line_with("guard      terminates transactions older than 0 ms");
    let line = worker.line_with("http       http://");
    let (_, address) = line.split_once("http://").unwrap();
    let (address, _) = address.split_once('/').unwrap();
    let (session, _) = reader(&store, "web");
    until("it is ended", || (!lives(&session)).then_some(()));
    worker.line_with("a transaction pins the horizon");
    store.ok(&["enqueue", "echo"]);
    worker.line_with("{}");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let counted = "rowlock_guard_actions_total{class=\"none\",did=\"terminated\"} ";
    assert!(page.contains(counted), "{page}");
    assert!(
        page.contains("rowlock_guard_pins{what=\"session\"}"),
        "{page}"
    );
    worker.signal("TERM");
    let (code, lines) = worker.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
}

#[test]
fn sessions_that_a_role_may_not_see_are_told_in_one_line() {
    let store = Store::new(&format!(
        "{ECHO}[guard]\nmax_age = \"0s\"\nevery = \"100ms\"\n"
    ));
    let role = format!("blind_{}", store.database.name());
    store.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT ALL ON SCHEMA rowlock TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA rowlock TO {role};
         GRANT ALL ON ALL SEQUENCES IN SCHEMA rowlock TO {role}; GRANT ALL ON ALL FUNCTIONS IN SCHEMA rowlock TO {role}"
    ));
    let (_first, _second) = (reader(&store, "one"), reader(&store, "two"));
    let url = store.url_of(&role);
    let mut worker = store.start(&["work", "--url", &url]);
    let line = worker.line_with("this role may not see");
    assert!(line.contains("sessions=2"), "{line}");
    // A few looks later nothing was added to it.
    for _ in 0..3 {
        store.ok(&["enqueue", "echo"]);
        worker.line_with("{}");
    }
    worker.signal("TERM");
    let (code, lines) = worker.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    let said = lines.iter().filter(|line| line.contains("may not see"));
    assert_eq!(said.count(), 1, "{lines:#?}");
    store.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[test]
fn budgets_are_written_shown_and_changed() {
    let store = Store::new(&format!("{ECHO}{ANALYTICS}"));
    let applied = store.ok(&["apply"]);
    assert!(
        applied.contains("added      budget analytics\n"),
        "{applied}"
    );
    let again = store.ok(&["apply"]);
    assert!(again.contains("unchanged  budget analytics\n"), "{again}");
    let one = |max: u32| json!({ "class": "analytics", "max": max, "match": { "application_name": "metabase" } });
    assert_eq!(store.json(&["budget", "list", "--json"]), one(1));
    let set = store.ok(&["budget", "set", "analytics", "--max", "3"]);
    assert_eq!(set, "set analytics  max 3  application_name = metabase\n");
    assert_eq!(store.json(&["budget", "list", "--json"]), one(3));
    let applied = store.ok(&["apply"]);
    assert!(
        applied.contains("changed    budget analytics  max: 3 -> 1"),
        "{applied}"
    );
    let set = store.json(&["budget", "set", "reports", "--max", "4", "--json"]);
    assert_eq!(set, json!({ "class": "reports", "max": 4, "match": {} }));
    let table = store.ok(&["budget", "list"]);
    assert_eq!(
        table,
        "CLASS      MAX  MATCH\n\
         analytics    1  application_name = metabase\n\
         reports      4  /* class:reports */\n"
    );
    let applied = store.ok(&["apply"]);
    assert!(
        applied.contains("budget reports is not in rowlock.toml and still holds"),
        "{applied}"
    );
    assert_eq!(
        store.ok(&["budget", "remove", "reports"]),
        "removed reports\n"
    );
    assert_eq!(store.run(&["budget", "remove", "reports"]).code, Some(3));
    let none = store.run(&["budget", "set", "reports", "--max", "0"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("use 1 to 1000"), "{none:?}");
}

#[test]
fn a_file_has_no_sessions_to_guard() {
    let place = Place::with_config("");
    for verb in [
        &["guard", "--once"][..],
        &["budget", "list"],
        &["budget", "set", "analytics", "--max", "1"],
    ] {
        let refused = place.run(verb);
        assert_eq!(refused.code, Some(2), "{verb:?}: {refused:?}");
        let why = "is for PostgreSQL only";
        assert!(refused.stderr.contains(why), "{verb:?}: {refused:?}");
    }
    let place = Place::with_config(&format!("{ECHO}{ANALYTICS}"));
    let refused = place.run(&["apply"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let place = Place::with_config(&format!("{ECHO}[guard]\n"));
    let warned = place.run(&["work", "--once", "--quiet"]);
    assert_eq!(warned.code, Some(0), "{warned:?}");
    assert!(
        warned.stderr.contains("with a SQLite file it does nothing"),
        "{warned:?}"
    );
}
