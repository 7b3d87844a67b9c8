//! What a role without one right, and the application's role, may try: the store goes on all the same.

use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::engine::postgres::{Address, Role, Roles, grant_roles};
use rowlock::job::Cron;
use rowlock_testbed::{Postgres, Process, Session, until};

use super::home::wait;
use super::stand::{Stand, dismiss, rival};
use crate::conformance::pairs::{declare, pair_of_rivals};
use crate::conformance::world::{Home, name};

/// Whatever is done, no job, cron or row waits for longer.
const LEASE: Duration = Duration::from_secs(15);
/// So many crons are due one after the other, one each second.
const CRONS: u32 = 60;

/// Whose session it is.
#[derive(Debug, Clone, Copy)]
enum By {
    /// It may connect to the database, and nothing else.
    Stranger,
    /// It may stage, complete in its own transaction, and keep to a budget.
    App,
}
use By::{App, Stranger};

/// Statements of one session, which then stays open, in its transaction if one was begun; those that begin with
/// `@` are those of a second one. `{n}` is the deed's number, `{each}` a loop over our relations as `r`.
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
        "keeps the key of a job open",
        &["BEGIN", r#"SELECT rowlock.enqueue('keyed', '{"id":-{n}}')"#],
    ),
    (
        App,
        "keeps the key of a pair's row open",
        &[
            "BEGIN",
            r#"SELECT rowlock.enqueue('create', '{"id":-{n}}')"#,
        ],
    ),
    (
        App,
        "keeps the key of a cron's job open",
        &["BEGIN", r#"SELECT rowlock.enqueue('tock', '{"id":1}')"#],
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
        Stranger,
        "listens and never reads while another session floods the channel",
        &["LISTEN \"rowlock.ready\"", "BEGIN", "SELECT 1", FLOOD],
    ),
    (
        App,
        "listens and never reads while another session floods the channel",
        &["LISTEN \"rowlock.ready\"", "BEGIN", "SELECT 1", FLOOD],
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
            "SELECT rowlock.budget_enter('reports')",
            "@BEGIN",
            "@SELECT rowlock.budget_enter('reports')",
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

const FLOOD: &str =
    "@SELECT count(pg_notify('rowlock.ready', n::text)) FROM generate_series(1, 20000) AS n";
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

/// A store with all that it can have, and what it is asked again and again.
struct Scene {
    stand: Stand,
    side: Session,
    clock: Clock,
}

impl Scene {
    fn on(server: &Postgres) -> Self {
        let stand = Stand::on(server);
        let side = stand.home.session();
        let url = stand.home.url();
        let role = |task: &str| Role::new(task).unwrap();
        let roles = Roles {
            app: role("deeds_app"),
            worker: role("deeds_worker"),
            guard: role("deeds_guard"),
            reader: role("deeds_reader"),
        };
        wait(grant_roles(&Address::parse(&url).unwrap(), &roles)).unwrap();
        side.execute(
            "CREATE ROLE deeds_stranger LOGIN; ALTER ROLE deeds_app LOGIN; ALTER ROLE deeds_worker LOGIN;
             INSERT INTO rowlock.budget (class, max) VALUES ('reports', 2);
             CREATE TABLE databases (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'pending');
             GRANT SELECT, UPDATE ON databases TO deeds_worker",
        )
        .unwrap();
        let crons: Vec<_> = (0..CRONS)
            .map(|n| {
                let payload = rowlock::Payload::of(&serde_json::json!({"id": n})).unwrap();
                let once_a_year = "0 0 1 1 *";
                let cron = Cron::new(name(&format!("tock_{n}")), name("tock"), once_a_year);
                (cron.payload(payload), Clock::system().now())
            })
            .collect();
        let schedule = stand.site.rowlock.schedule();
        stand.ask(schedule.declare_crons(&crons, false)).unwrap();
        stand.ask(declare(&stand.site, &pair_of_rivals()));
        let clock = Clock::system();
        Self { stand, side, clock }
    }

    fn url_of(&self, role: &str) -> String {
        let url = self.stand.home.url();
        url.replace("postgres@", &format!("{role}@"))
    }

    /// Jobs are taken and run, also of the lane that the deed may have touched; crons fire and rows get their jobs.
    /// All within a lease.
    fn goes_on(&self, after: &str, n: usize) {
        let began = self.clock.elapsed();
        // The row whose number is negative is the one whose key a deed may keep.
        self.side
            .execute(&format!(
                "INSERT INTO databases (id) VALUES ({n}), (-{n});
                 UPDATE rowlock.cron SET next_at = clock_timestamp() + substr(name, 6)::integer * interval '1 s'"
            ))
            .unwrap();
        let from = self.side.value("SELECT clock_timestamp()");
        let ids = self.side.value(&format!(
            r#"SELECT string_agg(j.id::text, ',') FROM (VALUES ('quick', NULL), ('quick', NULL), ('quick', NULL),
                   ('fresh', 'q{n}'), ('keyed', NULL)) AS wanted (kind, lane),
                   LATERAL rowlock.enqueue(kind, '{{"id":{n}}}', queue => lane, priority => 100) AS j"#
        ));
        let missing = format!(
            "SELECT concat_ws(', ',
                 CASE WHEN (SELECT count(*) FROM rowlock.jobs WHERE id IN ({ids}) AND state = 'completed') < 5
                      THEN 'jobs' END,
                 CASE WHEN NOT EXISTS (SELECT 1 FROM rowlock.cron_tick AS k JOIN rowlock.jobs AS j ON j.id = k.job_id
                      WHERE k.tick >= '{from}' AND j.state = 'completed') THEN 'crons' END,
                 CASE WHEN (SELECT state FROM databases WHERE id = {n}) <> 'ready' THEN 'rows' END)"
        );
        until(&format!("it goes on though: {after}"), || {
            let missing = self.side.value(&missing);
            let waited = self.clock.elapsed().saturating_sub(began);
            assert!(
                waited < LEASE,
                "{missing} wait for {waited:?} though: {after}"
            );
            missing.is_empty().then_some(())
        });
    }

    fn no_row_is_forgotten(&self) {
        until("every row has had its job", || {
            let pending = "SELECT count(*) FROM databases WHERE state <> 'ready'";
            (self.side.value(pending) == "0").then_some(())
        });
        let operate = self.stand.site.rowlock.operate();
        let integrity = self.stand.ask(operate.integrity()).unwrap();
        assert!(integrity.is_clean(), "{integrity:#?}");
    }
}

pub fn neither_a_stranger_nor_the_application_stops_the_store() {
    let server = Postgres::start_own();
    server.set("max_prepared_transactions = 8");
    server.restart(rowlock_testbed::Stop::Fast);
    let scene = Scene::on(&server);
    let lease = LEASE.as_millis().to_string();
    let worker_url = scene.url_of("deeds_worker");
    let mut worker = Process::start(&mut rival(&["serve", &worker_url, &lease]));
    worker.line_with("ready");
    scene.goes_on("nothing was done yet", 1_000);
    for (n, (by, what, statements)) in DEEDS.iter().enumerate() {
        let n = n + 1;
        let url = scene.url_of(match by {
            Stranger => "deeds_stranger",
            App => "deeds_app",
        });
        let (session, other) = (Session::open(&url), Session::open(&url));
        let answers: Vec<_> = statements
            .iter()
            .map(|sql| sql.replace("{n}", &n.to_string()).replace("{each}", EACH))
            .map(|sql| match sql.strip_prefix('@') {
                Some(sql) => other.send(sql),
                None => session.send(&sql),
            })
            .collect();
        for answer in answers {
            let told = answer.wait();
            let reached = matches!(&told, Err(why) if why.contains("reached"));
            assert!(!reached, "{by:?} {what}: {told:?}");
        }
        scene.goes_on(&format!("{by:?} {what}"), n);
        drop((session, other));
    }
    let side = &scene.side;
    for prepared in side.query("SELECT gid FROM pg_prepared_xacts").unwrap() {
        let name = prepared[0].as_deref().unwrap();
        side.execute(&format!("ROLLBACK PREPARED '{name}'"))
            .unwrap();
    }
    let stranger = scene.url_of("deeds_stranger");
    let crowd: Vec<Session> = std::iter::from_fn(|| Session::try_open(&stranger).ok()).collect();
    assert!(!crowd.is_empty());
    scene.goes_on("every connection is taken", 2_000);
    drop(crowd);
    scene.no_row_is_forgotten();
    dismiss(worker);
}
