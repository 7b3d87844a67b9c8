//! Leases on a server: claims beside a worker that is given up, numbers after a failover, a clock that jumps.

use std::sync::Arc;
use std::time::Duration;

use rowlock::claim::WorkerId;
use rowlock::clock::{self, Clock};
use rowlock::engine::postgres::Postgres as Engine;
use rowlock::error::Error;
use rowlock::run::{Options, Stopper};
use rowlock::settle::{Settled, Verdict};
use rowlock::{Context, JobState, Kind, Worker};
use rowlock_testbed::{Postgres, until};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::home::wait;
use super::small::{Small, drain_all};
use super::stand::Stand;
use crate::conformance::world::{Home, LEASE, Site, ids, job, name};

/// The claim of one job, as the library makes it.
const CLAIM: &str =
    "SELECT count(id) FROM rowlock.claim_in_levels({worker}, 7, 1, '{mail}', '{}', 'fair',
    '{}', '{}', '{}', '{}', 0, true, true, 0, '-infinity', '{}', '{}', '{}', '{}', '{}'{route})";

fn claim(worker: &str, route: &str) -> String {
    let claim = CLAIM.replace("{worker}", worker);
    claim.replace("{route}", route)
}

/// A session waits for a lock, or what should have done so is over.
fn until_it_waits(small: &Small, is_over: impl Fn() -> bool) {
    until("somebody has come so far", || {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        (small.number(waiting) == 1 || is_over()).then_some(())
    });
}

pub async fn a_claim_under_way_is_given_back_with_the_rest(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    site.join().await;
    let number = small.side.value("SELECT number FROM rowlock.worker");
    let id = site.stage(job("mail")).await;
    assert_eq!(site.observe(&world, LEASE - LEASE / 6, &[]).await, 0);
    world.advance(LEASE / 6);
    let claiming = small.own.session();
    claiming.execute("BEGIN").unwrap();
    assert_eq!(claiming.value(&claim(&number, "")), "1");
    let observer = site.clone();
    let mut burials = JoinSet::new();
    let burial = burials.spawn(async move { observer.engine().expire().await.unwrap() });
    until_it_waits(&small, || burial.is_finished());
    claiming.execute("COMMIT").unwrap();
    assert_eq!(burials.join_all().await[0].returned, 1);
    let found = site.job(id).await;
    assert_eq!((found.state, found.attempt), (JobState::Pending, 0));
}

pub async fn a_claim_under_way_is_given_back_by_a_worker_that_leaves(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    let number = small.side.value("SELECT number FROM rowlock.worker");
    let id = site.stage(job("mail")).await;
    let claiming = small.own.session();
    claiming.execute("BEGIN").unwrap();
    assert_eq!(claiming.value(&claim(&number, "")), "1");
    let leaver = site.clone();
    let mut leaving = JoinSet::new();
    let gone = leaving.spawn(async move { leaver.engine().leave(&worker).await.unwrap() });
    until_it_waits(&small, || gone.is_finished());
    claiming.execute("COMMIT").unwrap();
    leaving.join_all().await;
    assert_eq!(site.state(id).await, JobState::Pending);
}

pub async fn a_route_with_a_claim_under_way_is_not_forgotten(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let (routes, holder) = (site.rowlock.routes(), WorkerId::route(&name("sink")));
    let (route, kinds) = (name("sink"), [name("mail")]);
    let declared = routes.declare_route(&route, &kinds, &[], true);
    declared.await.unwrap();
    routes.keep_route(&holder, LEASE).await.unwrap();
    site.stage(job("mail")).await;
    let number = small.side.value("SELECT number FROM rowlock.worker");
    let claiming = small.own.session();
    claiming.execute("BEGIN").unwrap();
    assert_eq!(claiming.value(&claim(&number, ", 'sink'")), "1");
    let (rowlock, asked) = (site.rowlock.clone(), holder.clone());
    let mut forgetting = JoinSet::new();
    let forgotten =
        forgetting.spawn(async move { rowlock.routes().forget_route(&asked).await.unwrap() });
    until_it_waits(&small, || forgotten.is_finished());
    claiming.execute("COMMIT").unwrap();
    assert_eq!(forgetting.join_all().await, [false], "it holds a job");
}

/// On a server of its own, since numbers of transactions belong to all of it.
pub fn a_claim_under_an_old_snapshot_takes_one_transaction_number_and_an_empty_one_none() {
    let server = Postgres::start_own();
    server.set("autovacuum = off");
    let stand = Stand::on(&server);
    let (site, side) = (&stand.site, stand.home.session());
    let reader = stand.home.session();
    let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rowlock.job";
    reader.execute(snapshot).unwrap();
    let worker = stand.ask(site.join());
    let number = side.value("SELECT number FROM rowlock.worker");
    stand.ask(site.stage_many("mail", 50));
    // Neither question takes a number itself.
    let numbers = || -> (u64, u64, String) {
        let xids = side.value("SELECT pg_snapshot_xmax(pg_current_snapshot())");
        let multixacts = side.value("SELECT mxid_age('1'::xid)");
        let place = side.value("SELECT ctid FROM rowlock.worker");
        (xids.parse().unwrap(), multixacts.parse().unwrap(), place)
    };
    // The first of its lane makes that known.
    assert_eq!(side.value(&claim(&number, "")), "1");
    let before = numbers();
    for _ in 0..49 {
        assert_eq!(side.value(&claim(&number, "")), "1");
    }
    let after = numbers();
    assert_eq!(after.0 - before.0, 49, "a number for each claim");
    assert_eq!(after.1, before.1, "no multixact");
    assert_eq!(after.2, before.2, "the worker's row has no other version");
    // The first empty one says that its worker sleeps.
    assert_eq!(side.value(&claim(&number, "")), "0");
    let before = numbers();
    for _ in 0..20 {
        assert_eq!(side.value(&claim(&number, "")), "0");
        let suspects =
            format!("SELECT count(id) FROM rowlock.claim_suspect({number}, 7, '{{mail}}', '{{}}')");
        assert_eq!(side.value(&suspects), "0");
    }
    assert_eq!(numbers(), before);
    stand.ask(site.engine().leave(&worker)).unwrap();
}

pub async fn a_worker_that_was_given_up_is_not_remembered(small: Small) {
    let clock = Clock::system();
    let engine = Arc::new(wait(Engine::open(small.own.address(), clock.clone())).unwrap());
    let site = small.open(&clock);
    let kind = Kind::new("mail").unwrap();
    site.engine()
        .add_kinds(std::slice::from_ref(&kind))
        .await
        .unwrap();
    site.stage(job("mail")).await;
    let (begun, mut beginnings) = mpsc::unbounded_channel();
    let options = Options {
        lease: Duration::from_secs(3),
        ..Options::default()
    };
    let (theirs, stopper) = (Arc::clone(&engine), Stopper::default());
    let worker = Worker::from_dispatcher(theirs, clock, ())
        .options(options)
        .handle_kind(kind, move |_: Context| {
            begun.send(()).unwrap();
            std::future::pending()
        });
    #[expect(clippy::disallowed_methods, reason = "joined by the case")]
    let work = tokio::spawn(worker.run_until(stopper.stop()));
    for _ in 0..3 {
        beginnings.recv().await.unwrap();
        let [workers, searched, jobs, _] = engine.remembered();
        assert_eq!((workers, jobs), (1, 1));
        assert!(searched <= 1, "{searched}");
        // Another process takes everything from it, as if it had been silent.
        let found = site.workers().await;
        site.engine().leave(&found[0]).await.unwrap();
    }
    beginnings.recv().await.unwrap();
    stopper.ask();
    stopper.ask();
    work.await.unwrap().unwrap();
    assert_eq!(engine.remembered(), [0; 4]);
}

/// As it was before any worker had joined: what a standby knows that lags behind.
const BEFORE: &str = "DELETE FROM rowlock.worker;
    SELECT setval(pg_get_serial_sequence('rowlock.worker', 'number'), 1, false)";

pub async fn a_worker_that_a_failover_forgot_answers_for_no_other(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    small.side.execute(BEFORE).unwrap();
    let forgotten = site.join().await;
    small.side.execute(BEFORE).unwrap();
    let current = site.join().await;
    let id = site.stage(job("mail")).await;
    let claimed = site.claim_one(&current, &["mail"]).await;
    let lost = site.beat(&forgotten, &[]).await.unwrap_err();
    assert!(matches!(lost, Error::LeaseLost), "{lost:?}");
    site.engine().leave(&forgotten).await.unwrap();
    assert_eq!(site.workers().await, std::slice::from_ref(&current));
    assert_eq!(site.state(id).await, JobState::Processing);
    assert!(site.beat(&current, &[claimed.token]).await.is_ok());
    assert_eq!(
        site.settle(&claimed, Verdict::Done).await,
        Settled::Accepted
    );
}

/// What a program of schema 7 sends once the server's clock tells it that the lease is over.
fn expire_as_before(small: &Small) -> String {
    small.side.value(
        "SELECT e.buried FROM rowlock.worker AS w, rowlock.expire(w.number, w.seen_at, NULL, NULL, 0, '{}', 10) AS e",
    )
}

pub async fn an_older_program_gives_up_nobody_alive_when_the_clock_jumps(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    site.stage(job("mail")).await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    world.advance(Duration::from_secs(3600));
    assert_eq!(expire_as_before(&small), "f");
    world.advance(LEASE / 3);
    assert_eq!(expire_as_before(&small), "f");
    site.beat(&worker, &[claimed.token]).await.unwrap();
    world.advance(LEASE);
    assert_eq!(expire_as_before(&small), "f");
    world.advance(LEASE / 2);
    assert_eq!(expire_as_before(&small), "t");
    assert_eq!(site.job(claimed.id).await.state, JobState::Pending);
}

pub async fn a_jump_of_the_clock_loses_nothing_and_runs_nothing_twice(small: Small) {
    const HOUR: Duration = Duration::from_secs(3600);
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    let now = site.stage_many("mail", 20).await;
    let soon = site.stage(job("mail").delay(HOUR / 2)).await;
    let later = site.stage(job("mail").delay(HOUR * 2)).await;
    let before = drain_all(&site, &worker, &["mail"], now.len()).await;
    assert_eq!(before, now);
    // An hour ahead: what is due by that clock runs, and claims have come to places of the future.
    small.own.time_is(clock::add(world.clock.now(), HOUR));
    let ahead = site.stage_many("mail", 20).await;
    let mut ran = drain_all(&site, &worker, &["mail"], ahead.len() + 1).await;
    ran.sort();
    assert_eq!(ran, [vec![soon], ahead].concat());
    let running = site.stage(job("mail")).await;
    let held = site.claim_one(&worker, &["mail"]).await;
    assert_eq!(held.id, running);
    // And back again: new jobs get places that claims have passed.
    small.own.time_is(world.clock.now());
    let back = site.stage_many("mail", 20).await;
    let mut ran = drain_all(&site, &worker, &["mail"], back.len()).await;
    ran.sort();
    assert_eq!(ran, back);
    assert!(site.claim(&worker, &["mail"], 10).await.is_empty());
    site.beat(&worker, &[held.token]).await.unwrap();
    assert_eq!(site.settle(&held, Verdict::Done).await, Settled::Accepted);
    world.advance(HOUR * 2);
    assert_eq!(drain_all(&site, &worker, &["mail"], 1).await, [later]);
}

pub async fn jobs_of_one_number_end_one_after_the_other(small: Small) {
    const HOUR: Duration = Duration::from_secs(3600);
    let world = small.world();
    let site = small.open(&world.clock);
    let worker: WorkerId = site.join().await;
    let keyed = job("mail").unique("one").unwrap().delay(HOUR);
    let delayed = site.stage(keyed.clone()).await;
    // Beside it, in the ring, two others of its number, one after the other.
    for other in ["two", "three"] {
        small.numbers_go_on_at(delayed.0);
        let twin = job("mail").unique(other).unwrap();
        assert_eq!(site.stage(twin).await, delayed);
        let claimed = site.claim_one(&worker, &["mail"]).await;
        done_at_last(&site, &claimed).await;
        // The key of the first one is its own.
        let again = site.rowlock.enqueue(&keyed).await.unwrap();
        assert_eq!(again.status, rowlock::Status::Duplicate);
    }
    // A last one waits when the first is due: it holds up no claim, and the first follows it.
    small.numbers_go_on_at(delayed.0);
    assert_eq!(site.stage(job("mail")).await, delayed);
    world.advance(HOUR);
    for _ in 0..2 {
        let claimed = site.claim(&worker, &["mail"], 10).await;
        assert_eq!(ids(&claimed), [delayed]);
        done_at_last(&site, &claimed[0]).await;
    }
    let live = small.side.value("SELECT count(*) FROM rowlock.job");
    assert_eq!(live, "0");
    let again = site.rowlock.enqueue(&keyed).await.unwrap();
    assert_eq!(again.status, rowlock::Status::Queued);
}

/// As a worker does it: a verdict that was refused is tried again.
async fn done_at_last(site: &Site, job: &rowlock::claim::ClaimedJob) {
    let settlement = || rowlock::settle::Settlement {
        id: job.id,
        token: job.token,
        verdict: Verdict::Done,
        started_at: None,
    };
    for _ in 0..2 {
        if let Ok(settled) = site.engine().settle(vec![settlement()]).await {
            assert_eq!(settled, [Settled::Accepted]);
            return;
        }
    }
    panic!("job {} can't end", job.id);
}

pub async fn ids_are_checked_when_a_connection_was_lost(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    site.join().await;
    // Not where new jobs go: there its number would be refused.
    small.numbers_go_on_at(1_000);
    let stored = site.stage(job("mail").delay(LEASE * 10)).await;
    // Another server takes its place, to which sequences don't travel.
    small.numbers_go_on_at(1);
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'rowlock'";
    small.side.execute(end).unwrap();
    let next = until("the server is there again", || {
        super::home::wait(site.rowlock.enqueue(&job("mail"))).ok()
    });
    assert!(next.id > Some(stored), "{next:?}");
}
