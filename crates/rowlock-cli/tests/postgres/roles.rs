//! What each role may do, and that it may do nothing else: every table, view, sequence and function of
//! the schema is tried, as the catalogue lists them.

use std::sync::atomic::{AtomicU32, Ordering};

use rowlock_testbed::{Postgres, Session, until};

use crate::store::Store;

const ECHO: &str = "[handlers.echo]\nbuiltin = \"echo\"\n";

/// A store with roles of its own; roles belong to the whole server.
pub struct Roles {
    prefix: String,
    store: Option<Store>,
}

impl Roles {
    fn prefix() -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        format!("rl_{}_{number}", std::process::id())
    }

    pub fn new() -> Self {
        let roles = Self {
            prefix: Self::prefix(),
            store: Some(Store::new(ECHO)),
        };
        let said = roles
            .store()
            .ok(&roles.args(&["migrate", "roles", "--run"]));
        assert_eq!(said.lines().count(), 4, "{said}");
        for task in ["app", "worker", "guard", "reader"] {
            let role = roles.of(task);
            roles.store().sql(&format!("ALTER ROLE {role} LOGIN"));
        }
        roles
    }

    pub fn of(&self, task: &str) -> String {
        format!("{}_{task}", self.prefix)
    }

    fn args<'a>(&self, verb: &[&'a str]) -> Vec<&'a str> {
        let mut args = verb.to_vec();
        for task in ["app", "worker", "guard", "reader"] {
            let flag = format!("--{task}={}", self.of(task));
            // As long as the test.
            args.push(String::leak(flag));
        }
        args
    }

    pub fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    /// A session of a role's own.
    fn session(&self, task: &str) -> Session {
        Session::open(&self.store().url_of(&self.of(task)))
    }

    /// Tries everything that isn't allowed.
    fn may_only(&self, task: &str, reads: bool, functions: &[&str]) {
        let session = self.session(task);
        let forbidden = forbidden(self.store(), reads, functions);
        assert!(forbidden.len() > 250, "{}", forbidden.len());
        for statement in forbidden {
            let answer = session.execute(&statement);
            let refused = answer.as_ref().is_err_and(|why| why.starts_with("42501: "));
            assert!(refused, "{task} may {statement}: {answer:?}");
        }
    }
}

impl Drop for Roles {
    fn drop(&mut self) {
        // Their rights go with the database.
        drop(self.store.take());
        let session = Postgres::shared().session();
        let like = format!(
            "SELECT rolname FROM pg_roles WHERE rolname LIKE '{}\\_%'",
            self.prefix
        );
        for role in session
            .query(&like)
            .unwrap()
            .into_iter()
            .flatten()
            .flatten()
        {
            let _ = session.execute(&format!("DROP ROLE {role}"));
        }
    }
}

/// Statements for everything in the schema, but for what is allowed.
fn forbidden(store: &Store, reads: bool, functions: &[&str]) -> Vec<String> {
    let rows = |text: &str| {
        let rows = store.session().query(text).unwrap();
        rows.into_iter().flatten().flatten().collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    let tables = "SELECT relname FROM pg_class WHERE relnamespace = 'rowlock'::regnamespace AND relkind IN ('r', 'p')";
    for table in rows(tables) {
        let column = rows(&format!(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'rowlock.{table}'::regclass AND attnum = 1"
        ));
        let column = &column[0];
        all.extend([
            format!("INSERT INTO rowlock.{table} DEFAULT VALUES"),
            format!("UPDATE rowlock.{table} SET {column} = {column}"),
            format!("DELETE FROM rowlock.{table}"),
            format!("TRUNCATE rowlock.{table}"),
            format!("DO $$ BEGIN LOCK TABLE rowlock.{table} IN EXCLUSIVE MODE; END $$"),
        ]);
        all.extend((!reads).then(|| format!("SELECT * FROM rowlock.{table} LIMIT 0")));
    }
    all.extend((!reads).then(|| "SELECT * FROM rowlock.jobs LIMIT 0".to_owned()));
    for sequence in rows(
        "SELECT relname FROM pg_class WHERE relnamespace = 'rowlock'::regnamespace AND relkind = 'S'",
    ) {
        all.push(format!("SELECT setval('rowlock.{sequence}', 7)"));
        all.push(format!("SELECT nextval('rowlock.{sequence}')"));
        all.extend((!reads).then(|| format!("SELECT last_value FROM rowlock.{sequence}")));
    }
    let calls = "SELECT p.proname, format('SELECT rowlock.%I(%s)', p.proname, (
        SELECT string_agg(CASE WHEN p.provariadic <> 0 AND n = p.pronargs THEN 'VARIADIC ' ELSE '' END
                          || 'NULL::' || format_type(t, NULL), ', ' ORDER BY n)
        FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS x (t, n)))
        FROM pg_proc AS p WHERE p.pronamespace = 'rowlock'::regnamespace";
    for call in store.session().query(calls).unwrap() {
        let (name, call) = (call[0].clone().unwrap(), call[1].clone().unwrap());
        all.extend((!functions.contains(&name.as_str())).then_some(call));
    }
    all.extend(
        [
            "CREATE TABLE rowlock.mine ()",
            "DROP TABLE rowlock.kind",
            "ALTER TABLE rowlock.kind ADD mine integer",
            "CREATE OR REPLACE FUNCTION rowlock.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL'",
            "DROP SCHEMA rowlock CASCADE",
        ]
        .map(str::to_owned),
    );
    all
}

#[test]
fn the_application_may_only_enqueue() {
    let roles = Roles::new();
    let session = roles.session("app");
    assert_eq!(session.value("SELECT id FROM rowlock.enqueue('mail')"), "1");
    let many =
        "SELECT count(*) FROM rowlock.enqueue_many('[{\"kind\":\"mail\"},{\"kind\":\"mail\"}]')";
    assert_eq!(session.value(many), "2");
    let late = "SELECT rowlock.complete(0::smallint, 1, 7, 0)";
    assert_eq!(session.value(late), "f");
    let one = "SELECT rowlock.stage_plain('mail', '{}', NULL, NULL, NULL, NULL, NULL)";
    assert_eq!(
        session.value(one),
        "16",
        "four times the id, and nothing: it is queued"
    );
    let none = "SELECT count(*) FROM rowlock.budget_enter('analytics')";
    assert_eq!(session.value(none), "0");
    let allowed = [
        "enqueue",
        "enqueue_many",
        "stage",
        "stage_plain",
        "stage_alike",
        "complete",
        "budget_enter",
    ];
    roles.may_only("app", false, &allowed);
    let refused = roles.store().run_as(&roles.of("app"), &["stats"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(
        refused.stderr.contains("rowlock migrate roles"),
        "{refused:?}"
    );
    assert_eq!(roles.store().json(&["stats", "--json"])["pending"], 4);
}

#[test]
fn a_reader_looks_and_changes_nothing() {
    let roles = Roles::new();
    let store = roles.store();
    store.ok(&["apply"]);
    store.ok(&["enqueue", "echo"]);
    store.ok(&["work", "--once", "--quiet"]);
    let reader = roles.of("reader");
    for verb in [
        &["stats"][..],
        &["job", "list"],
        &["job", "show", "1"],
        &["queue", "list"],
        &["verify"],
        &["migrate", "status"],
    ] {
        let finished = store.run_as(&reader, verb);
        assert_eq!(finished.code, Some(0), "{verb:?}: {finished:?}");
    }
    for verb in [
        &["enqueue", "echo"][..],
        &["work", "--once"],
        &["queue", "pause", "mail"],
        &["job", "delete", "1"],
        &["job", "retry", "1"],
    ] {
        let finished = store.run_as(&reader, verb);
        assert_eq!(finished.code, Some(4), "{verb:?}: {finished:?}");
    }
    let doctor = store.run_as(&reader, &["doctor"]);
    assert_eq!(doctor.code, Some(6), "{doctor:?}");
    let bad: Vec<&str> = doctor
        .stdout
        .lines()
        .filter(|line| line.starts_with("warn"))
        .collect();
    assert!(
        bad.len() == 1 && bad[0].contains("R011  this role can't do"),
        "{doctor:?}"
    );
    roles.may_only("reader", true, &["now", "is_on"]);
    assert_eq!(store.json(&["stats", "--json"])["completed"], 1);
}

#[test]
fn a_worker_does_all_that_happens_to_a_job() {
    let roles = Roles::new();
    let store = roles.store();
    let worker = roles.of("worker");
    for (verb, said) in [
        (&["apply"][..], "added      echo\n"),
        (&["enqueue", "echo"], "queued 1  echo  queue default\n"),
        (&["work", "--once", "--quiet"], "{}\n"),
        (&["queue", "pause", "mail"], "paused mail\n"),
        (&["queue", "resume", "mail"], "resumed mail\n"),
        (&["job", "retry", "1"], "retried 1\n"),
        (&["job", "cancel", "1"], "cancelled 1\n"),
        (&["job", "delete", "1"], "deleted 1\n"),
        (&["enqueue", "echo"], "queued 2  echo  queue default\n"),
    ] {
        let finished = store.run_as(&worker, verb);
        assert_eq!(finished.code, Some(0), "{verb:?}: {finished:?}");
        assert_eq!(finished.stdout, said, "{verb:?}: {finished:?}");
    }
    for verb in ["stats", "verify", "doctor"] {
        let finished = store.run_as(&worker, &[verb]);
        assert_eq!(finished.code, Some(0), "{verb}: {finished:?}");
    }
    let session = roles.session("worker");
    for statement in [
        "UPDATE rowlock.migration SET version = 2",
        "DELETE FROM rowlock.schema_part",
        "TRUNCATE rowlock.kind",
        "DROP TABLE rowlock.job_0",
    ] {
        let answer = session.execute(statement);
        assert!(
            answer.is_err_and(|why| why.starts_with("42501: ")),
            "{statement}"
        );
    }
}

#[test]
fn a_worker_may_turn_the_ring_and_prune() {
    let roles = Roles::new();
    let store = roles.store();
    let session = store.session();
    // One job waits in a segment that is closed.
    store.ok(&["enqueue", "echo"]);
    store.sql("SELECT setval('rowlock.ring', 9)");
    let mut command = store.command(&["work"]);
    command.env("ROWLOCK_URL", store.url_of(&roles.of("worker")));
    let worker = rowlock_testbed::Process::start(&mut command);
    until("the segment is emptied", || {
        let bytes = session.value("SELECT pg_relation_size('rowlock.job_0')");
        let ended = session.value("SELECT count(*) FROM rowlock.history");
        (bytes == "0" && ended == "1").then_some(())
    });
    worker.signal("TERM");
    let (code, lines) = worker.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    assert_eq!(store.json(&["stats", "--json"])["completed"], 1);
    store.sql(
        "CREATE OR REPLACE FUNCTION rowlock.now() RETURNS timestamptz LANGUAGE sql VOLATILE
         AS $$ SELECT clock_timestamp() + interval '3 days' $$",
    );
    assert_eq!(roles.session("worker").value("SELECT rowlock.prune()"), "1");
    assert_eq!(session.value("SELECT count(*) FROM rowlock.history"), "0");
}

#[test]
fn a_guard_sees_sessions_and_no_jobs() {
    let roles = Roles::new();
    let session = roles.session("guard");
    for of in ["pg_monitor", "pg_signal_backend"] {
        let member = format!("SELECT pg_has_role(current_user, '{of}', 'USAGE')");
        assert_eq!(session.value(&member), "t", "{of}");
    }
    let jobs = session.query("SELECT * FROM rowlock.jobs");
    assert!(jobs.is_err_and(|why| why.starts_with("42501: ")));
}

#[test]
fn a_guard_sees_and_ends_transactions_of_anybody_but_superusers() {
    let roles = Roles::new();
    let store = roles.store();
    let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 'a report'";
    let (app, postgres) = (roles.session("app"), store.session());
    let (app_pid, postgres_pid) = (app.pid(), postgres.pid());
    app.execute(snapshot).unwrap();
    postgres.execute(snapshot).unwrap();
    let guard = ["guard", "--once", "--json", "--max-age", "0s"];
    let flags = ["--action", "terminate"];
    let finished = store.run_as(&roles.of("guard"), &[&guard[..], &flags].concat());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let lines = finished.stdout.lines().map(serde_json::from_str);
    let seen: Vec<serde_json::Value> = lines.map(Result::unwrap).collect();
    let of = |pid: i32| seen.iter().find(|each| each["pid"] == pid).unwrap();
    assert_eq!(of(app_pid)["did"], "terminated", "{finished:?}");
    assert_eq!(of(app_pid)["query"], snapshot);
    assert_eq!(of(postgres_pid)["did"], "refused", "{finished:?}");
    assert!(app.query("SELECT 1").is_err() && postgres.query("SELECT 1").is_ok());
    // Whoever may not see it is told that there is something.
    let reader = store.run_as(&roles.of("reader"), &guard);
    assert_eq!(reader.code, Some(0), "{reader:?}");
    let seen: serde_json::Value = serde_json::from_str(&reader.stdout).unwrap();
    assert_eq!(seen["pid"], postgres_pid, "{reader:?}");
    assert_eq!(seen["spared"], "hidden");
    assert!(
        seen["remedy"]
            .as_str()
            .unwrap()
            .contains("GRANT pg_monitor")
    );
    let list = store.run_as(&roles.of("guard"), &["budget", "list"]);
    assert_eq!(list.code, Some(0), "{list:?}");
}

#[test]
fn an_owner_who_may_not_make_roles_grants_to_those_that_are_there() {
    let roles = Roles {
        prefix: Roles::prefix(),
        store: Some(Store::empty(ECHO)),
    };
    let store = roles.store();
    let owner = roles.of("owner");
    let database = store.database.name();
    store.sql(&format!(
        "CREATE ROLE {owner} LOGIN; GRANT CREATE ON DATABASE {database} TO {owner}"
    ));
    assert_eq!(store.run_as(&owner, &["migrate", "up"]).code, Some(0));
    let run = roles.args(&["migrate", "roles", "--run"]);
    let refused = store.run_as(&owner, &run);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    for task in ["app", "worker", "guard", "reader"] {
        store.sql(&format!("CREATE ROLE {} LOGIN", roles.of(task)));
    }
    let granted = store.run_as(&owner, &run);
    assert_eq!(granted.code, Some(0), "{granted:?}");
    assert_eq!(granted.stdout.lines().count(), 3, "{granted:?}");
    assert!(
        granted
            .stderr
            .contains("a superuser may say GRANT pg_monitor"),
        "{granted:?}"
    );
    assert_eq!(
        roles
            .session("app")
            .value("SELECT id FROM rowlock.enqueue('mail')"),
        "1"
    );
    // What is printed does the same, when a superuser runs it.
    let printed = store.ok(&roles.args(&["migrate", "roles"]));
    store.sql(&printed);
    let member = "SELECT pg_has_role(current_user, 'pg_monitor', 'USAGE')";
    assert_eq!(roles.session("guard").value(member), "t");
}
