//! What a worker on a server tells beside its own counts: the horizon, dead rows, the ring, the log, switches.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use rowlock_testbed::{Postgres, Process, until};

use crate::doctor_horizon::MANY;
use crate::store::Store;

const ECHO: &str = "[handlers.echo]\nbuiltin = \"echo\"\n";

fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The value of one line.
fn value(page: &str, name: &str) -> f64 {
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let text = line.unwrap_or_else(|| panic!("no {name} in {page}"));
    text.parse().unwrap()
}

#[test]
fn a_scrape_tells_about_the_server() {
    let store = Store::new(ECHO);
    store.ok(&["apply"]);
    let mut worker = store.start(&["work", "--listen", "127.0.0.1:0"]);
    let line = worker.line_with("http       http://");
    let (_, address) = line.split_once("http://").unwrap();
    let (address, _) = address.split_once('/').unwrap();
    let page = scrape(address);
    assert_eq!(value(&page, "rowlock_ring_rotations_total"), 0.0);
    let log = value(&page, "rowlock_wal_bytes_total");
    assert!(log > 0.0, "{page}");
    for segment in 0..4 {
        let name = format!("rowlock_segment_bytes{{segment=\"{segment}\"}}");
        assert_eq!(value(&page, &name), 0.0);
    }
    for table in ["segments", "history", "aside", "key", "kind"] {
        value(&page, &format!("rowlock_dead_rows{{table=\"{table}\"}}"));
    }
    assert!(!page.contains("rowlock_switch_on{"), "{page}");
    assert!(!page.contains("rowlock_sqlite_wal_bytes "), "{page}");

    let reader = store.session();
    reader
        .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        .unwrap();
    store.sql("CREATE TABLE orders AS SELECT n FROM generate_series(1, 100) AS n");
    store.sql("UPDATE orders SET n = n + 1");
    store.ok(&["enqueue", "echo", "--in", "30s"]);
    store.sql("SELECT setval('rowlock.ring', 25)");
    store.ok(&["queue", "pause", "mail"]);
    let page = until("the server has counted", || {
        let page = scrape(address);
        (value(&page, "rowlock_database_dead_rows") >= 100.0).then_some(page)
    });
    assert!(value(&page, "rowlock_horizon_age_seconds") > 0.0, "{page}");
    assert!(
        value(&page, "rowlock_horizon_age_transactions") >= 3.0,
        "{page}"
    );
    assert_eq!(value(&page, "rowlock_ring_rotations_total"), 3.0);
    assert!(value(&page, "rowlock_wal_bytes_total") > log, "{page}");
    let paused = "rowlock_switch_on{target=\"queue\",name=\"mail\",mode=\"pause\"}";
    assert_eq!(value(&page, paused), 1.0);
    store.ok(&["queue", "resume", "mail"]);
    let page = scrape(address);
    assert_eq!(value(&page, paused), 0.0);
    let judged = Process::run(Command::new("promtool").args(["check", "metrics"]), &page);
    let said = format!("{}{}", judged.stdout, judged.stderr);
    assert_eq!((judged.code, said.as_str()), (Some(0), ""), "{page}");
    worker.signal("TERM");
    assert_eq!(worker.wait().0, Some(0));
}

#[test]
fn a_logical_slot_is_in_the_age_of_the_horizon() {
    let server = Postgres::start_own();
    let store = Store::on(&server, ECHO);
    store.ok(&["migrate", "up"]);
    let mut served = store.start(&["dashboard", "--bind", "127.0.0.1:0"]);
    let line = served.line_with("http       http://");
    let (_, address) = line.split_once("http://").unwrap();
    let (address, _) = address.split_once('/').unwrap();
    let age = || value(&scrape(address), "rowlock_horizon_age_transactions");
    store.sql("SELECT pg_create_logical_replication_slot('old_replica', 'pgoutput')");
    store.sql(MANY);
    assert!(age() >= 10_000.0);
    store.sql("SELECT pg_drop_replication_slot('old_replica')");
    assert!(age() < 10_000.0);
}

/// Counts that wait for a table, as the server knows them.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                       AND wait_event_type = 'Lock' AND query LIKE 'SELECT job.queue, NULL AS state%'";

#[test]
fn scrapes_count_one_at_a_time_and_the_server_stops_when_nobody_waits() {
    let store = Store::new(ECHO);
    store.ok(&["migrate", "up"]);
    let mut served = store.start(&["dashboard", "--bind", "127.0.0.1:0"]);
    let line = served.line_with("http       http://");
    let (_, address) = line.split_once("http://").unwrap();
    let address = address.split_once('/').unwrap().0.to_owned();
    let (lock, look) = (store.session(), store.session());
    lock.execute("BEGIN; LOCK TABLE rowlock.tally IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let waiting = || -> usize { look.value(WAITING).parse().unwrap() };
    let scrapes: Vec<_> = (0..5)
        .map(|_| {
            let address = address.clone();
            let scrapes = move || scrape(&address);
            std::thread::Builder::new().spawn(scrapes).unwrap()
        })
        .collect();
    let mut most = 0;
    until("every scrape is answered", || {
        most = most.max(waiting());
        scrapes
            .iter()
            .all(std::thread::JoinHandle::is_finished)
            .then_some(())
    });
    assert_eq!(most, 1);
    // The table is locked still: whoever waited for it has been told to stop.
    until("nobody waits in the server", || {
        (waiting() == 0).then_some(())
    });
    lock.execute("ROLLBACK").unwrap();
    value(&scrape(&address), "rowlock_wal_bytes_total");
    for each in scrapes {
        each.join().unwrap();
    }
}
