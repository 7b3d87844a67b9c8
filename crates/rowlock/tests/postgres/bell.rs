//! Workers that sleep are told of what is enqueued, whatever becomes of other enqueues.

use std::future::poll_fn;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use rowlock::claim::WorkerId;
use rowlock::clock::Clock;
use rowlock::engine::Wakeups;
use rowlock_testbed::until;
use tokio_postgres::{AsyncMessage, NoTls};

use super::home::wait;
use super::small::Small;
use crate::conformance::world::{Home, Site, wanted};

const DEADLINE: Duration = Duration::from_secs(60);
const ENQUEUE: &str = "SELECT id FROM rowlock.enqueue('mail')";

/// A worker that hears notifications and has found nothing. The clock of the case stands still, so nothing but a
/// notification wakes it.
struct Sleeper {
    site: Site,
    worker: WorkerId,
    wakeups: Wakeups,
}

impl Sleeper {
    async fn new(small: &Small) -> Self {
        let site = small.open(&small.world().clock);
        Self {
            worker: site.join().await,
            wakeups: site.engine().wakeups(),
            site,
        }
    }

    /// It looks for work of a kind that there is none of.
    fn look(&self) -> Option<Duration> {
        let claim = wanted(&self.worker, &["none"], 1);
        wait(self.site.claimed(claim)).rest
    }

    /// It sleeps, and what it heard last is long enough ago.
    fn sleeps(&mut self, small: &Small) {
        until("an enqueue has to notify", || {
            self.look();
            (small.side.value("SELECT rowlock.must_notify()") == "t").then_some(())
        });
        self.wakeups.mark();
    }

    async fn wakes(&mut self) -> bool {
        let clock = Clock::system();
        clock.timeout(DEADLINE, self.wakeups.next()).await.is_some()
    }
}

pub async fn an_enqueue_that_is_not_committed_silences_no_other(small: Small) {
    let mut sleeper = Sleeper::new(&small).await;
    let other = small.own.session();
    for stays_open in [false, true] {
        for ms in [1, 5, 9] {
            sleeper.sleeps(&small);
            other.execute("BEGIN").unwrap();
            let _ = other.value(ENQUEUE);
            if !stays_open {
                other.execute("ROLLBACK").unwrap();
            }
            let later = format!("SELECT pg_sleep({ms} / 1000.0)");
            small.side.query(&later).unwrap();
            let _ = small.side.value(ENQUEUE);
            assert!(sleeper.wakes().await, "{ms} ms, open: {stays_open}");
            if stays_open {
                other.execute("ROLLBACK").unwrap();
            }
        }
    }
}

/// What an application's session did.
struct Enqueued {
    /// Enqueues that notified although one had just been heard.
    needless: usize,
    /// Commits that notified in all the others, and how many milliseconds those took.
    notified: usize,
    ms: f64,
}

const NOW: &str = "SELECT date_part('epoch', clock_timestamp()) * 1000";

/// Enqueues, and hears its own notifications.
async fn enqueue_much(url: &str) -> Enqueued {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let own = AtomicUsize::new(0);
    let pid = AtomicI32::new(0);
    // Those of a session's own commit come before the answer to it.
    let drive = async {
        loop {
            match poll_fn(|cx| connection.poll_message(cx)).await {
                Some(Ok(AsyncMessage::Notification(note))) => {
                    let ours = note.process_id() == pid.load(Ordering::Relaxed);
                    own.fetch_add(usize::from(ours), Ordering::Relaxed);
                }
                Some(Ok(_)) => {}
                ended => panic!("{ended:?}"),
            }
        }
    };
    let number = async |sql: &str| -> f64 { client.query_one(sql, &[]).await.unwrap().get(0) };
    let sum = || own.load(Ordering::Relaxed);
    let work = async {
        let listen = client.batch_execute("LISTEN \"rowlock.ready\"");
        listen.await.unwrap();
        let mine = client.query_one("SELECT pg_backend_pid()", &[]).await;
        pid.store(mine.unwrap().get(0), Ordering::Relaxed);
        let hear = format!("SELECT setval('rowlock.heard', ({NOW})::bigint)::float8");
        let (mut judged, mut needless) = (0, 0);
        while judged < 30 {
            client.batch_execute("BEGIN").await.unwrap();
            // As a listener says it.
            let heard = number(&hear).await;
            client.batch_execute(ENQUEUE).await.unwrap();
            let now = number(NOW).await;
            let before = sum();
            client.batch_execute("COMMIT").await.unwrap();
            if (0.0..9.0).contains(&(now - heard)) {
                judged += 1;
                needless += sum() - before;
            }
        }
        let (began, before) = (number(NOW).await, sum());
        for _ in 0..200 {
            let so_far = sum();
            client.batch_execute(ENQUEUE).await.unwrap();
            if sum() == so_far {
                continue;
            }
            // It waits until that was heard: what was on its way at the same time isn't counted.
            let now = number(NOW).await;
            while number("SELECT last_value::float8 FROM rowlock.heard").await < now - 10.0 {}
        }
        Enqueued {
            needless,
            notified: sum() - before,
            ms: number(NOW).await - began,
        }
    };
    tokio::select! { done = work => done, () = drive => unreachable!() }
}

pub async fn while_a_notification_was_just_heard_no_enqueue_notifies(small: Small) {
    let mut sleeper = Sleeper::new(&small).await;
    let url = small.own.url();
    let heard = || small.number("SELECT last_value FROM rowlock.heard");
    sleeper.sleeps(&small);
    let before = heard();
    let _ = small.side.value(ENQUEUE);
    assert!(sleeper.wakes().await);
    until("the listener says that it has heard", || {
        (heard() > before).then_some(())
    });
    sleeper.sleeps(&small);
    let sessions: Vec<Enqueued> = std::thread::scope(|scope| {
        let much = || {
            wait(async {
                let clock = Clock::system();
                let much = clock.timeout(DEADLINE, enqueue_much(&url)).await;
                much.expect("a listener hears")
            })
        };
        let one = || scope.spawn(much);
        let threads: Vec<_> = std::iter::repeat_with(one).take(4).collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for Enqueued {
        needless,
        notified,
        ms,
    } in sessions
    {
        assert_eq!(needless, 0);
        // Times are whole milliseconds.
        assert!((notified as f64) < 2.0 + ms / 9.0, "{notified} in {ms} ms");
    }
}

pub async fn a_clock_that_was_set_back_silences_no_enqueue(small: Small) {
    let mut sleeper = Sleeper::new(&small).await;
    let an_hour_ahead = |sequence: &str| {
        let set = format!("SELECT setval('rowlock.{sequence}', ({NOW})::bigint + 3600000)");
        small.side.query(&set).unwrap();
    };
    let is_ahead = |sequence: &str, ms: u32| {
        let ahead = format!("SELECT last_value > ({NOW}) + {ms} FROM rowlock.{sequence}");
        small.side.value(&ahead) == "t"
    };
    for _ in 0..3 {
        sleeper.sleeps(&small);
        an_hour_ahead("heard");
        let _ = small.side.value(ENQUEUE);
        assert!(sleeper.wakes().await);
        until("the listener says when it was", || {
            (!is_ahead("heard", 0)).then_some(())
        });
    }
    an_hour_ahead("asleep");
    assert!(is_ahead("asleep", 10_000));
    until("the next look puts the sign right", || {
        sleeper.look();
        (!is_ahead("asleep", 10_000)).then_some(())
    });
}

pub async fn a_worker_that_was_woken_for_nothing_looks_again_soon(small: Small) {
    let mut sleeper = Sleeper::new(&small).await;
    until("it sleeps for long", || {
        sleeper
            .look()
            .filter(|rest| *rest >= Duration::from_secs(3))
    });
    // Enqueues that follow a notification don't notify: whoever was woken must look for them.
    for _ in 0..100 {
        sleeper.sleeps(&small);
        let _ = small.side.value(ENQUEUE);
        assert!(sleeper.wakes().await);
        // Unless this machine was busy for so long that the look is late enough itself.
        if sleeper.look().unwrap() <= Duration::from_millis(100) {
            return;
        }
    }
    panic!("it never looked again");
}

pub async fn a_worker_that_hears_nothing_asks_for_no_notification(small: Small) {
    let site = small.open(&small.world().clock);
    let worker = site.join().await;
    for _ in 0..3 {
        site.claim(&worker, &["mail"], 1).await;
    }
    assert_eq!(small.side.value("SELECT rowlock.must_notify()"), "f");
    assert_eq!(small.number("SELECT last_value FROM rowlock.asleep"), 0);
}
