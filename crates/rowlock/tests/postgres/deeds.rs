//! What a role without one right, and the application's role, may try: the store goes on all the same.

use rowlock::engine::postgres::{Address, Role, Roles, grant_roles};
use rowlock_testbed::{Postgres, Process, Session, until};

use super::home::wait;
use super::stand::{Stand, dismiss, rival};
use crate::conformance::world::Home;

/// As long as a case waits for what must happen: nothing is held up for longer than a lease.
const LEASE_MS: &str = "120000";

/// Whose session it is.
#[derive(Debug, Clone, Copy)]
enum By {
    /// It may connect to the database, and nothing else.
    Stranger,
    /// It may stage, complete in its own transaction, and keep to a budget.
    App,
}
use By::{App, Stranger};

/// Statements of one session, which then stays open, in its transaction if one was begun. `{n}` is the deed's
/// number, `{each}` a loop over our relations as `r`.
const DEEDS: &[(By, &str, &[&str])] = &[
    // Locks that anybody may take.
    (
        Stranger,
        "takes every advisory lock that is seen",
        &[SEEN_LOCKS],
    ),
    (Stranger, "takes them shared", &[SEEN_LOCKS_SHARED]),
    (
        Stranger,
        "takes the advisory locks of older versions",
        &[OLD_LOCKS],
    ),
    (
        Stranger,
        "waits for an advisory lock of a worker",
        &["SELECT pg_advisory_lock(hashtext('rowlock.worker'), 1)"],
    ),
    (App, "takes every advisory lock that is seen", &[SEEN_LOCKS]),
    (
        App,
        "takes the advisory locks of older versions",
        &[OLD_LOCKS],
    ),
    // Locks of tables and rows.
    (Stranger, "locks our tables", &["BEGIN", LOCK_ALL]),
    (App, "locks our tables", &["BEGIN", LOCK_ALL]),
    (Stranger, "locks rows of ours", &["BEGIN", LOCK_ROWS]),
    (App, "locks rows of ours", &["BEGIN", LOCK_ROWS]),
    (
        Stranger,
        "locks the catalogue",
        &[
            "BEGIN",
            "LOCK TABLE pg_class, pg_attribute, pg_proc IN ACCESS SHARE MODE",
        ],
    ),
    // Transactions that stay open.
    (
        Stranger,
        "keeps a snapshot",
        &[
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
            "SELECT count(*) FROM pg_class",
        ],
    ),
    (
        Stranger,
        "keeps a writing transaction",
        &[
            "BEGIN",
            "CREATE TEMPORARY TABLE mine (n int)",
            "INSERT INTO mine VALUES (1)",
        ],
    ),
    (
        App,
        "keeps an enqueue open",
        &["BEGIN", "SELECT rowlock.enqueue('quick')"],
    ),
    (
        App,
        "keeps an enqueue in a new lane open",
        &["BEGIN", "SELECT rowlock.enqueue('fresh', queue => 'q{n}')"],
    ),
    (
        App,
        "keeps the declaration of a new kind open",
        &[
            "BEGIN",
            r#"SELECT rowlock.stage('[{"kind":"unheard_{n}","payload":"{}","declared":{"queue":"q{n}"}}]')"#,
        ],
    ),
    (
        App,
        "prepares a transaction with an enqueue",
        &[
            "BEGIN",
            "SELECT rowlock.enqueue('quick')",
            "PREPARE TRANSACTION 'deed_{n}'",
        ],
    ),
    (
        App,
        "enqueues and takes it back",
        &[
            "BEGIN",
            "SELECT rowlock.enqueue('fresh', queue => 'q{n}')",
            "ROLLBACK",
        ],
    ),
    // The channel.
    (
        Stranger,
        "listens and never reads",
        &["LISTEN \"rowlock.ready\"", "BEGIN", "SELECT 1"],
    ),
    (
        Stranger,
        "floods the channel",
        &["SELECT count(pg_notify('rowlock.ready', n::text)) FROM generate_series(1, 20000) AS n"],
    ),
    (
        App,
        "sends what isn't understood",
        &["SELECT pg_notify('rowlock.ready', repeat('x', 7000))"],
    ),
    // Sessions of ours.
    (
        Stranger,
        "ends our sessions",
        &[
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
        ],
    ),
    (
        Stranger,
        "cancels our statements",
        &[
            "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
        ],
    ),
    (
        App,
        "ends our sessions",
        &[
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
        ],
    ),
    // What is ours.
    (Stranger, "drops, empties and changes", &[CHANGE_ALL]),
    (App, "drops, empties and changes", &[CHANGE_ALL]),
    (Stranger, "sets our sequences back", &[SET_SEQUENCES]),
    (App, "sets our sequences back", &[SET_SEQUENCES]),
    (Stranger, "calls all our functions", &[CALL_ALL]),
    (App, "calls what it wasn't granted", &[CALL_ALL]),
    (
        App,
        "becomes the owner",
        &[
            "SET ROLE postgres",
            "SET SESSION AUTHORIZATION postgres",
            "GRANT postgres TO CURRENT_USER",
        ],
    ),
    (
        App,
        "puts functions in the way",
        &[
            "CREATE FUNCTION rowlock.now(text) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$",
            "CREATE SCHEMA mine",
            "CREATE TEMPORARY TABLE kind (kind text)",
            "CREATE FUNCTION pg_temp.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'epoch'::timestamptz $$",
            "SELECT rowlock.enqueue('quick')",
        ],
    ),
    (
        Stranger,
        "publishes and subscribes",
        &[
            "CREATE PUBLICATION all_{n} FOR ALL TABLES",
            "SELECT pg_create_logical_replication_slot('slot_{n}', 'pgoutput')",
            "SELECT pg_create_physical_replication_slot('slot_{n}')",
        ],
    ),
    (
        Stranger,
        "changes the settings",
        &[
            "ALTER DATABASE postgres SET default_transaction_read_only = on",
            "ALTER SYSTEM SET max_connections = 1",
            "ALTER ROLE ALL SET lock_timeout = 1",
        ],
    ),
    // What the application may call, with what it mustn't say.
    (
        App,
        "completes with a guessed token",
        &[
            "SELECT rowlock.complete(s::smallint, n, 1, 1) FROM generate_series(0, 4) AS s, generate_series(1, 100) AS n",
        ],
    ),
    (
        App,
        "takes every place of a budget",
        &[
            "BEGIN",
            "SELECT rowlock.budget_enter('reports') FROM generate_series(1, 100)",
        ],
    ),
    (
        App,
        "stages what breaks the rules",
        &[
            r#"SELECT rowlock.stage('[{"kind":"quick","payload":"{}","declared":{"queue":"a\u001b[2J","max_attempts":-1}}]')"#,
            r#"SELECT rowlock.enqueue('quick', queue => E'\n')"#,
            "SELECT rowlock.enqueue(E'\\x1b[2J')",
            "SELECT rowlock.enqueue('quick', scheduled_at => 'infinity')",
            "SELECT rowlock.enqueue('quick', scheduled_at => '-infinity')",
            "SELECT rowlock.enqueue('quick', max_attempts => -1)",
            "SELECT rowlock.enqueue('quick', priority => 99999)",
        ],
    ),
    (
        App,
        "stages ten thousand lanes",
        &[
            "SELECT count(rowlock.enqueue('fresh', queue => 'lane_' || n % 100, priority => n % 100)) FROM generate_series(1, 10000) AS n",
        ],
    ),
];

const SEEN_LOCKS: &str = "SELECT count(pg_try_advisory_lock(classid::integer, objid::integer)) + \
    count(pg_try_advisory_lock((classid::bigint << 32) + objid::bigint)) FROM pg_locks WHERE locktype = 'advisory'";
const SEEN_LOCKS_SHARED: &str = "SELECT count(pg_try_advisory_lock_shared(classid::integer, objid::integer)) + \
    count(pg_try_advisory_lock_shared((classid::bigint << 32) + objid::bigint)) FROM pg_locks WHERE locktype = 'advisory'";
const OLD_LOCKS: &str = "SELECT count(pg_try_advisory_lock(hashtext('rowlock.' || word), n)) \
    FROM unnest('{worker,rotate,tally,ids,check_ids,migrate,plain,prune,tidy,route,switch,budget}'::text[]) AS word, \
    generate_series(0, 200) AS n";
const LOCK_ALL: &str = "DO $$ DECLARE r regclass; mode text; BEGIN {each} \
    FOREACH mode IN ARRAY '{ACCESS SHARE,ROW SHARE,ROW EXCLUSIVE,SHARE UPDATE EXCLUSIVE,SHARE,SHARE ROW EXCLUSIVE,\
    EXCLUSIVE,ACCESS EXCLUSIVE}'::text[] LOOP BEGIN EXECUTE format('LOCK TABLE %s IN %s MODE NOWAIT', r, mode); \
    EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END LOOP; END $$";
const LOCK_ROWS: &str = "DO $$ DECLARE r regclass; BEGIN {each} BEGIN EXECUTE \
    format('SELECT count(*) FROM (SELECT FROM %s FOR UPDATE NOWAIT) AS x', r); \
    EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$";
const CHANGE_ALL: &str = "DO $$ DECLARE r regclass; deed text; BEGIN {each} \
    FOREACH deed IN ARRAY ARRAY['DELETE FROM %s', 'TRUNCATE %s', 'DROP TABLE %s CASCADE', 'ALTER TABLE %s RENAME TO lost', \
    'CREATE INDEX ON %s ((1))', 'ALTER TABLE %s DISABLE TRIGGER ALL', 'VACUUM %s', 'ALTER TABLE %s OWNER TO CURRENT_USER'] \
    LOOP BEGIN EXECUTE format(deed, r); EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END LOOP; \
    BEGIN EXECUTE 'DROP SCHEMA rowlock CASCADE'; EXCEPTION WHEN OTHERS THEN NULL; END; END $$";
const SET_SEQUENCES: &str = "DO $$ DECLARE r regclass; BEGIN FOR r IN SELECT c.oid::regclass FROM pg_class AS c \
    JOIN pg_namespace AS s ON s.oid = c.relnamespace WHERE s.nspname = 'rowlock' AND c.relkind = 'S' LOOP \
    BEGIN PERFORM setval(r, 1); EXCEPTION WHEN OTHERS THEN NULL; END; \
    BEGIN PERFORM nextval(r); EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$";
/// Every argument is a null: what answers at all, or raises, was reached. What was granted may be reached.
const CALL_ALL: &str = "DO $$ DECLARE f record; BEGIN FOR f IN SELECT p.oid, p.proname, p.prokind, \
    (SELECT coalesce(string_agg(CASE WHEN p.provariadic <> 0 AND n = p.pronargs THEN 'VARIADIC ' ELSE '' END \
    || 'NULL::' || format_type(t, NULL), ', ' ORDER BY n), '') FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n)) AS nulls \
    FROM pg_proc AS p JOIN pg_namespace AS s ON s.oid = p.pronamespace WHERE s.nspname = 'rowlock' \
    AND p.proname NOT IN ('enqueue', 'enqueue_many', 'stage', 'stage_plain', 'stage_alike', 'complete', 'budget_enter') LOOP \
    BEGIN EXECUTE format('SELECT rowlock.%I(%s)', f.proname, f.nulls); RAISE EXCEPTION 'called'; \
    EXCEPTION WHEN insufficient_privilege THEN NULL; WHEN OTHERS THEN RAISE EXCEPTION 'reached %: %', f.proname, SQLERRM; \
    END; END LOOP; END $$";
const EACH: &str = "FOR r IN SELECT c.oid::regclass FROM pg_class AS c JOIN pg_namespace AS s ON s.oid = c.relnamespace \
    WHERE s.nspname = 'rowlock' AND c.relkind IN ('r', 'p', 'v') LOOP";

pub fn neither_a_stranger_nor_the_application_stops_the_store() {
    let server = Postgres::start_own();
    server.set("max_prepared_transactions = 8");
    server.restart(rowlock_testbed::Stop::Fast);
    let stand = Stand::on(&server);
    let url = stand.home.url();
    let role = |task: &str| Role::new(task).unwrap();
    let roles = Roles {
        app: role("deeds_app"),
        worker: role("deeds_worker"),
        guard: role("deeds_guard"),
        reader: role("deeds_reader"),
    };
    wait(grant_roles(&Address::parse(&url).unwrap(), &roles)).unwrap();
    let side = stand.home.session();
    side.execute(
        "CREATE ROLE deeds_stranger LOGIN; ALTER ROLE deeds_app LOGIN; ALTER ROLE deeds_worker LOGIN;
         INSERT INTO rowlock.budget (class, max) VALUES ('reports', 2)",
    )
    .unwrap();
    let of = |name: &str| url.replace("postgres@", &format!("{name}@"));
    let worker_url = of("deeds_worker");
    let mut worker = Process::start(&mut rival(&[
        "work",
        &worker_url,
        LEASE_MS,
        "4",
        "quick,fresh",
    ]));
    worker.line_with("ready");
    goes_on(&side, "before anything was done", "first");
    for (n, (by, what, statements)) in DEEDS.iter().enumerate() {
        let name = match by {
            Stranger => "deeds_stranger",
            App => "deeds_app",
        };
        let session = Session::open(&of(name));
        let answers: Vec<_> = statements
            .iter()
            .map(|sql| sql.replace("{n}", &n.to_string()).replace("{each}", EACH))
            .map(|sql| session.send(&sql))
            .collect();
        for answer in answers {
            let told = answer.wait();
            let reached = matches!(&told, Err(why) if why.contains("reached"));
            assert!(!reached, "{by:?} {what}: {told:?}");
        }
        goes_on(&side, &format!("{by:?} {what}"), &format!("q{n}"));
        drop(session);
    }
    for prepared in side.query("SELECT gid FROM pg_prepared_xacts").unwrap() {
        let name = prepared[0].as_deref().unwrap();
        side.execute(&format!("ROLLBACK PREPARED '{name}'"))
            .unwrap();
    }
    let crowd: Vec<Session> =
        std::iter::from_fn(|| Session::try_open(&of("deeds_stranger")).ok()).collect();
    assert!(!crowd.is_empty());
    goes_on(&side, "every connection is taken", "crowded");
    drop(crowd);
    let integrity = stand.ask(stand.site.rowlock.operate().integrity()).unwrap();
    assert!(integrity.is_clean(), "{integrity:#?}");
    dismiss(worker);
}

/// Jobs are taken and run, also of the lane that the deed may have touched.
fn goes_on(side: &Session, after: &str, queue: &str) {
    let ids = side.value(&format!(
        "SELECT string_agg(j.id::text, ',') FROM generate_series(1, 6) AS n,
             LATERAL rowlock.enqueue(CASE n WHEN 6 THEN 'fresh' ELSE 'quick' END,
                queue => CASE n WHEN 6 THEN '{queue}' END, priority => 100) AS j"
    ));
    let ended =
        format!("SELECT count(*) FROM rowlock.jobs WHERE id IN ({ids}) AND state = 'completed'");
    until(&format!("jobs run though: {after}"), || {
        (side.value(&ended) == "6").then_some(())
    });
}
