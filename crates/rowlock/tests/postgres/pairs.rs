//! Pairs over tables of every kind, beside open transactions, within a time.

use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::engine::postgres::{Address, Postgres, Role, Roles, grant_roles, migrate_up, source};
use rowlock::engine::{Batch, From, Lead, Schedule, Source, Ticked};
use rowlock::error::Error;
use rowlock::{Kind, Pair};
use rowlock_testbed::until;

use super::home::wait;
use super::small::Small;
use crate::conformance::world::{Home, Site, World, name};

/// A store with a table of the user's, and a pair over it.
pub struct Desk {
    pub small: Small,
    pub site: Site,
    pub pair: Pair,
    pub world: World,
}

impl Desk {
    pub async fn new(small: Small, tables: &str, key: &[&str], query: &str) -> Self {
        small.side.execute(tables).unwrap();
        let world = small.world();
        let site = world.open();
        let mut kind = Kind::new("create").unwrap();
        kind.key = key.iter().map(|column| name(column)).collect();
        let operate = site.rowlock.operate();
        operate.apply(std::slice::from_ref(&kind)).await.unwrap();
        let pair = Pair::new(kind.name.clone(), kind.key.clone(), query);
        let desk = Self {
            small,
            site,
            pair,
            world,
        };
        desk.declare(&desk.pair).await;
        desk
    }

    pub async fn declare(&self, pair: &Pair) {
        let pairs = std::slice::from_ref(pair);
        self.schedule().declare_pairs(pairs, true).await.unwrap();
    }

    pub fn schedule(&self) -> std::sync::Arc<dyn Schedule> {
        self.site.rowlock.schedule()
    }

    pub fn lead(&self) -> std::sync::Arc<dyn Lead> {
        self.site.rowlock.lead()
    }

    pub fn tables(&self) -> std::sync::Arc<dyn Source> {
        self.lead().source()
    }

    pub fn batch(&self, from: From) -> Batch {
        Batch {
            pair: self.pair.clone(),
            shard: 0,
            token: None,
            from,
            seed: 0.0,
            dry: false,
        }
    }

    pub async fn try_tick(
        &self,
        cursor: Option<&str>,
        limit: usize,
    ) -> rowlock::error::Result<Ticked> {
        let cursor = cursor.map(str::to_owned);
        self.lead()
            .tick(self.batch(From::Here { cursor, limit }))
            .await
    }

    pub async fn tick(&self, cursor: Option<&str>, limit: usize) -> Ticked {
        self.try_tick(cursor, limit).await.unwrap()
    }

    /// The keys of live jobs, by key.
    pub fn keys(&self) -> Vec<String> {
        let sql = "SELECT unique_key FROM rowlock.job WHERE kind = 'create' ORDER BY 1";
        let rows = self.small.side.query(sql).unwrap();
        rows.into_iter().flatten().flatten().collect()
    }
}

pub const TABLE: &str =
    "CREATE TABLE databases (id bigint PRIMARY KEY, name text, state text NOT NULL);
    INSERT INTO databases SELECT n, 'db ' || n, 'pending' FROM generate_series(1, 20) AS n";
pub const QUERY: &str = "SELECT id, name FROM databases WHERE state = 'pending'";

pub async fn an_open_enqueue_of_a_key_holds_up_only_a_tick_that_wants_it(small: Small) {
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    let enqueue = |id: i32| format!("SELECT rowlock.enqueue('create', '{{\"id\":{id}}}')");
    let rival = desk.small.own.session();
    rival.execute(&format!("BEGIN; {}", enqueue(15))).unwrap();
    let blocked = Ticked {
        blocked: true,
        ..Ticked::default()
    };
    assert_eq!(desk.tick(None, 20).await, blocked);
    assert_eq!(desk.keys(), Vec::<String>::new());
    let ticked = desk.tick(None, 14).await;
    assert_eq!((ticked.enqueued, ticked.blocked), (14, false), "{ticked:?}");
    assert_eq!(desk.tick(Some("[14]"), 6).await, blocked);
    rival.execute("COMMIT").unwrap();
    let ticked = desk.tick(Some("[14]"), 6).await;
    assert_eq!((ticked.enqueued, ticked.live), (5, 1), "{ticked:?}");
}

pub async fn a_lock_on_a_table_of_the_query_is_not_waited_for(small: Small) {
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    let rival = desk.small.own.session();
    rival
        .execute("BEGIN; LOCK TABLE databases IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    assert!(desk.tick(None, 20).await.blocked);
    rival.execute("ROLLBACK").unwrap();
    assert_eq!(desk.tick(None, 20).await.enqueued, 20);
}

/// Every batch goes on where the last one ended, and an enqueue of the same row is a duplicate.
async fn walk(small: Small, of: &[(&str, &str)], rows: &str) {
    let columns: Vec<String> = of
        .iter()
        .map(|(name, of)| format!("\"{name}\" {of}"))
        .collect();
    let tables = format!(
        "CREATE TABLE things ({}); INSERT INTO things {rows}",
        columns.join(", ")
    );
    let key: Vec<&str> = of.iter().map(|(name, _)| *name).collect();
    let desk = Desk::new(small, &tables, &key, "SELECT * FROM things").await;
    let columns = desk.tables().columns(&desk.pair).await.unwrap();
    let found: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(found, key);
    let rows = desk.small.number("SELECT count(*) FROM things");
    let mut cursor: Option<String> = None;
    let mut keys = Vec::new();
    loop {
        let ticked = desk.tick(cursor.as_deref(), 2).await;
        let lines = desk
            .tables()
            .derive(&desk.pair, 0, cursor.as_deref(), 2)
            .await
            .unwrap();
        assert_eq!((&lines.cursor, lines.more), (&ticked.cursor, ticked.more));
        assert_eq!(ticked.enqueued, lines.lines.len() as u64, "{ticked:?}");
        keys.extend(lines.lines.into_iter().map(|line| line.key));
        cursor = ticked.cursor;
        if !ticked.more {
            break;
        }
    }
    assert_eq!(keys.len(), rows);
    let again = "SELECT count(*) FROM things AS t, rowlock.enqueue('create', to_jsonb(t)) AS e
                 WHERE e.status = 'duplicate'";
    assert_eq!(desk.small.number(again), rows);
    let wanted = desk.tables().ask(&desk.pair, &keys).await.unwrap();
    assert_eq!(wanted, vec![true; rows]);
}

pub async fn uuids_are_keys(small: Small) {
    let rows = "SELECT gen_random_uuid() FROM generate_series(1, 7)";
    walk(small, &[("id", "uuid")], rows).await;
}

pub async fn texts_are_keys_in_the_order_of_their_collation(small: Small) {
    let rows = "VALUES ('a'), ('B'), ('ä'), (''), ('it''s'), (E'back\\\\slash'), ('\"'), (repeat('x', 400))";
    walk(small, &[("id", "text COLLATE \"C\"")], rows).await;
}

pub async fn padded_texts_are_keys(small: Small) {
    let rows = "VALUES ('abc'), ('abd'), ('a'), ('b'), ('c')";
    walk(small, &[("id", "character(5)")], rows).await;
}

pub async fn large_numbers_are_keys(small: Small) {
    let rows = "VALUES (-9223372036854775808), (0), (7), (9223372036854775807)";
    walk(small, &[("id", "bigint")], rows).await;
}

pub async fn long_fractions_are_keys(small: Small) {
    let rows = "VALUES (123456789012345678901234567890.10), (0.5), (-3), (1e-20), (7)";
    walk(small, &[("id", "numeric")], rows).await;
}

pub async fn days_and_times_are_keys(small: Small) {
    let rows = "SELECT day, day + n * interval '1 us'
                FROM (SELECT date '2026-01-01' + n / 2 AS day, n FROM generate_series(1, 7) AS n) AS x";
    walk(small, &[("day", "date"), ("at", "timestamptz")], rows).await;
}

pub async fn two_columns_are_a_key(small: Small) {
    let rows = "SELECT n / 3, 'x' || n FROM generate_series(1, 8) AS n";
    walk(small, &[("tenant", "integer"), ("Id", "varchar(10)")], rows).await;
}

pub async fn a_key_that_can_not_be_asked_about_is_wanted(small: Small) {
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    let keys = [
        "[7]", "[\"x\"]", "[99]", "[1e40]", "[null]", "nonsense", "[8]",
    ];
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    let wanted = desk.tables().ask(&desk.pair, &keys).await.unwrap();
    assert_eq!(wanted, [true, true, false, true, true, true, true]);
    // What is wrong with the query itself is not taken for a key's fault.
    let wrong = Pair::new(
        name("create"),
        vec![name("id")],
        "SELECT id FROM databases WHERE name::integer > 0",
    );
    let why = desk.tables().ask(&wrong, &keys[..1]).await.unwrap_err();
    assert!(
        matches!(&why, Error::Invalid(text) if text.contains("db 7")),
        "{why:?}"
    );
}

pub async fn rows_without_a_key_are_counted_by_ticks_of_any_length(small: Small) {
    let table = "CREATE TABLE loose (id bigint);
        INSERT INTO loose VALUES (1), (2), (2), (3), (NULL), (NULL), (4)";
    let desk = Desk::new(small, table, &["id"], "SELECT id FROM loose").await;
    let ticked = desk.tick(None, 10).await;
    let counts = |ticked: &Ticked| (ticked.found, ticked.without_key, ticked.repeated);
    assert_eq!(counts(&ticked), (7, 2, 1));
    assert_eq!((ticked.enqueued, ticked.more), (4, false));
    // The repeated one is just behind the end of the batch.
    let first = desk.tick(None, 2).await;
    assert_eq!(counts(&first), (2, 0, 1));
    let last = desk.tick(first.cursor.as_deref(), 10).await;
    assert_eq!(counts(&last), (4, 2, 0));
    assert!(!last.more);
}

pub async fn a_row_that_breaks_a_rule_is_named_and_the_others_get_their_jobs(small: Small) {
    let table = "CREATE TABLE wide (id bigint, body text);
        INSERT INTO wide VALUES (1, 'x'), (2, repeat('x', 1100000)), (3, 'x')";
    let desk = Desk::new(small, table, &["id"], "SELECT id, body FROM wide").await;
    let why = desk.tick(None, 10).await.broken.unwrap();
    assert!(why.contains("[2]") && why.contains("1048576"), "{why}");
    assert_eq!(desk.keys(), ["[1]", "[3]"]);
}

pub async fn a_query_that_takes_too_long_is_ended_on_the_server(small: Small) {
    let query = "SELECT id FROM databases, pg_sleep(3600)";
    let mut desk = Desk::new(small, TABLE, &["id"], query).await;
    desk.pair.timeout = Duration::from_millis(200);
    for source in [desk.tables(), source(&desk.small.own.url()).unwrap()] {
        let ask = source.ask(&desk.pair, &["[1]".to_owned()]).await;
        let derive = source.derive(&desk.pair, 0, None, 10).await.map(|_| ());
        let tick = desk.try_tick(None, 10).await.map(|_| ());
        for answer in [ask.map(|_| ()), derive, tick] {
            let why = answer.unwrap_err();
            let told = matches!(&why, Error::Invalid(text) if text == "timed out after 200ms");
            assert!(told, "{why:?}");
        }
    }
    let running = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                   AND state = 'active' AND query LIKE '%pg_sleep(3600)%' AND pid <> pg_backend_pid()";
    until("nobody runs it any more", || {
        (desk.small.number(running) == 0).then_some(())
    });
    // The next one is served.
    desk.pair.query = QUERY.to_owned();
    desk.pair.timeout = Duration::from_secs(30);
    assert_eq!(desk.tick(None, 20).await.enqueued, 20);
}

pub async fn a_walk_of_a_whole_table_is_noticed_and_the_index_helps(small: Small) {
    let tables = format!(
        "{TABLE}; CREATE TABLE notes (id bigint, state text, due_at timestamptz);
         INSERT INTO notes SELECT n, 'open', now() FROM generate_series(1, 1000) AS n"
    );
    let desk = Desk::new(small, &tables, &["id"], QUERY).await;
    let queries = [
        (QUERY, Some("WHERE (state = 'pending'::text)")),
        ("SELECT id FROM notes", None),
        (
            "SELECT n.id FROM notes AS n WHERE n.state = 'open'",
            Some("WHERE (state = 'open'::text)"),
        ),
        (
            "SELECT id FROM notes WHERE due_at < now()",
            Some("(due_at, id)"),
        ),
    ];
    for (query, part) in queries {
        let pair = Pair::new(name("create"), vec![name("id")], query).shards(3);
        let remarks = desk.tables().examine(&pair).await.unwrap().plans;
        assert!(!remarks.is_empty(), "{query}");
        let remedy = remarks[0].remedy.clone().unwrap();
        assert!(remedy.contains(part.unwrap_or("(id)")), "{remedy}");
        for remark in remarks {
            desk.small.side.execute(&remark.remedy.unwrap()).unwrap();
        }
        let left = desk.tables().examine(&pair).await.unwrap().plans;
        assert!(left.is_empty(), "{query}: {left:#?}");
        desk.small
            .side
            .execute("DROP INDEX IF EXISTS notes_id_idx, notes_id_idx1")
            .unwrap();
    }
}

pub async fn a_role_without_rights_on_the_table_is_told_so(small: Small) {
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    let role = format!("looker_{}", std::process::id());
    let side = &desk.small.side;
    side.execute(&format!("CREATE ROLE {role} LOGIN")).unwrap();
    let (_, rest) = desk.small.own.url().split_once("://").map_or_else(
        || panic!("a URL"),
        |(scheme, rest)| (scheme.to_owned(), rest.to_owned()),
    );
    let host = rest
        .rsplit_once('@')
        .map_or(rest.as_str(), |(_, host)| host);
    let other = source(&format!("postgres://{role}@{host}")).unwrap();
    let why = other.derive(&desk.pair, 0, None, 10).await.unwrap_err();
    let told = matches!(&why, Error::Invalid(text) if text.contains("permission denied"));
    assert!(told, "{why:?}");
    drop(other);
    side.execute(&format!("DROP ROLE {role}")).unwrap();
}

pub async fn what_is_wrong_with_a_query_is_told_in_the_servers_words(small: Small) {
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    for (query, words) in [
        ("SELECT id FROM nowhere", "nowhere"),
        ("SELECT id, FROM databases", "syntax error"),
        ("SELECT name FROM databases", "id"),
        ("SELECT id / 0 AS id FROM databases", "division by zero"),
        ("SELECT to_json(id) AS id FROM databases", "json"),
    ] {
        let pair = Pair::new(name("create"), vec![name("id")], query);
        let columns = desk.tables().columns(&pair).await.map(|_| ());
        let mut batch = desk.batch(From::Here {
            cursor: None,
            limit: 5,
        });
        batch.pair = pair;
        let tick = desk.lead().tick(batch).await.map(|_| ());
        let both = [columns, tick].into_iter().filter_map(Result::err);
        let both: Vec<Error> = both.collect();
        assert!(!both.is_empty(), "{query}");
        for why in both {
            assert!(
                matches!(&why, Error::Invalid(text) if text.contains(words)),
                "{query}: {why:?}"
            );
        }
    }
}

pub async fn a_tick_looks_for_each_key_in_the_index(small: Small) {
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    let side = &desk.small.side;
    let many = "INSERT INTO databases SELECT n, 'x', 'pending' FROM generate_series(21, 30000) AS n;
                INSERT INTO rowlock.key SELECT 'create', '[' || n || ']', n FROM generate_series(1, 30000) AS n";
    side.execute(many).unwrap();
    let tick = "SELECT live FROM rowlock.tick('SELECT ''['' || to_jsonb(r.id)::text || '']'' AS key, r AS q
        FROM (SELECT id, name FROM databases) AS r ORDER BY r.id LIMIT 1000', NULL, NULL, 1000, 'create', 0,
        NULL, 'create', NULL, NULL, true, 0, 0, false, false)";
    let scans = |table: &str| {
        side.value(&format!(
            "SELECT coalesce(seq_scan, 0) || ' ' || coalesce(idx_scan, 0) FROM pg_stat_xact_user_tables
             WHERE schemaname = 'rowlock' AND relname = '{table}'"
        ))
    };
    side.execute("BEGIN").unwrap();
    assert_eq!(side.value(tick), "1000");
    assert_eq!(scans("key"), "0 1000");
    // In whatever way; what other transactions of the session did may be in it.
    let looks = || -> i64 {
        let counts = scans("pair_key");
        counts.split(' ').map(|n| n.parse::<i64>().unwrap()).sum()
    };
    assert_eq!(
        looks(),
        1,
        "one look whether any key of the pair is held back"
    );
    // All at once, if that is what is expected.
    let expected = tick.replace("false, false)", "false, true)");
    let before = looks();
    assert_eq!(side.value(&expected), "1000");
    assert_eq!(looks(), before);
    let held = "INSERT INTO rowlock.pair_key VALUES ('create', '[0]', 'failed', NULL, 1)";
    side.execute(&format!("DELETE FROM rowlock.key; {held}"))
        .unwrap();
    let before = looks();
    assert_eq!(side.value(tick), "0");
    assert_eq!(looks() - before, 1_001, "and one for each that has no job");
    side.execute("ROLLBACK").unwrap();
}

pub async fn a_store_of_the_first_schema_is_brought_up_to_date(small: Small) {
    let (side, own) = (&small.side, &small.own);
    let address = || Address::parse(&own.url()).unwrap();
    let role = |task: &str| Role::new(&format!("first_{task}_{}", std::process::id())).unwrap();
    let roles = Roles {
        app: role("app"),
        worker: role("worker"),
        guard: role("guard"),
        reader: role("reader"),
    };
    wait(grant_roles(&address(), &roles)).unwrap();
    side.execute(
        "DROP TABLE rowlock.switched, rowlock.pair, rowlock.post, rowlock.pair_key, rowlock.cron, rowlock.cron_tick;
         DROP FUNCTION rowlock.tick, rowlock.fire, rowlock.hold_back;
         DROP TABLE rowlock.store;
         DROP FUNCTION rowlock.keep_route, rowlock.set_sent_aside;
         DROP TABLE rowlock.budget;
         DROP FUNCTION rowlock.budget_enter;
         DROP TRIGGER queue_switched ON rowlock.queue;
         DROP TRIGGER kind_changed ON rowlock.kind;
         DROP FUNCTION rowlock.queue_switched, rowlock.kind_changed;
         DROP INDEX rowlock.key_holder;
         DROP SEQUENCE rowlock.store_seed, rowlock.asleep, rowlock.heard;
        ALTER TABLE rowlock.worker DROP COLUMN doubted_seen, DROP COLUMN doubted_at;
         ALTER TABLE rowlock.kind DROP COLUMN plain;
         ALTER TABLE rowlock.queue DROP COLUMN route;
         DELETE FROM rowlock.migration WHERE version > 1;
         DELETE FROM rowlock.schema_part",
    )
    .unwrap();
    let old = wait(Postgres::open(address(), Clock::system())).unwrap_err();
    assert!(
        matches!(&old, Error::Schema(text) if text.contains("migrate up")),
        "{old:?}"
    );
    assert_eq!(wait(migrate_up(&address())).unwrap(), [2, 3, 4, 5, 6, 7, 8]);
    let site = small.open(&Clock::system());
    let health = site.rowlock.operate().health().await.unwrap();
    assert_eq!(health.drift, Vec::<String>::new());
    let problems = site.rowlock.operate().integrity().await.unwrap();
    assert!(problems.is_clean(), "{problems:?}");
    // Whoever works goes on working, and nobody else has got more.
    let may = |role: &Role, right: &str| {
        side.value(&format!(
            "SELECT has_table_privilege('{0}', 'rowlock.pair_key', '{right}') || ' ' || bool_and(
                 has_function_privilege('{0}', p.oid, 'EXECUTE'))
             FROM pg_proc AS p WHERE p.oid IN ('rowlock.tick'::regproc, 'rowlock.hold_back'::regproc, 'rowlock.claim_in_levels'::regproc,
                             'rowlock.keep_route'::regproc)",
            role.as_str()
        ))
    };
    let enters = format!(
        "SELECT has_function_privilege('{}', 'rowlock.budget_enter'::regproc, 'EXECUTE')",
        roles.app.as_str()
    );
    assert_eq!(side.value(&enters), "t");
    assert_eq!(may(&roles.worker, "UPDATE"), "true true");
    assert_eq!(may(&roles.reader, "SELECT"), "true false");
    assert_eq!(may(&roles.reader, "UPDATE"), "false false");
    assert_eq!(may(&roles.app, "SELECT"), "false false");
    for role in [&roles.app, &roles.worker, &roles.guard, &roles.reader] {
        let role = role.as_str();
        side.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
            .unwrap();
    }
}
