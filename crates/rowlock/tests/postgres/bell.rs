//! Workers that sleep are told of what is enqueued, whatever becomes of other enqueues.

use std::future::poll_fn;
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

pub async fn while_a_notification_was_just_heard_no_enqueue_notifies(small: Small) {
    let mut sleeper = Sleeper::new(&small).await;
    let url = small.own.url();
    let (told, counted) = std::sync::mpsc::channel();
    let (ready, listens) = std::sync::mpsc::channel();
    let count = move || {
        wait(async move {
            let (client, mut connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            let listen = client.batch_execute("LISTEN \"rowlock.ready\"");
            let drive = async {
                loop {
                    let message = poll_fn(|cx| connection.poll_message(cx)).await;
                    if let Some(Ok(AsyncMessage::Notification(note))) = &message {
                        // A listener that begins proves that it hears.
                        if note.payload().is_empty() {
                            let _ = told.send(());
                        }
                    } else if !matches!(message, Some(Ok(_))) {
                        return;
                    }
                }
            };
            let begin = async {
                listen.await.unwrap();
                ready.send(()).unwrap();
                std::future::pending::<()>().await;
            };
            tokio::select! { () = drive => {}, () = begin => {} }
        });
    };
    let thread = std::thread::Builder::new().name("counts".to_owned());
    let thread = thread.spawn(count).unwrap();
    listens.recv_timeout(DEADLINE).unwrap();
    let heard = || small.number("SELECT last_value FROM rowlock.heard");
    sleeper.sleeps(&small);
    let before = heard();
    let _ = small.side.value(ENQUEUE);
    assert!(sleeper.wakes().await);
    until("the listener says that it has heard", || {
        (heard() > before).then_some(())
    });
    // As if something was heard all the time: none of many enqueues in several sessions notifies.
    let always =
        "SELECT setval('rowlock.heard', (extract(epoch FROM now()) * 1000)::bigint + 3600000)";
    small.side.query(always).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let session = small.own.session();
                for _ in 0..50 {
                    let _ = session.value(ENQUEUE);
                }
            });
        }
    });
    // The next one does: notifications come in the order of their commits.
    small
        .side
        .query("SELECT setval('rowlock.heard', 0)")
        .unwrap();
    sleeper.sleeps(&small);
    let _ = small.side.value(ENQUEUE);
    assert!(sleeper.wakes().await);
    let gone = small.side.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND query = 'LISTEN \"rowlock.ready\"' AND pid <> pg_backend_pid()",
    );
    gone.unwrap();
    thread.join().unwrap();
    assert_eq!(counted.try_iter().count(), 2);
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
