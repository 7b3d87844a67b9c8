//! The worker on a real store and the system's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rowlock::claim::WorkerId;
use rowlock::clock::Clock;
use rowlock::job::{Backoff, ErrorKind};
use rowlock::run::{Options, Stopper, Tally};
use rowlock::{Context, JobState, Kind, Outcome, Worker};
use tokio::sync::mpsc;

use super::world::{Site, World, job};

pub(super) fn kind(name: &str) -> Kind {
    let mut kind = Kind::new(name).unwrap();
    kind.backoff = Backoff::Fixed {
        base: Duration::ZERO,
        jitter: 0.0,
    };
    kind
}

fn once() -> Options {
    Options {
        once: true,
        ..Options::default()
    }
}

/// Runs a worker until nothing is due.
pub(super) async fn run_once(worker: Worker) -> Tally {
    worker
        .options(once())
        .run_until(Stopper::default().stop())
        .await
        .unwrap()
}

pub(super) fn real(world: &World) -> Site {
    world.open_with(Clock::system())
}

pub async fn a_worker_runs_what_is_due_and_ends(world: World) {
    let site = real(&world);
    let ids = site.stage_many("mail", 500).await;
    site.stage(job("mail").delay(Duration::from_secs(3600)))
        .await;
    site.stage(job("unknown")).await;
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let worker = site
        .worker(())
        .handle_kind(kind("mail"), move |_: Context| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Outcome::Done }
        });
    let tally = run_once(worker).await;
    assert_eq!((tally.settled, tally.lost), (500, 0));
    assert_eq!(ran.load(Ordering::Relaxed), 500);
    for id in ids {
        assert_eq!(site.state(id).await, JobState::Completed);
    }
    let stats = site.rowlock.operate().stats().await.unwrap().total;
    assert_eq!((stats.pending, stats.processing), (2, 0));
    assert!(site.workers().await.is_empty(), "it has left");
}

pub async fn a_worker_does_not_end_while_a_retry_is_due(world: World) {
    // Without the second look it ended early about once in four hundred retries.
    const TIMES: usize = 400;
    let site = real(&world);
    // A worker without the store can't add it.
    site.engine().add_kinds(&[kind("again")]).await.unwrap();
    let id = site.stage(job("again").max_attempts(10_000).unwrap()).await;
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let worker = site
        .worker(())
        .handle_kind(kind("again"), move |_: Context| {
            let enough = count.fetch_add(1, Ordering::Relaxed) == TIMES;
            async move {
                match enough {
                    true => Outcome::Done,
                    false => super::world::failed(),
                }
            }
        });
    // Somebody makes it look for work all the time, also while a retry is being written.
    let noise = async {
        loop {
            site.stage(job("unknown")).await;
        }
    };
    tokio::select! {
        tally = run_once(worker) => assert_eq!(tally.settled, TIMES as u64 + 1),
        () = noise => {}
    }
    assert_eq!(site.state(id).await, JobState::Completed);
}

pub async fn panics_and_timeouts_are_attempts(world: World) {
    let site = real(&world);
    let mut slow = kind("slow");
    slow.timeout = Duration::from_millis(5);
    let mut litters = kind("litters");
    litters.timeout = slow.timeout;
    let kinds = [kind("panics"), slow.clone(), litters.clone()];
    site.engine().add_kinds(&kinds).await.unwrap();
    let panics = site.stage(job("panics").max_attempts(2).unwrap()).await;
    let hangs = site.stage(job("slow").max_attempts(2).unwrap()).await;
    let litter = site.stage(job("litters").max_attempts(2).unwrap()).await;
    let worker = site
        .worker(())
        .handle_kind(litters, |_: Context| async {
            let _left = Litter;
            std::future::pending().await
        })
        .handle_kind(kind("panics"), |job: Context| async move {
            assert!(job.attempt > 2, "attempt {} is no good", job.attempt);
            Outcome::Done
        })
        .handle_kind(slow, |_: Context| std::future::pending())
        // One slot, which has to survive all of them.
        .options(Options {
            concurrency: 1,
            ..once()
        });
    worker.run_until(Stopper::default().stop()).await.unwrap();
    for (id, kind, words) in [
        (panics, ErrorKind::Panic, "attempt 1 is no good"),
        (hangs, ErrorKind::Timeout, "longer than 5ms"),
        (litter, ErrorKind::Panic, "left behind"),
    ] {
        let found = site.job(id).await;
        assert_eq!((found.state, found.attempt), (JobState::Failed, 2));
        assert_eq!(found.errors[0].kind, kind);
        assert!(
            found.errors[0].message.contains(words),
            "{:?}",
            found.errors
        );
    }
}

/// What a handler leaves when it is dropped.
struct Litter;

impl Drop for Litter {
    fn drop(&mut self) {
        panic!("left behind");
    }
}

/// A worker whose handler says that it has begun and then waits for ever.
pub(super) struct Busy {
    pub(super) begun: mpsc::UnboundedReceiver<Context>,
    pub(super) stopper: Stopper,
    pub(super) work: tokio::task::JoinHandle<rowlock::error::Result<Tally>>,
}

fn busy(site: &Site, options: Options) -> Busy {
    busy_with(site, options, None)
}

/// Its handlers say this, or never end.
pub(super) fn busy_with(site: &Site, options: Options, says: Option<Outcome>) -> Busy {
    let (begins, begun) = mpsc::unbounded_channel();
    let stopper = Stopper::default();
    let worker = site
        .worker(())
        .options(options)
        .handle_kind(kind("mail"), move |job: Context| {
            begins.send(job).unwrap();
            let says = says.clone();
            async move {
                match says {
                    Some(outcome) => outcome,
                    None => std::future::pending().await,
                }
            }
        });
    #[expect(clippy::disallowed_methods, reason = "joined by the case")]
    let work = tokio::spawn(worker.run_until(stopper.stop()));
    Busy {
        begun,
        stopper,
        work,
    }
}

pub async fn a_cancel_request_stops_a_running_handler(world: World) {
    let site = real(&world);
    let id = site.stage(job("mail")).await;
    let options = Options {
        lease: Duration::from_secs(3),
        ..Options::default()
    };
    let mut busy = busy(&site, options);
    assert_eq!(busy.begun.recv().await.unwrap().id, id);
    site.engine().cancel(vec![id]).await.unwrap();
    let mut wakeups = site.engine().wakeups();
    while site.state(id).await == JobState::Processing {
        super::world::a_moment(&mut wakeups).await;
    }
    assert_eq!(site.state(id).await, JobState::Cancelled);
    busy.stopper.ask();
    busy.work.await.unwrap().unwrap();
}

pub async fn a_stopped_worker_gives_back_what_it_had_not_finished(world: World) {
    let site = real(&world);
    let ids = site.stage_many("mail", 20).await;
    let mut busy = busy(&site, Options::default());
    for _ in 0..8 {
        busy.begun.recv().await.unwrap();
    }
    busy.stopper.ask();
    busy.stopper.ask();
    busy.work.await.unwrap().unwrap();
    for id in ids {
        let found = site.job(id).await;
        assert_eq!((found.state, found.attempt), site.given_back());
    }
    assert!(site.workers().await.is_empty());
}

pub async fn what_a_worker_took_ahead_is_not_kept_behind_slow_jobs(world: World) {
    slow_after_quick(&world, 2, 100).await;
}

pub async fn not_even_a_few_jobs_are_kept_behind_slow_ones(world: World) {
    slow_after_quick(&world, 8, 12).await;
}

/// A worker's slots are all taken by jobs that don't end. Another one runs the others.
async fn slow_after_quick(world: &World, slots: usize, slow_jobs: usize) {
    const QUICK: usize = 200;
    let site = real(world);
    site.stage_many("mail", QUICK + slow_jobs).await;
    let options = || Options {
        concurrency: slots,
        lease: Duration::from_secs(3),
        ..Options::default()
    };
    // The quick ones let it take the others ahead; from then on no slot gets free.
    let (begun, mut beginnings) = mpsc::unbounded_channel();
    let (stopper, ran) = (Stopper::default(), AtomicUsize::new(0));
    let slow = site
        .worker(())
        .handle_kind(kind("mail"), move |job: Context| {
            let is_quick = ran.fetch_add(1, Ordering::Relaxed) < QUICK;
            let begun = begun.clone();
            async move {
                if !is_quick {
                    begun.send(job.id).unwrap();
                    std::future::pending::<()>().await;
                }
                Outcome::Done
            }
        });
    #[expect(clippy::disallowed_methods, reason = "joined by the case")]
    let slow = tokio::spawn(slow.options(options()).run_until(stopper.stop()));
    for _ in 0..slots {
        beginnings.recv().await.unwrap();
    }
    let (ended, mut endings) = mpsc::unbounded_channel();
    let other = site
        .worker(())
        .handle_kind(kind("mail"), move |job: Context| {
            ended.send(job.id).unwrap();
            async { Outcome::Done }
        });
    let other_stopper = Stopper::default();
    #[expect(clippy::disallowed_methods, reason = "joined by the case")]
    let other = tokio::spawn(other.options(options()).run_until(other_stopper.stop()));
    let rest = async {
        for _ in slots..slow_jobs {
            endings.recv().await.unwrap();
        }
    };
    let done = Clock::system().timeout(Duration::from_secs(60), rest).await;
    assert!(done.is_some(), "jobs wait behind slow ones");
    other_stopper.ask();
    other.await.unwrap().unwrap();
    stopper.ask();
    stopper.ask();
    slow.await.unwrap().unwrap();
}

pub async fn a_worker_that_was_given_up_starts_again(world: World) {
    let site = real(&world);
    let id = site.stage(job("mail")).await;
    let options = Options {
        lease: Duration::from_secs(3),
        ..Options::default()
    };
    let mut busy = busy(&site, options);
    let first = busy.begun.recv().await.unwrap();
    let workers = site.workers().await;
    // Somebody takes everything from it, as if it had been silent.
    site.dispatch().leave(&workers[0]).await.unwrap();
    let second = busy.begun.recv().await.unwrap();
    assert_eq!((first.id, second.id), (id, id));
    assert_ne!(first.token, second.token);
    busy.stopper.ask();
    busy.stopper.ask();
    let tally = busy.work.await.unwrap().unwrap();
    assert_eq!(tally.lost, 0, "the dropped attempt settles nothing");
    assert_eq!(site.job(id).await.attempt, site.given_back().1);
}

/// Waits for what a worker of another task brings about.
pub(super) async fn eventually<T>(site: &Site, look: impl AsyncFn() -> Option<T>) -> T {
    let looking = async {
        let mut wakeups = site.engine().wakeups();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            super::world::a_moment(&mut wakeups).await;
        }
    };
    let found = Clock::system()
        .timeout(Duration::from_secs(90), looking)
        .await;
    found.expect("it happens in time")
}

pub async fn a_worker_that_runs_once_waits_for_what_a_dead_one_held(world: World) {
    world.home.time_passes();
    let site = real(&world).straight();
    let lease = Duration::from_millis(600);
    let dead = WorkerId::random("dead").unwrap();
    site.engine().join(&dead, lease).await.unwrap();
    let id = site.stage(job("mail")).await;
    site.claim_one(&dead, &["mail"]).await;
    // Its silence is longer than its lease by any clock.
    let operate = site.rowlock.operate();
    eventually(&site, async || {
        let heard = operate.workers().await.unwrap()[0].seen_at;
        let now = site.rowlock.clock().now();
        (heard.duration_until(now).unsigned_abs() > lease * 2).then_some(())
    })
    .await;
    let worker = site
        .worker(())
        .handle_kind(kind("mail"), |_: Context| async { Outcome::Done });
    run_once(worker).await;
    assert_eq!(site.state(id).await, JobState::Completed);
}

pub async fn a_worker_wakes_for_a_job_of_another_process(world: World) {
    let site = real(&world);
    // Where others wake it, it would not look again by itself in time.
    let options = Options {
        poll: world.home.poll(),
        ..Options::default()
    };
    let mut busy = busy(&site, options);
    let mut client = world.home.client();
    for _ in 0..5 {
        client.stage_by_sql(&[("kind", "mail".into())]).unwrap();
        busy.begun.recv().await.unwrap();
    }
    busy.stopper.ask();
    busy.stopper.ask();
    busy.work.await.unwrap().unwrap();
}

pub async fn a_pulse_is_felt_from_the_join_until_the_worker_leaves(world: World) {
    let site = real(&world);
    site.stage(job("mail")).await;
    let options = Options::default();
    let (pulse, clock) = (options.pulse.clone(), site.rowlock.clock().clone());
    let before = pulse.check(&clock).unwrap_err();
    assert_eq!(before, "the worker has not joined yet");
    let mut busy = busy(&site, options);
    busy.begun.recv().await.unwrap();
    assert_eq!(pulse.check(&clock), Ok(()));
    busy.stopper.ask();
    busy.stopper.ask();
    busy.work.await.unwrap().unwrap();
    assert_eq!(pulse.check(&clock).unwrap_err(), "the worker has left");
}
