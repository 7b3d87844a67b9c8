//! Budgets: no more transactions of a class at once than it may have, and nobody pins what he waits for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::error::{Error, Result};
use rowlock::guard::Class;
use rowlock::run::task::Tasks;
use rowlock::{Budget, Rowlock};
use rowlock_testbed::{PgBouncer, Postgres, Process, Session, until};
use tokio::sync::{Barrier, oneshot};
use tokio_postgres::{Client, NoTls, Transaction};

use super::home::{Own, wait};
use super::stand::rival;
use crate::conformance::world::{Home, name};

const CLASS: &str = "analytics";

struct Scene {
    own: Own,
    side: Session,
    rowlock: Rowlock,
}

impl Scene {
    fn new(max: u32) -> Self {
        let own = Own::new();
        let scene = Self {
            rowlock: own.open(Clock::system()),
            side: own.session(),
            own,
        };
        let class = Class::new(name(CLASS), max).unwrap();
        wait(scene.rowlock.watch().declare_class(&class)).unwrap();
        scene
    }

    /// A connection of an application's.
    async fn client(&self, application: &str) -> Client {
        let url = format!("{}?application_name={application}", self.own.url());
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::runtime::Handle::current().spawn(connection);
        client
    }

    /// Something about the only session that calls itself so.
    fn of(&self, application: &str, what: &str) -> String {
        self.side.value(&format!(
            "SELECT {what} FROM pg_stat_activity
             WHERE application_name = '{application}' AND datname = current_database()"
        ))
    }
}

fn run(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(case);
}

/// Polls it once.
async fn begin<F: Future + Unpin>(future: &mut F) {
    tokio::select! {
        biased;
        _ = future => panic!("it has ended already"),
        () = std::future::ready(()) => {}
    }
}

/// Holds a place until it is told to leave.
async fn hold(
    tx: &mut Transaction<'_>,
    inside: oneshot::Sender<()>,
    leave: oneshot::Receiver<()>,
) -> Result<()> {
    tx.query("SELECT 'holding'", &[]).await.unwrap();
    inside.send(()).unwrap();
    // Whoever should say so may be gone.
    let _ = leave.await;
    match tx.query("SELECT 'leaving'", &[]).await {
        Ok(_) => Ok(()),
        Err(why) => Err(Error::Unavailable(why.to_string())),
    }
}

pub fn whoever_waits_pins_nothing() {
    let scene = Scene::new(1);
    // Two budgets are as two processes. The waiter's time stands still: it tries once, and waits.
    let clock = Clock::manual("2030-01-01T00:00:00Z".parse().unwrap());
    let waiting = Budget::default().clock(clock.clone());
    let ((inside, entered), (leave, left)) = (oneshot::channel(), oneshot::channel());
    std::thread::scope(|scope| {
        let holding = scope.spawn(|| {
            wait(async {
                let mut client = scene.client("holder").await;
                let work = async |tx: &mut Transaction<'_>| hold(tx, inside, left).await;
                Budget::default().run(CLASS, &mut client, work).await
            })
        });
        entered.blocking_recv().unwrap();
        let reporting = scope.spawn(|| {
            wait(async {
                let mut client = scene.client("waiter").await;
                // In such a transaction every statement leaves a snapshot behind.
                let strict = "SET default_transaction_isolation = 'repeatable read'";
                client.batch_execute(strict).await.unwrap();
                let report = async |tx: &mut Transaction<'_>| {
                    tx.query("SELECT 'reporting'", &[]).await.unwrap();
                    Ok::<(), Error>(())
                };
                waiting.run(CLASS, &mut client, report).await
            })
        });
        let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until("the waiter has tried and waits", || {
                let waits = "count(*) FILTER (WHERE query = 'ROLLBACK' AND state = 'idle')";
                (scene.of("waiter", waits) == "1").then_some(())
            });
            let open = "num_nonnulls(backend_xmin, backend_xid, xact_start)";
            assert_eq!(scene.of("waiter", open), "0");
            assert_eq!(scene.of("holder", "state"), "idle in transaction");
        }));
        leave.send(()).unwrap();
        holding.join().unwrap().unwrap();
        until("the waiter has had its place", || {
            clock.advance(Duration::from_millis(100)).unwrap();
            reporting.is_finished().then_some(())
        });
        let reported = reporting.join().unwrap();
        held.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        reported.unwrap();
    });
}

pub fn no_more_run_at_once_than_the_budget_says() {
    run(async {
        let scene = Scene::new(2);
        let (running, most, done) = (
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicUsize::new(0),
        );
        let start = Barrier::new(6);
        // Three processes with two connections each.
        let budgets = [Budget::default(), Budget::default(), Budget::default()];
        let client = async |budget: &Budget| {
            let mut client = scene.client("analyst").await;
            start.wait().await;
            for _ in 0..10 {
                let worked = budget.run(CLASS, &mut client, async |tx| {
                    let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    tx.query("SELECT pg_sleep(0.005)", &[]).await.unwrap();
                    running.fetch_sub(1, Ordering::SeqCst);
                    Ok::<(), Error>(())
                });
                worked.await.unwrap();
                done.fetch_add(1, Ordering::SeqCst);
            }
        };
        let [one, two, three] = &budgets;
        tokio::join!(
            client(one),
            client(one),
            client(two),
            client(two),
            client(three),
            client(three),
        );
        assert_eq!(done.load(Ordering::SeqCst), 60);
        assert_eq!(most.load(Ordering::SeqCst), 2);
    });
}

pub fn within_a_process_whoever_came_first_goes_first() {
    run(async {
        let scene = Scene::new(1);
        let budget = Budget::default();
        let order = Mutex::new(Vec::new());
        let ((inside, entered), (leave, left)) = (oneshot::channel(), oneshot::channel());
        let mut holder = scene.client("holder").await;
        let holding = budget.run(CLASS, &mut holder, async |tx| hold(tx, inside, left).await);
        let mut clients = [
            scene.client("a").await,
            scene.client("b").await,
            scene.client("c").await,
        ];
        let [a, b, c] = &mut clients;
        let visit = async |client: &mut Client, number: u32| {
            let note = async |_: &mut Transaction<'_>| {
                order.lock().unwrap().push(number);
                Ok::<(), Error>(())
            };
            budget.run(CLASS, client, note).await
        };
        let others = async {
            entered.await.unwrap();
            let mut first = std::pin::pin!(visit(a, 1));
            let mut second = std::pin::pin!(visit(b, 2));
            let mut third = std::pin::pin!(visit(c, 3));
            begin(&mut first).await;
            begin(&mut second).await;
            begin(&mut third).await;
            leave.send(()).unwrap();
            tokio::join!(third, second, first)
        };
        let (held, (third, second, first)) = tokio::join!(holding, others);
        for done in [held, first, second, third] {
            done.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [1, 2, 3]);
    });
}

pub fn a_holder_that_was_ended_frees_its_place() {
    run(async {
        let scene = Scene::new(1);
        let (mut holder, mut waiter) = (scene.client("holder").await, scene.client("waiter").await);
        let ((inside, entered), (leave, left)) = (oneshot::channel(), oneshot::channel());
        let holding = Budget::default();
        let holding = holding.run(CLASS, &mut holder, async |tx| hold(tx, inside, left).await);
        let waiting = Budget::default();
        let others = async {
            entered.await.unwrap();
            scene.of("holder", "pg_terminate_backend(pid)");
            let waited = waiting.run(CLASS, &mut waiter, async |_| Ok::<(), Error>(()));
            waited.await.unwrap();
            leave.send(()).unwrap();
        };
        let (held, ()) = tokio::join!(holding, others);
        assert!(held.is_err(), "its connection is gone");
    });
}

pub fn whoever_gets_no_place_in_time_is_told_what_to_do() {
    run(async {
        let scene = Scene::new(1);
        let (mut holder, mut waiter) = (scene.client("holder").await, scene.client("waiter").await);
        let ((inside, entered), (leave, left)) = (oneshot::channel(), oneshot::channel());
        let holding = Budget::default();
        let holding = holding.run(CLASS, &mut holder, async |tx| hold(tx, inside, left).await);
        let others = async {
            entered.await.unwrap();
            let hasty = Budget::default().wait(Duration::ZERO);
            let nothing = async |_: &mut Transaction<'_>| Ok::<(), Error>(());
            let why = hasty.run(CLASS, &mut waiter, nothing).await.unwrap_err();
            assert!(why.is_transient(), "{why}");
            let remedy = "`rowlock budget set analytics --max N`";
            assert!(why.to_string().contains(remedy), "{why}");
            let why = hasty.run("other", &mut waiter, nothing).await.unwrap_err();
            assert!(matches!(why, Error::NotFound(_)), "{why}");
            leave.send(()).unwrap();
        };
        let (held, ()) = tokio::join!(holding, others);
        held.unwrap();
    });
}

pub fn what_was_done_is_kept_unless_the_work_failed() {
    run(async {
        let scene = Scene::new(1);
        scene.side.execute("CREATE TABLE done (n integer)").unwrap();
        let mut client = scene.client("analyst").await;
        let budget = Budget::default();
        for (number, fails) in [(1, false), (2, true)] {
            let worked = budget.run(CLASS, &mut client, async |tx| {
                let insert = format!("INSERT INTO done VALUES ({number})");
                tx.batch_execute(&insert).await.unwrap();
                match fails {
                    true => Err(Error::Invalid("it fails".to_owned())),
                    false => Ok(()),
                }
            });
            assert_eq!(worked.await.is_err(), fails);
        }
        // On a task of its own as well.
        let mut tasks = Tasks::default();
        tasks.start("third", async move {
            let insert = "INSERT INTO done VALUES (3)";
            let work = async |tx: &mut Transaction<'_>| {
                tx.batch_execute(insert).await.unwrap();
                Ok::<(), Error>(())
            };
            budget.run(CLASS, &mut client, work).await.unwrap();
        });
        tasks.join().await;
        let done = "SELECT array_agg(n) FROM done";
        assert_eq!(scene.side.value(done), "{1,3}");
    });
}

pub fn processes_share_a_budget() {
    let scene = Scene::new(2);
    let folder = rowlock_testbed::folder();
    let path = folder.path().join("log");
    std::fs::write(&path, "").unwrap();
    let (url, log) = (scene.own.url(), path.to_str().unwrap());
    let visitor = || Process::start(&mut rival(&["visit", &url, CLASS, log, "10"]));
    let visitors: Vec<Process> = (0..4).map(|_| visitor()).collect();
    for visitor in visitors {
        let (code, lines) = visitor.wait();
        assert_eq!(code, Some(0), "{lines:#?}");
    }
    let (mut running, mut came) = (0, 0);
    for step in std::fs::read_to_string(&path).unwrap().chars() {
        match step {
            '+' => (running, came) = (running + 1, came + 1),
            _ => running -= 1,
        }
        assert!(running <= 2, "{running} at once");
    }
    assert_eq!((running, came), (0, 40));
}

pub fn a_process_that_was_killed_frees_its_place() {
    let scene = Scene::new(1);
    let mut holder = Process::start(&mut rival(&["hold", &scene.own.url(), CLASS]));
    holder.line_with("holding");
    let visit = |patience| {
        wait(async {
            let mut client = scene.client("waiter").await;
            let budget = Budget::default().wait(patience);
            let nothing = async |_: &mut Transaction<'_>| Ok::<(), Error>(());
            budget.run(CLASS, &mut client, nothing).await
        })
    };
    assert!(visit(Duration::ZERO).unwrap_err().is_transient());
    holder.signal("KILL");
    visit(Duration::from_secs(60)).unwrap();
}

pub fn a_place_is_had_by_a_transaction_that_only_reads() {
    let scene = Scene::new(1);
    let pooler = PgBouncer::start(Postgres::shared());
    let through = pooler.url(scene.own.url().rsplit_once('/').unwrap().1);
    for url in [scene.own.url(), through] {
        let (report, other) = (Session::open(&url), Session::open(&url));
        let enter = "SELECT coalesce(slot, 0) FROM rowlock.budget_enter('analytics')";
        for session in [&report, &other] {
            session.execute("BEGIN READ ONLY").unwrap();
        }
        assert_eq!(report.value(enter), "1");
        assert_eq!(other.value(enter), "0");
        // A number would be one more that must be frozen one day.
        for session in [&report, &other] {
            let numbered = "SELECT pg_current_xact_id_if_assigned() IS NOT NULL";
            assert_eq!(session.value(numbered), "f");
        }
        report.execute("COMMIT").unwrap();
        assert_eq!(other.value(enter), "1");
        other.execute("COMMIT").unwrap();
    }
}

pub fn a_class_that_grows_has_more_places() {
    let scene = Scene::new(1);
    let places = || {
        scene
            .side
            .value("SELECT count(*) FROM pg_class WHERE relname LIKE 'place\\_%'")
    };
    assert_eq!(places(), "1");
    // As any program writes it.
    let written = "INSERT INTO rowlock.budget (class, max) VALUES (repeat('c', 63), 2);
                   UPDATE rowlock.budget SET max = 3 WHERE class = 'analytics'";
    scene.side.execute(written).unwrap();
    assert_eq!(places(), "5");
    let held = "BEGIN; SELECT * FROM rowlock.budget_enter('analytics')";
    let sessions: Vec<Session> = (0..3).map(|_| scene.own.session()).collect();
    for session in &sessions {
        session.execute(held).unwrap();
    }
    let enter = "SELECT coalesce(slot, 0) FROM rowlock.budget_enter('analytics')";
    assert_eq!(scene.side.value(enter), "0", "all are taken");
    let no_advisory = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database =
        (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(scene.side.value(no_advisory), "0");
    let drift = wait(scene.rowlock.operate().health()).unwrap().drift;
    assert_eq!(drift, [""; 0]);
}
