//! Roles that may connect, and little or nothing else: whatever they hold, the jobs go on.

use std::sync::atomic::{AtomicU32, Ordering};

use rowlock::claim::WorkerId;
use rowlock::engine::postgres::{Address, migrate_up};
use rowlock::guard::Class;
use rowlock::settle::Verdict;
use rowlock_testbed::{Session, until};

use super::home::wait;
use super::small::{Small, drain_all};
use crate::conformance::world::{Home, LEASE, Site, World, name};

const MODES: [&str; 8] = [
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
];

/// A role of the server, which is gone with this value.
struct Role {
    name: String,
    database: String,
}

impl Role {
    fn new(small: &Small, grants: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let role = format!("stranger_{}_{number}", std::process::id());
        let made = format!(
            "DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN; {}",
            grants.replace("{role}", &role)
        );
        small.side.execute(&made).unwrap();
        Self {
            name: role,
            database: small.own.url(),
        }
    }

    fn session(&self, url: &str) -> Session {
        Session::open(&url.replace("postgres@", &format!("{}@", self.name)))
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let (session, role) = (Session::open(&self.database), &self.name);
        let _ = session.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    }
}

/// Every advisory key that shows while the store is used, and those that its functions once had.
fn keys(small: &Small) -> Vec<String> {
    let busy = small.own.session();
    busy.execute("BEGIN").unwrap();
    for call in [
        "SELECT rowlock.claim_in_levels(number, 7, 1, '{mail}', '{}', 'fair', '{}', '{}', '{}', '{}', 0, true, true, 0,
            '-infinity', '{}', '{}', '{}', '{}', '{}') FROM rowlock.worker",
        "SELECT rowlock.heartbeat(number, '{}', true) FROM rowlock.worker",
        "SELECT rowlock.tidy(), rowlock.prune(), rowlock.rotate(1, '{}'), rowlock.check_ids(), rowlock.note_plain()",
        "SELECT rowlock.set_switch('queue', 'mail', 'pause', 'why', 'ada', NULL)",
        "SELECT rowlock.budget_enter('analytics')",
        "SELECT rowlock.leave(number) FROM rowlock.worker",
    ] {
        busy.query(call).unwrap();
    }
    let seen = busy.query(
        "SELECT CASE objsubid WHEN 1 THEN format('%s', classid::bigint << 32 | objid::bigint)
                ELSE format('%s, %s', classid::bigint::bit(32)::integer, objid::bigint::bit(32)::integer) END
         FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
    );
    let seen = seen.unwrap().into_iter().flatten().flatten();
    let mut keys: Vec<String> = seen.collect();
    busy.execute("ROLLBACK").unwrap();
    let numbers = "SELECT (number % 2147483647)::integer FROM rowlock.worker";
    let numbers = small.side.query(numbers).unwrap().into_iter().flatten();
    keys.extend(
        numbers
            .flatten()
            .map(|number| format!("hashtext('rowlock.worker'), {number}")),
    );
    for task in ["rotate", "tally", "check_ids", "plain", "migrate"] {
        keys.push(format!("hashtext('rowlock.{task}'), 0"));
    }
    for place in 1..=2 {
        keys.push(format!(
            "hashtextextended('rowlock.budget analytics {place}', 0)"
        ));
    }
    keys
}

/// Whatever can be locked: tables, parts of them, and views.
fn relations(small: &Small) -> Vec<String> {
    let sql = "SELECT oid::regclass FROM pg_class
               WHERE relnamespace = 'rowlock'::regnamespace AND relkind IN ('r', 'p', 'v')";
    let rows = small.side.query(sql).unwrap();
    rows.into_iter().flatten().flatten().collect()
}

/// Tries every lock on every relation, and keeps what it gets; how many it got.
fn lock_everything(session: &Session, relations: &[String]) -> usize {
    session
        .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
        .unwrap();
    let mut got = 0;
    for relation in relations {
        let locks = MODES.map(|mode| format!("LOCK TABLE {relation} IN {mode} MODE NOWAIT"));
        let rows = format!("SELECT FROM {relation} FOR UPDATE");
        for attempt in locks.into_iter().chain([rows]) {
            session.execute("SAVEPOINT before").unwrap();
            if session.execute(&attempt).is_ok() {
                got += 1;
            } else {
                session.execute("ROLLBACK TO before").unwrap();
            }
        }
    }
    got
}

/// A store with a worker, a class and a known kind.
async fn scene(small: &Small) -> (World, Site) {
    let world = small.world();
    let site = small.open(&world.clock);
    let kinds = [rowlock::Kind::new("mail").unwrap()];
    site.rowlock.operate().apply(&kinds).await.unwrap();
    let class = Class::new(name("analytics"), 2).unwrap();
    site.rowlock.watch().declare_class(&class).await.unwrap();
    (world, site)
}

/// All that workers and operators do, with 120 jobs.
async fn goes_on(small: &Small, world: &World, site: &Site, worker: &WorkerId) {
    site.stage_many("mail", 120).await;
    drain_all(site, worker, &["mail"], 120).await;
    // Another one dies with a job.
    let (other, id) = (small.open(&world.clock), site.stage_many("mail", 1).await);
    let dying = other.join().await;
    assert_eq!(other.claim(&dying, &["mail"], 1).await.len(), 1);
    let living: [(&Site, &WorkerId, &[_]); 1] = [(site, worker, &[])];
    assert_eq!(site.observe(world, LEASE * 2, &living).await, 1);
    let suspect = site.claim_suspect(worker, &["mail"]).await;
    assert_eq!(suspect[0].id, id[0]);
    site.settle(&suspect[0], Verdict::Done).await;
    // Of each of these tasks there is one at a time. A vacuum may be in the way for a moment.
    until("the ring turns", || {
        (small.rotate(&[]).len() == 4).then_some(())
    });
    let more = "INSERT INTO rowlock.tally SELECT '2200-01-01', 'mail', 'failed', 0 FROM generate_series(1, 2000)";
    small.side.execute(more).unwrap();
    until("counts are added up", || {
        small.side.execute("SELECT rowlock.tidy()").unwrap();
        (small.number("SELECT count(*) FROM rowlock.tally") < 1_000).then_some(())
    });
    let switched = "UPDATE rowlock.kind SET plain = false";
    small.side.execute(switched).unwrap();
    until("a kind is plain", || {
        small.side.execute("SELECT rowlock.note_plain()").unwrap();
        (small.number("SELECT count(*) FROM rowlock.kind WHERE plain") == 1).then_some(())
    });
    for mode in ["'pause'", "NULL"] {
        let switched =
            format!("SELECT rowlock.set_switch('queue', 'mail', {mode}, 'why', 'ada', NULL)");
        assert_eq!(small.side.value(&switched), "t");
    }
    let behind = "SET lock_timeout = '5s'; SELECT setval('rowlock.job_id', 1)";
    small.side.execute(behind).unwrap();
    assert!(small.number("SELECT rowlock.check_ids()") > 0);
    let report = small.own.session();
    report.execute("BEGIN READ ONLY").unwrap();
    let place = "SELECT count(slot) FROM rowlock.budget_enter('analytics')";
    assert_eq!(report.value(place), "1");
    site.engine().upkeep().await.unwrap();
    site.engine().leave(worker).await.unwrap();
}

pub async fn a_role_without_a_grant_stops_no_job(small: Small) {
    let (world, site) = scene(&small).await;
    let role = Role::new(&small, "");
    for take in ["pg_advisory_lock", "pg_advisory_lock_shared"] {
        let worker = site.join().await;
        let keys = keys(&small);
        let (stranger, elsewhere) = (
            role.session(&small.own.url()),
            role.session(&small.own.empty_url()),
        );
        for session in [&stranger, &elsewhere] {
            for key in &keys {
                session.query(&format!("SELECT {take}({key})")).unwrap();
            }
        }
        assert_eq!(lock_everything(&stranger, &relations(&small)), 0);
        goes_on(&small, &world, &site, &worker).await;
        // Nor does it keep a new store from being made.
        wait(migrate_up(&Address::parse(&small.own.empty_url()).unwrap())).unwrap();
    }
}

pub async fn the_role_of_an_application_stops_no_job(small: Small) {
    let (world, site) = scene(&small).await;
    let grants = include_str!("../../src/engine/postgres/sql/role_app.sql");
    let role = Role::new(&small, grants);
    let app = role.session(&small.own.url());
    assert_eq!(lock_everything(&app, &relations(&small)), 0);
    // It keeps a transaction open in which it does what it may.
    for call in [
        "SELECT rowlock.enqueue('other')",
        "SELECT slot FROM rowlock.budget_enter('analytics')",
    ] {
        app.query(call).unwrap();
    }
    let worker = site.join().await;
    goes_on(&small, &world, &site, &worker).await;
}

pub async fn a_reader_of_every_table_stops_no_job(small: Small) {
    let (world, site) = scene(&small).await;
    let grants = include_str!("../../src/engine/postgres/sql/role_reader.sql");
    let role = Role::new(&small, grants);
    let reader = role.session(&small.own.url());
    let relations = relations(&small);
    assert_eq!(lock_everything(&reader, &relations), relations.len());
    let worker = site.join().await;
    goes_on(&small, &world, &site, &worker).await;
}
