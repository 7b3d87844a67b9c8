//! A start while the server isn't there yet: what waits, for what, and how it ends.

use std::io::{Read, Write};

use rowlock_testbed::{Postgres, Process, Redis, Stop, until};

use crate::place::Place;
use crate::store::Store;

const CONFIG: &str = "[handlers.echo]\nbuiltin = \"echo\"\n";
const WAITING: &str = "waiting for the database postgres://127.0.0.1:";

/// A server of its own that has our tables, and is stopped.
fn stopped(config: &str) -> (Postgres, Store) {
    let server = Postgres::start_own();
    let store = Store::on(&server, config);
    store.ok(&["migrate", "up"]);
    server.stop(Stop::Fast);
    (server, store)
}

#[test]
fn what_runs_for_long_waits_for_a_server_that_starts() {
    let redis = Redis::start();
    let drain = format!("[[drain]]\nkinds = [\"mail\"]\nto = \"{}\"\n", redis.url());
    let (server, store) = stopped(&format!("{CONFIG}{drain}"));
    let mut all: Vec<(Process, &str)> = [
        (&["work"] as &[&str], "  worker "),
        (&["drain", "run"], "  drain "),
        (&["dashboard", "--bind", "127.0.0.1:0"], "  dashboard "),
        // It may see the others begin.
        (&["guard"], ""),
    ]
    .into_iter()
    .map(|(args, begun)| (Process::start(&mut store.command(args)), begun))
    .collect();
    for (process, _) in &mut all {
        let line = process.line_with(WAITING);
        assert!(line.contains("(up to 1 m)"), "{line}");
    }
    server.start();
    for (process, begun) in &mut all {
        process.line_with(begun);
    }
    store.ok(&["enqueue", "echo"]);
    until("the job is done", || {
        (store.json(&["stats", "--json"])["completed"] == 1).then_some(())
    });
    for (process, _) in all {
        process.signal("TERM");
        assert_eq!(process.wait().0, Some(0));
    }
}

#[test]
fn every_other_verb_and_a_run_once_end_at_once() {
    let (server, store) = stopped(CONFIG);
    for args in [
        &["stats"] as &[&str],
        &["enqueue", "echo"],
        &["work", "--once"],
        &["guard", "--once"],
        &["work", "--wait", "0s"],
    ] {
        let ended = store.run(args);
        assert_eq!(ended.code, Some(4), "{args:?}: {ended:?}");
        assert!(!ended.stderr.contains("waiting"), "{args:?}: {ended:?}");
    }
    // Unless it is told to, on the command line or for all of them.
    let config = format!("{CONFIG}[worker]\nwait = \"300ms\"\n");
    store.place.write("rowlock.toml", config);
    let ended = store.run(&["work"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("(up to 300 ms)"), "{ended:?}");
    let ended = store.run(&["work", "--once", "--wait", "300ms"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains(WAITING), "{ended:?}");
    assert!(ended.stderr.contains("can't reach"), "{ended:?}");
    server.start();
}

#[test]
fn what_has_to_be_mended_is_not_waited_for() {
    let server = Postgres::start_own();
    let store = Store::on(&server, CONFIG);
    let ended = |url: &str| {
        let mut command = store.place.command(&["work", "--wait", "10m"]);
        Process::run(command.env("ROWLOCK_URL", url), "")
    };
    let refuse = "local all all trust\nhost all refused all reject\nhost all secret all scram-sha-256\n\
                  host all all all trust\n";
    std::fs::write(server.data_folder().join("pg_hba.conf"), refuse).unwrap();
    let admin = server.session();
    admin
        .execute("CREATE ROLE refused LOGIN; CREATE ROLE secret LOGIN PASSWORD 'another'")
        .unwrap();
    admin.execute("SELECT pg_reload_conf()").unwrap();
    let nowhere = store.url().replace(store.database.name(), "nowhere");
    for (url, code) in [
        (store.url(), 5),
        (&*nowhere, 4),
        (&*store.url_of("refused"), 4),
        // With a wrong password.
        (&*store.url_of("secret"), 4),
    ] {
        let ended = ended(url);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(!ended.stderr.contains("waiting"), "{ended:?}");
    }
    let gone = Place::with_config(CONFIG).run(&["work", "--url", "sqlite:missing/rowlock.db"]);
    assert_eq!(gone.code, Some(4), "{gone:?}");
    assert!(!gone.stderr.contains("waiting"), "{gone:?}");
}

#[test]
fn a_server_that_is_starting_up_is_waited_for() {
    // 57P03: it recovers, and takes no connection before it has. What it says here it says for ever.
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let answering = std::thread::Builder::new().spawn(move || {
        for client in server.incoming() {
            let mut client = client.unwrap();
            let mut asked = [0; 512];
            // Nothing is read from a test that only ends this.
            if client.read(&mut asked).unwrap_or(0) == 0 {
                return;
            }
            let fields = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0";
            let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
            let _ = client.write_all(&[b"E", &length[..], fields].concat());
        }
    });
    let place = Place::with_config(CONFIG);
    let url = format!("postgres://postgres@127.0.0.1:{port}/jobs");
    let mut work = place.start(&["work", "--url", &url]);
    let line = work.line_with(WAITING);
    assert!(line.contains("is starting up"), "{line}");
    work.signal("TERM");
    assert_eq!(work.wait().0, Some(0));
    drop(std::net::TcpStream::connect(("127.0.0.1", port)).unwrap());
    answering.unwrap().join().unwrap();
}

#[test]
fn a_signal_ends_the_wait_at_once() {
    let (server, store) = stopped(CONFIG);
    for (args, signal, code) in [
        (&["work"] as &[&str], "INT", 0),
        (&["work"], "TERM", 0),
        (&["work", "--once", "--wait", "10m"], "INT", 4),
    ] {
        let mut work = Process::start(&mut store.command(args));
        work.line_with(WAITING);
        work.signal(signal);
        let (ended, lines) = work.wait();
        assert_eq!(ended, Some(code), "{args:?}: {lines:?}");
    }
    server.start();
}

#[test]
fn a_full_server_is_waited_for() {
    let server = Postgres::start_own();
    let store = Store::on(&server, CONFIG);
    store.ok(&["migrate", "up"]);
    store
        .database
        .session()
        .execute("CREATE ROLE small LOGIN")
        .unwrap();
    store
        .database
        .session()
        .execute("GRANT ALL ON SCHEMA rowlock TO small")
        .unwrap();
    store
        .database
        .session()
        .execute("ALTER ROLE small CONNECTION LIMIT 0")
        .unwrap();
    let mut command = store.command(&["work"]);
    command.env("ROWLOCK_URL", store.url_of("small"));
    let mut work = Process::start(&mut command);
    let line = work.line_with(WAITING);
    assert!(line.contains("too many connections"), "{line}");
    work.signal("TERM");
    assert_eq!(work.wait().0, Some(0));
}

#[test]
fn a_worker_of_redis_waits_for_its_redis() {
    let redis = Redis::start();
    redis.kill();
    let place = Place::with_config(CONFIG);
    let mut work = place.start(&["work", "--from", &redis.url()]);
    work.line_with("waiting for redis://127.0.0.1:");
    redis.restart();
    work.line_with("  worker ");
    work.signal("TERM");
    assert_eq!(work.wait().0, Some(0));
}

#[test]
fn a_file_that_is_locked_is_waited_for() {
    let place = Place::with_config(CONFIG);
    place.ok(&["migrate", "up"]);
    let other = place.file();
    other
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT;")
        .unwrap();
    let mut work = place.start(&["work"]);
    work.line_with("waiting for the database ./rowlock.db");
    drop(other);
    work.line_with("  worker ");
    work.signal("TERM");
    assert_eq!(work.wait().0, Some(0));
}
