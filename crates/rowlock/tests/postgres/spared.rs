//! Whom the guard spares and whom not, and what it says when it may not act.

use rowlock::clock::Clock;
use rowlock::guard::{Action, Did, Due, End, Guard, Policy, Spared};
use rowlock_testbed::{PgBouncer, Postgres, Session, Stop};

use super::guard::{LATER, Scene, alone, lives, of};
use super::home::{Own, wait};
use crate::conformance::world::Home;

/// A role of this case's own.
fn role(scene: &Scene, name: &str) -> String {
    let database = scene.side.value("SELECT current_database()");
    let role = format!("{name}_{database}");
    scene
        .side
        .execute(&format!("CREATE ROLE {role} LOGIN"))
        .unwrap();
    role
}

/// A session of that role's.
fn session_of(scene: &Scene, role: &str, application: &str) -> Session {
    let url = scene.own.url().replace("postgres@", &format!("{role}@"));
    Session::open(&format!("{url}?application_name={application}"))
}

fn gone(scene: &Scene, role: &str) {
    let text = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    scene.side.execute(&text).unwrap();
}

pub fn maintenance_of_any_role_is_left_alone() {
    let scene = Scene::new();
    let keeper = role(&scene, "keeper");
    scene
        .side
        .execute(&format!(
            "CREATE TABLE t (a integer); ALTER TABLE t OWNER TO {keeper}"
        ))
        .unwrap();
    let blocker = scene.reader("rowlock");
    blocker
        .execute("LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE")
        .unwrap();
    let vacuum = session_of(&scene, &keeper, "vacuuming");
    let report = session_of(&scene, &keeper, "reporting");
    let (vacuuming, reporting) = (vacuum.pid(), report.pid());
    report
        .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; /* VACUUM t */ SELECT 1")
        .unwrap();
    let asked = vacuum.send("VACUUM t");
    scene.until_blocked("vacuuming");
    scene.passes(LATER);
    let seen = scene.look(Action::Terminate);
    let kept = of(&seen, vacuuming);
    assert_eq!(kept.judged.spared, Some(Spared::Maintenance), "{kept:#?}");
    assert_eq!(kept.did, Did::Observed);
    assert_eq!(of(&seen, reporting).did, Did::Terminated);
    let told = Policy {
        action: Action::Terminate,
        include_superusers: true,
        ..Policy::default()
    };
    let seen = scene.look_with(told).unwrap();
    assert_eq!(of(&seen, vacuuming).did, Did::Terminated);
    assert!(asked.wait().is_err());
    blocker.execute("ROLLBACK").unwrap();
    gone(&scene, &keeper);
}

pub fn a_name_alone_spares_nobody() {
    let scene = Scene::new();
    let bi = role(&scene, "bi");
    let named = session_of(&scene, &bi, "rowlock");
    let pid = named.pid();
    named
        .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        .unwrap();
    // The same name, and rights on jobs.
    let worker = scene.reader("rowlock");
    let worker_pid = worker.pid();
    scene.passes(LATER);
    let seen = scene.look(Action::Terminate);
    assert_eq!(of(&seen, pid).did, Did::Terminated);
    let ours = of(&seen, worker_pid);
    assert_eq!(ours.judged.spared, Some(Spared::Ours), "{ours:#?}");
    assert!(lives(&worker) && !lives(&named));
    gone(&scene, &bi);
}

pub fn a_comment_does_not_evade_a_budget() {
    let scene = Scene::new();
    scene.declare("analytics", "metabase", 1);
    let first = scene.reader("metabase");
    let second = scene.session("metabase");
    let pid = second.pid();
    second
        .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 /* rowlock.budget_enter($1) */")
        .unwrap();
    let seen = scene.look(Action::Terminate);
    assert_eq!(of(&seen, pid).judged.due, Some(Due::Max));
    assert_eq!(of(&seen, pid).did, Did::Terminated);
    assert!(lives(&first) && !lives(&second));
}

pub fn behind_a_pooler_a_shared_session_is_not_ours() {
    let scene = Scene::new();
    let pooler = PgBouncer::start(Postgres::shared());
    let url = pooler.url(&scene.side.value("SELECT current_database()"));
    let through = Own::at(&url).open(Clock::system());
    // What the pooler gave us last is given to whoever comes next.
    wait(through.operate().kinds()).unwrap();
    let reports: Vec<Session> = (0..3)
        .map(|_| {
            let session = Session::open(&format!("{url}?application_name=metabase"));
            session
                .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
                .unwrap();
            session
        })
        .collect();
    scene.passes(LATER);
    let policy = Policy {
        action: Action::Terminate,
        ..Policy::default()
    };
    let seen = wait(Guard::new(&through, policy).look()).unwrap();
    let theirs =
        |each: &&rowlock::guard::Seen| each.judged.pin.application.as_deref() == Some("metabase");
    let theirs: Vec<_> = seen.iter().filter(theirs).collect();
    assert_eq!(theirs.len(), reports.len(), "{seen:#?}");
    assert!(
        theirs.iter().all(|each| each.did == Did::Terminated),
        "{theirs:#?}"
    );
}

pub fn a_refusal_is_told_from_a_server_that_is_away() {
    let (server, _database, scene) = alone();
    let reader = scene.reader("metabase");
    let pid = reader.pid();
    let looks_on = role(&scene, "looks_on");
    scene
        .side
        .execute(&format!(
            "GRANT pg_monitor TO {looks_on}; GRANT USAGE ON SCHEMA rowlock TO {looks_on};
             GRANT SELECT ON ALL TABLES IN SCHEMA rowlock TO {looks_on};
             GRANT EXECUTE ON FUNCTION rowlock.now TO {looks_on}"
        ))
        .unwrap();
    scene.passes(LATER);
    let url = scene
        .own
        .url()
        .replace("postgres@", &format!("{looks_on}@"));
    let weak = Own::at(&url).open(Clock::system());
    let policy = Policy {
        action: Action::Terminate,
        ..Policy::default()
    };
    let guard = Guard::new(&weak, policy);
    let seen = wait(guard.look()).unwrap();
    let refused = of(&seen, pid);
    assert!(matches!(refused.did, Did::Refused(_)), "{refused:#?}");
    assert!(lives(&reader));
    let (cost, _) = wait(guard.cost(&seen)).unwrap().unwrap();
    assert!(cost.at_ms > 0, "{cost:?}");
    let began = refused.judged.pin.began;
    server.stop(Stop::Immediate);
    let away = wait(weak.watch().end(pid, began, Action::Terminate));
    assert!(away.is_err(), "{away:?}");
    server.start();
    let ended = wait(scene.rowlock.watch().end(pid, began, Action::Terminate));
    assert!(!matches!(ended, Ok(End::Asked)), "{ended:?}");
}

pub fn two_looks_tell_what_an_hour_costs() {
    let scene = Scene::new();
    scene
        .side
        .execute("CREATE TABLE orders AS SELECT n FROM generate_series(1, 1000) AS n")
        .unwrap();
    let _reader = scene.reader("metabase");
    let guard = Guard::new(&scene.rowlock, Policy::default());
    let look = || {
        let seen = wait(guard.look()).unwrap();
        wait(guard.cost(&seen)).unwrap().unwrap()
    };
    let (before, _) = look();
    scene.side.execute("UPDATE orders SET n = n + 1").unwrap();
    // The server counts when it finds the time.
    rowlock_testbed::until("it was counted", || {
        let (cost, growth) = look();
        let died = cost.died - before.died;
        (died >= 1_000 && growth.is_some()).then_some(())
    });
}
