//! The application's own file: our tables beside a foreign schema.

use rowlock::clock::Clock;
use rowlock::engine::sqlite::{Address, Sqlite, Synchronous, migrate_up};
use rowlock::{Error, NewJob, Rowlock};
use rusqlite::Connection;

use super::home::File;

fn application() -> (rowlock_testbed::TempDir, Address, Connection) {
    let folder = rowlock_testbed::folder();
    let path = folder.path().join("app.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA user_version = 42;
             PRAGMA application_id = 4711;
             CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT);
             CREATE VIEW names AS SELECT name FROM users;
             INSERT INTO users (name) VALUES ('ada');",
        )
        .unwrap();
    let address = Address::parse(&format!("sqlite:{}", path.display())).unwrap();
    (folder, address, connection)
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

pub fn beside_a_foreign_schema_nothing_of_it_is_touched() {
    let (_folder, address, connection) = application();
    let foreign = "SELECT count(*) FROM sqlite_master WHERE name NOT LIKE 'rowlock%' AND name NOT LIKE 'sqlite%'";
    let before = number(&connection, foreign);
    migrate_up(&address, &Clock::system()).unwrap();
    let rowlock = Rowlock::with(
        Sqlite::open(address, Clock::system()).unwrap(),
        Clock::system(),
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime
        .block_on(rowlock.enqueue(&NewJob::new("mail").unwrap()))
        .unwrap();
    drop(rowlock);
    assert_eq!(number(&connection, "PRAGMA user_version"), 42);
    assert_eq!(number(&connection, "PRAGMA application_id"), 4711);
    assert_eq!(number(&connection, foreign), before);
    assert_eq!(number(&connection, "SELECT count(*) FROM users"), 1);
    assert_eq!(number(&connection, "SELECT count(*) FROM rowlock_jobs"), 1);
    assert_eq!(
        number(
            &connection,
            "SELECT count(*) FROM sqlite_master WHERE tbl_name NOT LIKE 'rowlock\\_%' ESCAPE '\\' AND name LIKE '%rowlock%'"
        ),
        0,
        "everything of ours carries the prefix"
    );
}

pub fn the_applications_transaction_commits_both_or_neither() {
    let (_folder, address, mut connection) = application();
    migrate_up(&address, &Clock::system()).unwrap();
    let counts = |connection: &Connection| {
        (
            number(connection, "SELECT count(*) FROM users"),
            number(connection, "SELECT count(*) FROM rowlock_jobs"),
        )
    };
    for commit in [false, true] {
        let tx = connection.transaction().unwrap();
        tx.execute("INSERT INTO users (name) VALUES ('grace')", [])
            .unwrap();
        let answer = rowlock::enqueue_blocking(&tx, &NewJob::new("welcome").unwrap()).unwrap();
        assert!(answer.id.is_some());
        tx.execute(
            "INSERT INTO rowlock_enqueue (kind, payload) VALUES ('audit', '{}')",
            [],
        )
        .unwrap();
        if commit {
            tx.commit().unwrap();
            assert_eq!(counts(&connection), (2, 2));
        } else {
            tx.rollback().unwrap();
            assert_eq!(counts(&connection), (1, 0));
        }
    }
    // A refused batch takes nothing of the caller's along.
    connection
        .execute_batch("INSERT INTO rowlock_kind (kind, key_fields) VALUES ('keyed', '[\"to\"]')")
        .unwrap();
    let tx = connection.transaction().unwrap();
    tx.execute("INSERT INTO users (name) VALUES ('joan')", [])
        .unwrap();
    let jobs = [
        NewJob::new("welcome").unwrap(),
        NewJob::new("keyed").unwrap(),
    ];
    let refused = rowlock::enqueue_many_blocking(&tx, &jobs);
    assert!(
        matches!(refused, Err(Error::InvalidAt { index: 1, .. })),
        "{refused:?}"
    );
    tx.commit().unwrap();
    assert_eq!(counts(&connection), (3, 2));
}

pub fn an_attached_file_is_refused_with_the_remedy() {
    let (_folder, _, connection) = application();
    let jobs = File::new();
    let path = jobs.address().path;
    connection
        .execute("ATTACH ?1 AS jobs", [path.to_str().unwrap()])
        .unwrap();
    let refused = rowlock::enqueue_blocking(&connection, &NewJob::new("mail").unwrap());
    let Err(Error::Schema(why)) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("url = \"sqlite:app.db\""), "{why}");
    assert_eq!(
        number(&connection, "SELECT count(*) FROM jobs.rowlock_jobs"),
        0
    );
}

/// Asked of SQLite, not of our settings. What the setting is worth in a power cut is SQLite's word.
pub fn a_commit_waits_for_the_disk_unless_told_otherwise() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let home = File::new();
    let mut address = home.address();
    for expected in [Synchronous::Full, Synchronous::Normal] {
        let engine = Sqlite::open(address.clone(), Clock::system()).unwrap();
        let found = runtime.block_on(engine.durability()).unwrap();
        assert_eq!(found, ("wal".to_owned(), expected));
        address.synchronous = Synchronous::Normal;
    }
}

pub fn a_file_that_is_gone_takes_no_jobs() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (_folder, address, _) = application();
    migrate_up(&address, &Clock::system()).unwrap();
    let path = address.path.clone();
    let rowlock = Rowlock::with(
        Sqlite::open(address, Clock::system()).unwrap(),
        Clock::system(),
    );
    let enqueue = || runtime.block_on(rowlock.enqueue(&NewJob::new("mail").unwrap()));
    enqueue().unwrap();
    std::fs::rename(&path, path.with_extension("moved")).unwrap();
    let gone = enqueue();
    assert!(matches!(gone, Err(Error::Unreachable(_))), "{gone:?}");
    let read = runtime.block_on(rowlock.operate().stats());
    assert!(matches!(read, Err(Error::Unreachable(_))), "{read:?}");
    std::fs::copy(path.with_extension("moved"), &path).unwrap();
    let replaced = enqueue().unwrap_err().to_string();
    assert!(replaced.contains("replaced"), "{replaced}");
    std::fs::rename(path.with_extension("moved"), &path).unwrap();
    enqueue().unwrap();
}

pub fn a_row_written_by_hand_stops_nobody() {
    let home = File::new();
    let connection = home.connect();
    for wrong in [
        "INSERT INTO rowlock_kind (kind, priority) VALUES ('a', 'high')",
        "INSERT INTO rowlock_kind (kind, queue) VALUES ('a', 'my queue')",
        "INSERT INTO rowlock_kind (kind, timeout_ms) VALUES ('a', '30s')",
        "INSERT INTO rowlock_kind (kind, key_fields) VALUES ('a', 'to')",
        "INSERT INTO rowlock_kind (kind, switch) VALUES ('a', 'off')",
        "INSERT INTO rowlock_queue (queue, switch_until) VALUES ('a', 'soon')",
    ] {
        assert!(connection.execute_batch(wrong).is_err(), "{wrong}");
    }
    // Nothing keeps people from writing nonsense into the job table itself.
    connection
        .execute_batch(
            "INSERT INTO rowlock_job (kind, queue, priority, state, max_attempts, scheduled_at, created_at, unique_until, payload)
             VALUES ('mail', 'my queue', 0, 'pending', 'many', 0, 'today', 'x', CAST(x'ff' AS TEXT));
             INSERT INTO rowlock_job (kind, queue, priority, state, max_attempts, scheduled_at, created_at, unique_until, tags, errors, payload)
             VALUES ('mail', 'default', 0, 'pending', 5, 0, 0, 'finished', 'red', 'none', '{');
             INSERT INTO rowlock_enqueue (kind) VALUES ('mail');",
        )
        .unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let engine = Sqlite::open(home.address(), Clock::system()).unwrap();
    let rowlock = Rowlock::with(engine, Clock::system());
    let options = rowlock::run::Options {
        once: true,
        ..Default::default()
    };
    let worker = rowlock::Worker::new(rowlock.clone(), ())
        .options(options)
        .handle_kind(
            rowlock::Kind::new("mail").unwrap(),
            |_: rowlock::Context| async { rowlock::Outcome::Done },
        );
    let tally = runtime
        .block_on(worker.run_until(rowlock::run::Stopper::default().stop()))
        .unwrap();
    assert_eq!(
        (tally.settled, tally.lost),
        (2, 0),
        "the job in a queue without a valid name waits"
    );
    let stats = runtime.block_on(rowlock.operate().stats()).unwrap();
    assert_eq!((stats.total.pending, stats.total.completed), (1, 2));
    let all = rowlock::engine::Filter {
        limit: 10,
        ..Default::default()
    };
    assert_eq!(
        runtime.block_on(rowlock.operate().jobs(all)).unwrap().len(),
        3
    );
}
