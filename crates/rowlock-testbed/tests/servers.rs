//! The testbed's own servers: they start, do as they are told, and are gone when they must be.

use rowlock_testbed::{PgBouncer, Postgres, Process, Redis, Session, Sidekiq, Stop, folder, until};
use std::collections::HashSet;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

#[test]
fn a_database_is_a_copy_of_its_template() {
    let postgres = Postgres::shared();
    let make = |url: &str| {
        let session = Session::open(url);
        session
            .execute("CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL)")
            .unwrap();
    };
    let template = postgres.template("copy", make);
    assert_eq!(
        postgres.template("copy", |_| panic!("made twice")),
        template
    );
    let (one, two) = (
        postgres.database_from(Some(&template)),
        postgres.database_from(Some(&template)),
    );
    assert_eq!(one.session().execute("DELETE FROM t WHERE a = 1"), Ok(1));
    assert_eq!(
        two.session().query("SELECT a, b FROM t ORDER BY a"),
        Ok(vec![
            vec![Some("1".to_owned()), Some("x".to_owned())],
            vec![Some("2".to_owned()), None]
        ])
    );
    let name = one.name().to_owned();
    let open = one.session();
    drop(one);
    assert!(open.query("SELECT 1").is_err(), "{name} is still there");
    let left = postgres.session().value(&format!(
        "SELECT count(*) FROM pg_database WHERE datname = '{name}'"
    ));
    assert_eq!(left, "0");
}

#[test]
fn an_empty_database_knows_no_table() {
    let database = Postgres::shared().database_from(None);
    let why = database.session().query("SELECT 1 FROM jobs").unwrap_err();
    assert_eq!(why, "42P01: relation \"jobs\" does not exist");
}

#[test]
fn a_session_works_inside_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let database = Postgres::shared().database_from(None);
        let session = database.session();
        assert_eq!(session.value("SELECT 1 + 1"), "2");
        assert!(session.pid() > 0);
    });
}

#[test]
fn a_statement_may_wait_while_the_test_goes_on() {
    let database = Postgres::shared().database_from(None);
    let (one, two) = (database.session(), database.session());
    one.execute("SELECT pg_advisory_lock(1)").unwrap();
    let pid = two.pid();
    let answer = two.send("SELECT pg_advisory_lock(1)");
    until("the second waits", || {
        let waits = format!("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = {pid}");
        (one.value(&waits) == "1").then_some(())
    });
    drop(one);
    answer.wait().unwrap();
}

#[test]
fn an_own_server_restarts_with_its_data_and_settings() {
    let postgres = Postgres::start_own();
    let database = postgres.database_from(None);
    let before = database.session();
    before.execute("CREATE TABLE t (a int)").unwrap();
    postgres.set("default_transaction_read_only = on");
    let why = database.session().execute("INSERT INTO t VALUES (1)");
    assert_eq!(
        why,
        Err("25006: cannot execute INSERT in a read-only transaction".to_owned())
    );
    postgres.set("default_transaction_read_only = off");
    database
        .session()
        .execute("INSERT INTO t VALUES (1)")
        .unwrap();
    postgres.restart(Stop::Immediate);
    assert!(before.query("SELECT 1").is_err(), "it wasn't restarted");
    assert_eq!(database.session().value("SELECT a FROM t"), "1");
    assert!(
        postgres.log().contains("automatic recovery in progress"),
        "{}",
        postgres.log()
    );
    let data = postgres.data_folder().to_owned();
    postgres.stop(Stop::Fast);
    assert!(Session::try_open(&postgres.admin_url()).is_err());
    drop(postgres);
    assert!(!data.exists(), "{} is still there", data.display());
}

#[test]
fn an_own_server_keeps_its_data_where_it_is_told() {
    let folder = folder();
    let postgres = Postgres::start_own_in(folder.path());
    assert!(postgres.data_folder().starts_with(folder.path()));
    assert!(postgres.data_folder().join("PG_VERSION").is_file());
    assert_eq!(postgres.session().value("SHOW fsync"), "off");
}

#[test]
fn pgbouncer_shares_few_connections_among_many_clients() {
    let postgres = Postgres::shared();
    let database = postgres.database_from(None);
    let bouncer = PgBouncer::start(postgres);
    let sessions: Vec<_> = (0..30)
        .map(|_| Session::open(&bouncer.url(database.name())))
        .collect();
    let pids: HashSet<_> = sessions.iter().map(Session::pid).collect();
    assert!(pids.len() <= 10, "{pids:?}");
    // A transaction has a connection to itself.
    let (one, two) = (&sessions[0], &sessions[1]);
    one.execute("BEGIN").unwrap();
    two.execute("BEGIN").unwrap();
    assert_ne!(one.pid(), two.pid());
}

#[test]
fn redis_forgets_everything_when_it_is_killed() {
    let redis = Redis::start();
    assert_eq!(redis.command(&["SET", "a", "1"]), "OK");
    assert_eq!(redis.command(&["MGET", "a", "b", "a"]), "1\n\n1");
    assert_eq!(redis.command(&["GET", "b"]), "");
    assert!(redis.try_command(&["LPUSH", "a", "1"]).is_err());
    redis.kill();
    assert!(redis.try_command(&["PING"]).is_err());
    redis.restart();
    assert_eq!(redis.command(&["DBSIZE"]), "0");
    let data = redis.data_folder().to_owned();
    assert!(data.exists());
    drop(redis);
    assert!(!data.exists(), "{} is still there", data.display());
}

#[test]
fn redis_keeps_what_it_is_told_to_keep() {
    let redis = Redis::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    assert_eq!(redis.command(&["SET", "a", "1"]), "OK");
    redis.restart();
    assert_eq!(redis.command(&["GET", "a"]), "1");
}

#[test]
fn sidekiq_notes_what_it_runs() {
    let redis = Redis::start();
    let folder = folder();
    let sidekiq = Sidekiq::start(&redis, folder.path(), &["mail", "default"]);
    let push = |jid: &str, class: &str, args: &str| {
        let job = format!(r#"{{"class":"{class}","jid":"{jid}","args":{args},"retry":3}}"#);
        redis.command(&["LPUSH", "queue:mail", &job]);
    };
    push("a1", "Noted", r#"["ä b",2,{"c":[]}]"#);
    until("the first has run", || {
        (sidekiq.ran().len() == 1).then_some(())
    });
    push("a2", "Failing", "[]");
    until("the second waits for its next attempt", || {
        (redis.command(&["ZCARD", "retry"]) == "1").then_some(())
    });
    sidekiq.stop();
    let ran: Vec<_> = sidekiq.ran();
    let ran = ran.iter().map(|run| (run.jid.as_str(), run.args.as_str()));
    assert_eq!(
        ran.collect::<Vec<_>>(),
        [("a1", r#"["ä b",2,{"c":[]}]"#), ("a2", "[]")]
    );
    push("a3", "Noted", "[]");
    assert_eq!(redis.command(&["LLEN", "queue:mail"]), "1");
}

#[test]
fn the_servers_of_a_killed_process_are_gone() {
    const HOLD: &str = "ROWLOCK_TESTBED_HOLD";
    if std::env::var_os(HOLD).is_some() {
        let postgres = Postgres::start_own();
        let bouncer = PgBouncer::start(&postgres);
        let redis = Redis::start();
        let ports = [postgres.port(), bouncer.port(), redis.port()].map(|port| port.to_string());
        let data = [postgres.data_folder(), redis.data_folder()].map(|path| path.display());
        println!("\nholding {} {} {} .", ports.join(" "), data[0], data[1]);
        loop {
            std::thread::park();
        }
    }
    let name = "the_servers_of_a_killed_process_are_gone";
    let mut holder = Process::start(
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(HOLD, "1"),
    );
    let line = holder.line_with("holding");
    let words: Vec<_> = line.split(' ').collect();
    let ports = [1, 2, 3].map(|at| words[at].parse::<u16>().unwrap());
    for port in ports {
        TcpStream::connect(("127.0.0.1", port)).unwrap();
    }
    holder.signal("KILL");
    for port in ports {
        until("the port is closed", || {
            TcpStream::connect(("127.0.0.1", port))
                .is_err()
                .then_some(())
        });
    }
    for data in &words[4..6] {
        until("the data is gone", || {
            (!Path::new(data).exists()).then_some(())
        });
    }
}

#[test]
fn a_process_may_borrow_a_server_and_sweeps_up_after_the_dead() {
    const BORROW: &str = "ROWLOCK_TESTBED_BORROW";
    if std::env::var_os(BORROW).is_some() {
        let postgres = Postgres::shared();
        let left = postgres.database_from(None);
        println!("\nborrowed {} {} .", postgres.port(), left.name());
        std::mem::forget(left);
        return;
    }
    let postgres = Postgres::shared();
    let borrow = || {
        let name = "a_process_may_borrow_a_server_and_sweeps_up_after_the_dead";
        let finished = Process::run(
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name, "--nocapture"])
                .env(BORROW, "1")
                .env("ROWLOCK_TEST_POSTGRES", postgres.admin_url()),
            "",
        );
        let said = finished.stdout;
        let line = said.lines().find(|line| line.starts_with("borrowed"));
        let words: Vec<_> = line.expect(&said).split(' ').map(str::to_owned).collect();
        assert_eq!(words[1], postgres.port().to_string());
        words[2].clone()
    };
    let session = postgres.session();
    let exists = |name: &str| {
        let sql = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
        session.value(&sql) == "1"
    };
    let mine = postgres.database_from(None);
    let first = borrow();
    assert!(exists(&first));
    let second = borrow();
    assert!(!exists(&first) && exists(&second) && exists(mine.name()));
}
