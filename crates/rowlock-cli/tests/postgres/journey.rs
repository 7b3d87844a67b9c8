//! A job's journey as an operator sees it; the same words as on SQLite.

use rowlock_testbed::Process;

use crate::store::{CANARY, Store, checked};

const ECHO: &str = "[handlers.echo]\nbuiltin = \"echo\"\n[handlers.flaky]\nbuiltin = \"flaky\"\nmax_attempts = 1\n";

#[test]
fn a_job_is_queued_run_and_shown() {
    let store = Store::new(ECHO);
    let finished = store.run(&["enqueue", "echo", r#"{"hello":"world"}"#]);
    assert_eq!(finished.stdout, "queued 1  echo  queue default\n");
    assert_eq!(finished.stderr, "");
    let pending = store.ok(&["job", "show", "1"]);
    assert!(
        pending.starts_with("1  echo  pending  attempt 0 of 5  waits "),
        "{pending}"
    );
    let work = store.run(&["work", "--once"]);
    assert_eq!(work.stdout, "{\"hello\":\"world\"}\n");
    let name = store.database.name();
    assert!(
        work.stderr.contains("  store      postgres://127.0.0.1:")
            && work.stderr.contains(&format!("/{name}, schema 8\n")),
        "{work:?}"
    );
    let shown = store.ok(&["job", "show", "1"]);
    assert!(
        shown.starts_with("1  echo  completed  attempt 1 of 5  waited "),
        "{shown}"
    );
    assert!(shown.contains("payload   {\"hello\":\"world\"}"), "{shown}");
    let stats = store.json(&["stats", "--json"]);
    assert_eq!(stats["completed"], 1, "{stats}");
}

#[test]
fn a_later_job_waits_and_its_key_is_taken() {
    let store = Store::new(ECHO);
    let later = ["enqueue", "echo", "{}", "--in", "10m", "--unique", "k"];
    assert_eq!(store.ok(&later), "queued 1  echo  in 10 m\n");
    assert_eq!(
        store.ok(&later),
        "duplicate 1  echo  pending with the same key\n"
    );
    assert_eq!(store.ok(&["work", "--once", "--quiet"]), "");
    let unknown = store.run(&["enqueue", "nobody", "--known"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

#[test]
fn failed_jobs_are_found_retried_and_deleted_by_filter() {
    let store = Store::new(ECHO);
    for _ in 0..3 {
        store.ok(&["enqueue", "flaky", "--tag", "x"]);
    }
    store.ok(&["enqueue", "echo", "--tag", "x"]);
    store.ok(&["work", "--once", "--quiet"]);
    let failed = store.ok(&["job", "list", "--state", "failed", "--json"]);
    assert_eq!(failed.lines().count(), 3);
    assert_eq!(store.ok(&["job", "retry", "--tag", "x"]), "retried 3\n");
    assert_eq!(
        store.ok(&["job", "cancel", "--kind", "flaky", "--limit", "2"]),
        "cancelled 2\n"
    );
    assert_eq!(
        store.ok(&["job", "delete", "--all", "--yes"]),
        "deleted 4\n"
    );
    assert_eq!(store.run(&["job", "delete", "1"]).code, Some(3));
}

#[test]
fn a_paused_queue_keeps_its_jobs_until_it_is_resumed() {
    let store = Store::new(ECHO);
    store.ok(&["enqueue", "echo", "--queue", "mail"]);
    assert_eq!(
        store.ok(&["queue", "pause", "mail", "--reason", "down"]),
        "paused mail\n"
    );
    assert!(store.ok(&["queue", "list"]).contains("paused: down"));
    assert_eq!(store.ok(&["work", "--once", "--quiet"]), "");
    assert_eq!(store.ok(&["queue", "resume", "mail"]), "resumed mail\n");
    assert_eq!(store.run(&["queue", "resume", "mail"]).code, Some(3));
    assert_eq!(store.ok(&["work", "--once", "--quiet"]), "{}\n");
}

#[test]
fn many_jobs_come_from_a_file_and_both_logs_are_verified() {
    let store = Store::new(ECHO);
    let lines = "{\"kind\":\"echo\"}\n".repeat(2_500);
    let told = ["enqueue", "--from", "-", "--told", "told.ndjson"];
    let finished = store.feed(&told, &lines);
    assert_eq!(finished.stdout, "queued 2,500\n", "{finished:?}");
    let bad = store.feed(&["enqueue", "--from", "-"], "{\"kind\":\"echo\"}\n{\n");
    assert_eq!(bad.code, Some(2), "{bad:?}");
    assert!(bad.stderr.contains("line 2: "), "{bad:?}");
    store.ok(&["work", "--once", "--quiet", "--ran", "ran.ndjson"]);
    let verified = store.ok(&["verify", "--told", "told.ndjson", "--ran", "ran.ndjson"]);
    assert!(
        verified.lines().all(|line| line.starts_with("ok ")),
        "{verified}"
    );
    assert_eq!(store.json(&["stats", "--json"])["completed"], 2_501);
}

#[test]
fn a_worker_serves_its_health_and_ends_on_a_signal() {
    let store = Store::new(ECHO);
    let mut worker = store.start(&["work", "-v", "--listen", "127.0.0.1:0"]);
    let line = worker.line_with("http://127.0.0.1:");
    let address = line.split("http://").nth(1).unwrap();
    let address = address.split('/').next().unwrap().to_owned();
    let id = store.json(&["enqueue", "echo", "--json"])["id"].clone();
    worker.line_with(&format!("settled job={id}"));
    let ready = get(&address, "/readyz");
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    worker.signal("TERM");
    let (code, lines) = worker.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains(CANARY)));
}

fn get(address: &str, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_library_opens_either_engine_by_its_url() {
    use rowlock::{NewJob, Rowlock};

    let store = Store::new(ECHO);
    store
        .place
        .ok(&["enqueue", "echo", "--url", "sqlite:jobs.db"]);
    let file = format!("sqlite:{}", store.place.path("jobs.db").display());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for (url, name, id) in [(file.as_str(), "sqlite", 2), (store.url(), "postgres", 1)] {
            let rowlock = Rowlock::connect(url).await.unwrap();
            assert_eq!(rowlock.engine().capabilities().name, name);
            let queued = rowlock.enqueue(&NewJob::new("echo").unwrap()).await;
            assert_eq!(queued.unwrap().id.map(|id| id.0), Some(id));
        }
    });
    let refused = Rowlock::open(store.url()).unwrap_err().to_string();
    assert!(refused.contains("Rowlock::connect(url).await"), "{refused}");
}

#[test]
fn nothing_is_made_before_migrate_up_and_every_verb_says_so() {
    let store = Store::empty(ECHO);
    for verb in [
        &["dev"][..],
        &["work", "--once"],
        &["enqueue", "echo"],
        &["stats"],
        &["job", "show", "1"],
        &["queue", "list"],
        &["apply"],
        &["doctor"],
        &["verify"],
    ] {
        let finished = store.run(verb);
        assert_eq!(finished.code, Some(5), "{verb:?}: {finished:?}");
        assert!(
            finished.stderr.contains("`rowlock migrate up --url "),
            "{verb:?}: {finished:?}"
        );
    }
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'rowlock'";
    assert_eq!(store.session().value(schemas), "0");
}

#[test]
fn a_server_that_is_not_there_is_exit_4_and_no_password_is_shown() {
    let store = Store::new(ECHO);
    let name = store.database.name();
    for (url, code) in [
        (store.url().replace(name, "no_such_database"), 4),
        (format!("postgres://ada:{CANARY}@127.0.0.1:1/app"), 4),
        (format!("postgres://ada:{CANARY}@127.0.0.1:x/app"), 2),
        (format!("postgres://ada:x@{CANARY}@127.0.0.1/app"), 2),
        (format!("postgres:ada:{CANARY}@127.0.0.1/app"), 2),
        (format!("{}?sslmode=require", store.url()), 2),
        (format!("mysql://ada:{CANARY}@127.0.0.1/app"), 2),
        (format!("host=127.0.0.1 password={CANARY}"), 2),
    ] {
        for verb in ["stats", "dev", "work", "doctor"] {
            let mut command = store.place.command(&[verb, "--url", &url]);
            let finished = checked(&[verb], Process::run(&mut command, ""));
            assert_eq!(finished.code, Some(code), "{url}: {finished:?}");
        }
    }
    for verb in [
        &["stats", "--log", "json"][..],
        &["work", "--once", "-v", "--log", "json"],
        &["enqueue", "Bad kind"],
        &["job", "show", "77"],
        &["migrate", "status"],
        &["migrate", "roles"],
        &["migrate", "sql"],
    ] {
        store.run(verb);
    }
    let file = format!("url = \"{}\"\n{ECHO}", store.url());
    store.place.write("rowlock.toml", file);
    let by_file = store.place.run(&["enqueue", "echo", "--priority", "1"]);
    assert_eq!(checked(&["enqueue"], by_file).code, Some(0));
}
