//! What pins the horizon is found, named and by policy ended; what must not be touched isn't.

use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::error::Error;
use rowlock::guard::{Action, Class, Did, Due, End, Guard, Policy, Rule, Seen, Spared, What};
use rowlock::{Name, Rowlock};
use rowlock_testbed::{Database, Postgres, Session, until};

use super::home::{Own, wait};
use super::replica::Replica;
use crate::conformance::world::{Home, name};

/// Longer than a transaction may last.
pub const LATER: &str = "10 minutes";

pub struct Scene {
    pub own: Own,
    pub rowlock: Rowlock,
    /// Somebody who looks on.
    pub side: Session,
}

impl Scene {
    pub fn new() -> Self {
        Self::of(Own::new())
    }

    fn of(own: Own) -> Self {
        Self {
            rowlock: own.open(Clock::system()),
            side: own.session(),
            own,
        }
    }

    /// A session that calls itself so.
    pub fn session(&self, application: &str) -> Session {
        Session::open(&format!(
            "{}?application_name={application}",
            self.own.url()
        ))
    }

    /// The same, in a transaction with a snapshot.
    pub fn reader(&self, application: &str) -> Session {
        let session = self.session(application);
        session
            .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 'reading'")
            .unwrap();
        session
    }

    /// Everything looks that much older.
    pub fn passes(&self, time: &str) {
        let later = format!(
            "CREATE OR REPLACE FUNCTION rowlock.now() RETURNS timestamptz LANGUAGE sql VOLATILE
             AS $$ SELECT clock_timestamp() + interval '{time}' $$"
        );
        self.side.execute(&later).unwrap();
    }

    pub fn look(&self, action: Action) -> Vec<Seen> {
        let policy = Policy {
            action,
            ..Policy::default()
        };
        self.look_with(policy).unwrap()
    }

    pub fn look_with(&self, policy: Policy) -> Result<Vec<Seen>, Error> {
        let mut seen = wait(Guard::new(&self.rowlock, policy).look())?;
        // Whether the server cleans up just now is up to it.
        seen.retain(|each| each.judged.pin.backend.as_deref() != Some("autovacuum worker"));
        Ok(seen)
    }

    pub fn declare(&self, class: &str, application: &str, max: u32) {
        let rule = Rule {
            application_name: Some(application.to_owned()),
            ..Rule::default()
        };
        let class = Class::with(name(class), max, rule).unwrap();
        wait(self.rowlock.watch().declare_class(&class)).unwrap();
    }

    /// Waits until a session is blocked while it holds a snapshot.
    pub fn until_blocked(&self, application: &str) {
        until("a session waits for a lock", || {
            let blocked = self.side.value(&format!(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{application}'
                 AND datname = current_database() AND wait_event_type = 'Lock' AND backend_xmin IS NOT NULL"
            ));
            (blocked != "0").then_some(())
        });
    }
}

/// What was seen of one session.
pub fn of(seen: &[Seen], pid: i32) -> &Seen {
    let found = seen.iter().find(|each| each.judged.pin.pid == Some(pid));
    found.unwrap_or_else(|| panic!("process {pid} is not in {seen:#?}"))
}

pub fn lives(session: &Session) -> bool {
    session.query("SELECT 1").is_ok()
}

/// A server of its own: slots and standbys belong to all of it.
pub fn alone() -> (Postgres, Database, Scene) {
    let server = Postgres::start_own();
    let database = server.database_from(None);
    let own = Own::at(database.url());
    own.migrate();
    (server, database, Scene::of(own))
}

pub fn everything_that_pins_the_horizon_is_named() {
    let (_server, _database, scene) = alone();
    // Before the others: it waits for transactions that have written.
    let slot = "SELECT pg_create_logical_replication_slot('abandoned', 'pgoutput')";
    scene.side.query(slot).unwrap();
    scene.declare("analytics", "metabase", 5);
    let reader = scene.reader("metabase");
    let writer = scene.session("importer");
    writer.execute("BEGIN; CREATE TABLE t ()").unwrap();
    scene
        .session("bank")
        .execute("BEGIN; CREATE TABLE u (); PREPARE TRANSACTION 'transfer 7'")
        .unwrap();
    // Whoever has no snapshot pins nothing.
    let idle = scene.session("idler");
    idle.execute("BEGIN; SELECT 1").unwrap();
    for _ in 0..9 {
        scene.side.query("SELECT txid_current()").unwrap();
    }
    let seen = scene.look(Action::Terminate);
    assert_eq!(seen.len(), 4, "{seen:#?}");
    assert!(seen.iter().all(|each| each.did == Did::Nothing));

    let read = &of(&seen, reader.pid()).judged;
    assert_eq!(read.pin.what, What::Session);
    assert_eq!(read.pin.application.as_deref(), Some("metabase"));
    assert_eq!(read.pin.role.as_deref(), Some("postgres"));
    assert_eq!(read.pin.state.as_deref(), Some("idle in transaction"));
    assert!(read.pin.excerpt().unwrap().contains("SELECT 'reading'"));
    assert!(read.pin.transactions >= 9, "{read:?}");
    assert!(read.pin.age.is_some());
    assert_eq!(read.class, Some(name("analytics")));

    let wrote = &of(&seen, writer.pid()).judged;
    assert_eq!(wrote.pin.application.as_deref(), Some("importer"));
    assert!(wrote.pin.transactions >= 9, "{wrote:?}");
    assert_eq!(wrote.class, None);

    let by_what = |what| seen.iter().find(|each| each.judged.pin.what == what);
    let prepared = &by_what(What::Prepared).unwrap().judged;
    assert_eq!(prepared.pin.name.as_deref(), Some("transfer 7"));
    assert_eq!(prepared.pin.role.as_deref(), Some("postgres"));
    assert!(prepared.pin.age.is_some() && prepared.pin.transactions >= 9);
    assert_eq!(prepared.spared, Some(Spared::ByHand));

    let slot = &by_what(What::Slot).unwrap().judged;
    assert_eq!(slot.pin.name.as_deref(), Some("abandoned"));
    assert_eq!(slot.pin.state.as_deref(), Some("logical, abandoned"));
    assert!(slot.pin.catalog_only && slot.pin.transactions >= 9);
    assert_eq!(slot.spared, Some(Spared::ByHand));

    // Whatever its age is, only people end them.
    scene.passes(LATER);
    let seen = scene.look(Action::Terminate);
    let by_what = |what| seen.iter().find(|each| each.judged.pin.what == what);
    assert_eq!(by_what(What::Prepared).unwrap().did, Did::Observed);
    let left = "SELECT (SELECT count(*) FROM pg_prepared_xacts) + (SELECT count(*) FROM pg_replication_slots)";
    assert_eq!(scene.side.value(left), "2");
    assert!(lives(&idle));
}

pub fn a_standby_with_feedback_is_named() {
    let (_server, _database, scene) = alone();
    let needs = scene.side.value("SELECT txid_current()");
    let url = scene.own.url();
    let flushed = scene.side.value("SELECT pg_current_wal_flush_lsn()");
    let _standby = Replica::follow(&url, "reporting", &flushed, needs.parse().unwrap());
    for _ in 0..9 {
        scene.side.query("SELECT txid_current()").unwrap();
    }
    until("the feedback has arrived", || {
        let fed = "SELECT count(backend_xmin) FROM pg_stat_replication";
        (scene.side.value(fed) == "1").then_some(())
    });
    let seen = scene.look(Action::Terminate);
    assert_eq!(seen.len(), 1, "{seen:#?}");
    let standby = &seen[0].judged;
    assert_eq!(standby.pin.what, What::Standby);
    assert_eq!(standby.pin.name.as_deref(), Some("reporting"));
    assert!(standby.pin.transactions >= 9, "{standby:?}");
    assert_eq!(standby.spared, Some(Spared::ByHand));
}

pub fn only_what_is_too_old_is_ended() {
    let scene = Scene::new();
    let (reader, writer) = (scene.reader("metabase"), scene.session("importer"));
    writer.execute("BEGIN; SELECT txid_current()").unwrap();
    let (read, wrote) = (reader.pid(), writer.pid());
    let young = scene.look(Action::Terminate);
    for pid in [read, wrote] {
        assert_eq!(of(&young, pid).judged.due, None);
        assert_eq!(of(&young, pid).did, Did::Nothing);
    }
    assert!(lives(&reader) && lives(&writer));
    scene.passes(LATER);
    let told = scene.look(Action::Observe);
    assert_eq!(of(&told, read).judged.due, Some(Due::Age));
    assert_eq!(of(&told, read).did, Did::Observed);
    assert!(lives(&reader) && lives(&writer));
    let ended = scene.look(Action::Terminate);
    for pid in [read, wrote] {
        assert_eq!(of(&ended, pid).did, Did::Terminated);
    }
    assert!(!lives(&reader) && !lives(&writer));
}

pub fn a_cancel_ends_what_runs_and_not_what_is_idle() {
    let scene = Scene::new();
    let (idle, busy) = (scene.reader("idler"), scene.session("busy"));
    let (idle_pid, busy_pid) = (idle.pid(), busy.pid());
    let asked = busy.send("BEGIN; SELECT txid_current(); SELECT pg_sleep(600)");
    until("it sleeps", || {
        let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'busy'
                        AND datname = current_database() AND wait_event = 'PgSleep'";
        (scene.side.value(sleeping) == "1").then_some(())
    });
    scene.passes(LATER);
    let seen = scene.look(Action::Cancel);
    assert_eq!(of(&seen, busy_pid).did, Did::Cancelled);
    assert_eq!(of(&seen, idle_pid).did, Did::Idle);
    let answer = asked.wait();
    assert!(
        answer.as_ref().is_err_and(|why| why.starts_with("57014: ")),
        "{answer:?}"
    );
    assert!(lives(&idle));
    // The session is still there, and pins nothing any more.
    busy.execute("ROLLBACK").unwrap();
    let seen = scene.look(Action::Observe);
    assert!(
        seen.iter()
            .all(|each| each.judged.pin.pid != Some(busy_pid))
    );
}

pub fn our_own_sessions_are_never_touched() {
    let scene = Scene::new();
    // Its URL gives it another name, so that only its numbers tell that it is ours.
    let shop = format!("{}?application_name=shop", scene.own.url());
    let shop = Own::at(&shop).open(Clock::system());
    let named = scene.reader("rowlock");
    let other = scene.session("other");
    other
        .execute("BEGIN; LOCK TABLE rowlock.kind IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let (named_pid, other_pid) = (named.pid(), other.pid());
    scene.passes(LATER);
    let seen = std::thread::scope(|scope| {
        let asking = scope.spawn(|| wait(shop.operate().kinds()));
        scene.until_blocked("shop");
        let policy = Policy {
            action: Action::Terminate,
            ..Policy::default()
        };
        let seen = wait(Guard::new(&shop, policy).look()).unwrap();
        // Its lock is gone with the one that wasn't ours.
        asking.join().unwrap().unwrap();
        seen
    });
    assert_eq!(of(&seen, other_pid).did, Did::Terminated);
    let ours = |each: &&Seen| each.judged.spared == Some(Spared::Ours);
    let ours: Vec<&Seen> = seen.iter().filter(ours).collect();
    assert_eq!(ours.len(), 2, "{seen:#?}");
    assert!(ours.iter().all(|each| each.did == Did::Observed));
    assert_eq!(of(&seen, named_pid).judged.spared, Some(Spared::Ours));
    assert!(lives(&named));
}

pub fn maintenance_of_superusers_is_left_alone() {
    let scene = Scene::new();
    let tables = "CREATE TABLE t (a integer); CREATE TABLE u (a integer)";
    scene.side.execute(tables).unwrap();
    let blocker = scene.session("rowlock");
    let lock = "BEGIN; LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE";
    blocker.execute(lock).unwrap();
    let (vacuum, index, dump) = (
        scene.session("vacuuming"),
        scene.session("indexing"),
        scene.reader("pg_dump"),
    );
    let all = [vacuum.pid(), index.pid(), dump.pid()];
    index
        .execute("BEGIN; SELECT txid_current()")
        .and_then(|_| index.execute("/* nightly */ CREATE INDEX ON u (a)"))
        .unwrap();
    let asked = vacuum.send("VACUUM t");
    scene.until_blocked("vacuuming");
    scene.passes(LATER);
    let seen = scene.look(Action::Terminate);
    for pid in all {
        let each = of(&seen, pid);
        assert_eq!(each.judged.spared, Some(Spared::Maintenance), "{each:#?}");
        assert_eq!(each.did, Did::Observed);
    }
    assert!(lives(&index) && lives(&dump));
    let policy = Policy {
        action: Action::Terminate,
        include_superusers: true,
        ..Policy::default()
    };
    // Its last statement is another one by now.
    index.execute("CREATE INDEX ON u (a, a)").unwrap();
    let seen = scene.look_with(policy).unwrap();
    for pid in all {
        assert_eq!(of(&seen, pid).did, Did::Terminated);
    }
    assert!(asked.wait().is_err() && !lives(&index) && !lives(&dump));
}

pub fn the_youngest_beyond_a_budget_are_ended() {
    let scene = Scene::new();
    scene.declare("analytics", "Metabase*", 1);
    let older = scene.reader("Metabase-1");
    let younger = scene.reader("Metabase-2");
    let other = scene.reader("web");
    let (old, young) = (older.pid(), younger.pid());
    let seen = scene.look(Action::Observe);
    assert_eq!(of(&seen, old).judged.due, None);
    assert_eq!(of(&seen, young).judged.due, Some(Due::Max));
    assert_eq!(of(&seen, young).did, Did::Observed);
    assert!(lives(&younger));
    let seen = scene.look(Action::Terminate);
    assert_eq!(of(&seen, young).did, Did::Terminated);
    assert!(lives(&older) && !lives(&younger) && lives(&other));
    // A policy for one class leaves everybody else alone, and knows the class.
    scene.passes(LATER);
    let only = |class: &str| Policy {
        action: Action::Terminate,
        class: Some(name(class)),
        ..Policy::default()
    };
    assert_eq!(scene.look_with(only("analytics")).unwrap().len(), 1);
    assert!(!lives(&older) && lives(&other));
    let unknown = scene.look_with(only("reports"));
    assert!(matches!(unknown, Err(Error::NotFound(_))), "{unknown:?}");
}

pub fn a_transaction_that_has_ended_meanwhile_is_left_alone() {
    let scene = Scene::new();
    let reader = scene.reader("metabase");
    let pid = reader.pid();
    let seen = scene.look(Action::Observe);
    let began = of(&seen, pid).judged.pin.began;
    // The same session, and another transaction.
    reader
        .execute("COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        .unwrap();
    let watch = scene.rowlock.watch();
    for action in [Action::Cancel, Action::Terminate] {
        assert_eq!(wait(watch.end(pid, began, action)).unwrap(), End::Gone);
    }
    assert!(lives(&reader));
}

pub fn a_guard_looks_again_and_again_until_it_is_asked_to_stop() {
    let scene = Scene::new();
    let reader = scene.reader("metabase");
    scene.passes(LATER);
    let policy = Policy {
        action: Action::Terminate,
        every: Duration::from_millis(10),
        ..Policy::default()
    };
    let stopper = rowlock::run::Stopper::default();
    let guard = Guard::new(&scene.rowlock, policy);
    std::thread::scope(|scope| {
        let guarding = scope.spawn(|| wait(guard.run_until(stopper.stop())));
        until("the first one is ended", || (!lives(&reader)).then_some(()));
        let second = scene.reader("metabase");
        until("the second one is ended", || {
            (!lives(&second)).then_some(())
        });
        stopper.ask();
        guarding.join().unwrap();
    });
}

pub fn classes_are_kept_for_everybody() {
    let scene = Scene::new();
    scene.declare("analytics", "metabase", 2);
    scene.declare("analytics", "metabase", 3);
    let other = scene.own.open(Clock::system());
    let classes = wait(other.watch().classes()).unwrap();
    let found: Vec<(&Name, u32)> = classes.iter().map(|at| (&at.name, at.max)).collect();
    assert_eq!(found, [(&name("analytics"), 3)]);
    assert_eq!(
        classes[0].rule.application_name.as_deref(),
        Some("metabase")
    );
    assert!(wait(other.watch().forget_class(&name("analytics"))).unwrap());
    assert!(!wait(other.watch().forget_class(&name("analytics"))).unwrap());
}
