//! The testbed's network: it fails when and how a test wants.

use rowlock_testbed::{Database, Postgres, Proxy, Session, until};

fn through_a_proxy() -> (Database, Proxy, Session) {
    let postgres = Postgres::shared();
    let database = postgres.database_from(None);
    let proxy = Proxy::to(postgres.port());
    let session = Session::open(&proxy.url(database.name()));
    assert_eq!(session.execute("CREATE TABLE t (a int)"), Ok(0));
    (database, proxy, session)
}

#[test]
fn a_cut_resets_every_connection_and_only_those() {
    let (database, proxy, session) = through_a_proxy();
    assert_eq!(proxy.count(), 1);
    proxy.cut();
    assert_eq!(proxy.count(), 0);
    let why = session.query("SELECT 1").unwrap_err();
    assert!(why.contains("reset") || why.contains("closed"), "{why}");
    let again = Session::open(&proxy.url(database.name()));
    assert_eq!(again.value("SELECT 1"), "1");
    assert_eq!(proxy.accepted(), 2);
}

#[test]
fn a_client_never_hears_of_a_commit_that_happened() {
    let (database, proxy, session) = through_a_proxy();
    proxy.cut_when_client_sends(b"COMMIT");
    session.execute("BEGIN").unwrap();
    session.execute("INSERT INTO t VALUES (1)").unwrap();
    session.execute("COMMIT").unwrap_err();
    proxy.wait_for_cut();
    assert_eq!(database.session().value("SELECT count(*) FROM t"), "1");
    // Once.
    let again = Session::open(&proxy.url(database.name()));
    again.execute("BEGIN").unwrap();
    again.execute("COMMIT").unwrap();
}

#[test]
fn an_answer_of_many_packets_is_withheld_to_its_end() {
    let (database, proxy, session) = through_a_proxy();
    proxy.cut_when_client_sends(b"RETURNING");
    let sql = "INSERT INTO t SELECT generate_series(1, 100000) RETURNING a";
    session.execute(sql).unwrap_err();
    assert_eq!(database.session().value("SELECT count(*) FROM t"), "100000");
}

#[test]
fn a_server_never_hears_of_a_commit_that_a_client_sent() {
    let (database, proxy, session) = through_a_proxy();
    proxy.cut_before_client_sends(b"COMMIT");
    session.execute("BEGIN").unwrap();
    session.execute("INSERT INTO t VALUES (1)").unwrap();
    let pid = session.pid();
    session.execute("COMMIT").unwrap_err();
    proxy.wait_for_cut();
    let there = database.session();
    until("the server has noticed", || {
        let left = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
        (there.value(&left) == "0").then_some(())
    });
    assert_eq!(there.value("SELECT count(*) FROM t"), "0");
}

#[test]
fn silence_holds_everything_back_until_it_ends() {
    let (database, proxy, session) = through_a_proxy();
    proxy.drop_packets(true);
    let answer = session.send("INSERT INTO t VALUES (1)");
    let url = proxy.url(database.name());
    let late = std::thread::Builder::new()
        .spawn(move || Session::open(&url).value("SELECT 1"))
        .unwrap();
    until("the newcomer hangs", || {
        (proxy.accepted() == 2).then_some(())
    });
    let there = database.session();
    assert_eq!(there.value("SELECT count(*) FROM t"), "0");
    assert_eq!(proxy.count(), 1);
    proxy.drop_packets(false);
    answer.wait().unwrap();
    assert_eq!(late.join().unwrap(), "1");
    assert_eq!(there.value("SELECT count(*) FROM t"), "1");
}

#[test]
fn a_cut_reaches_those_that_hang_in_silence() {
    let (database, proxy, session) = through_a_proxy();
    proxy.drop_packets(true);
    let answer = session.send("INSERT INTO t VALUES (1)");
    let url = proxy.url(database.name());
    let newcomer = std::thread::Builder::new()
        .spawn(move || Session::try_open(&url).map(drop))
        .unwrap();
    until("the newcomer hangs", || {
        (proxy.accepted() == 2).then_some(())
    });
    proxy.cut();
    answer.wait().unwrap_err();
    newcomer.join().unwrap().unwrap_err();
    assert_eq!(database.session().value("SELECT count(*) FROM t"), "0");
}

#[test]
fn a_dropped_proxy_takes_no_connection() {
    let (database, proxy, session) = through_a_proxy();
    let url = proxy.url(database.name());
    drop(proxy);
    session.query("SELECT 1").unwrap_err();
    Session::try_open(&url).unwrap_err();
}
