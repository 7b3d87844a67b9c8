//! Completing a job in the handler's own transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rowlock::job::Retention;
use rowlock::run::{Options, Stopper, Tally};
use rowlock::{Context, Error, JobId, JobState, Kind, NewJob, Outcome, Worker};

use super::driver::{Driver, End, Steps};
use super::store::Store;
use crate::complete::kind;

async fn staged(store: &Store) -> JobId {
    let job = NewJob::new("note").unwrap();
    store.open().await.enqueue(&job).await.unwrap().id.unwrap()
}

/// Runs what is due with this handler.
pub async fn work(store: &Store, kind: Kind, handler: impl rowlock::Handler) -> Tally {
    let options = Options {
        once: true,
        ..Options::default()
    };
    let stopper = Stopper::default();
    Worker::new(store.open().await, ())
        .options(options)
        .handle_kind(kind, handler)
        .run_until(stopper.stop())
        .await
        .unwrap()
}

/// Runs what is due: `act` is each attempt.
async fn run<F, A>(store: &Arc<Store>, with: &Arc<dyn Driver>, kind: Kind, act: F) -> Tally
where
    F: Fn(Arc<Store>, Arc<dyn Driver>, Context) -> A + Send + Sync + 'static,
    A: Future<Output = Outcome> + Send + 'static,
{
    let (inside, with) = (Arc::clone(store), Arc::clone(with));
    let handler = move |cx: Context| act(Arc::clone(&inside), Arc::clone(&with), cx);
    work(store, kind, handler).await
}

pub async fn the_effect_and_the_completion_commit_together(with: Arc<dyn Driver>) {
    let store = Arc::new(Store::new());
    let id = staged(&store).await;
    let tally = run(&store, &with, kind(), |store, with, cx| async move {
        let id = cx.id;
        let look = || {
            assert_eq!(store.seen().0, "0");
            assert_eq!(store.state(id), "processing");
        };
        let steps = Steps {
            after: &look,
            ..Steps::to(End::Commit)
        };
        with.complete(store.url(), &cx, steps).await.unwrap();
        assert_eq!(store.state(id), "completed");
        Outcome::Done
    });
    let tally = tally.await;
    assert_eq!((tally.settled, tally.lost), (1, 0));
    assert_eq!(store.seen().0, "1");
    let job = store.job(id).await;
    assert_eq!((job.state, job.attempt), (JobState::Completed, 1));
    assert!(job.errors.is_empty(), "{:?}", job.errors);
    assert!(job.started_at <= job.finished_at && job.finished_at.is_some());
}

pub async fn a_completion_that_was_not_committed_is_tried_again(with: Arc<dyn Driver>) {
    let store = Arc::new(Store::new());
    let id = staged(&store).await;
    let attempts = Arc::new(AtomicUsize::new(0));
    let tally = run(&store, &with, kind(), move |store, with, cx| {
        let first = attempts.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            let (end, state) = match first {
                true => (End::Rollback, "processing"),
                false => (End::Commit, "completed"),
            };
            let steps = Steps::to(end);
            with.complete(store.url(), &cx, steps).await.unwrap();
            assert_eq!(store.state(cx.id), state);
            Outcome::Done
        }
    });
    let tally = tally.await;
    assert_eq!((tally.settled, tally.lost), (2, 0));
    assert_eq!(store.seen().0, "1");
    let job = store.job(id).await;
    assert_eq!((job.state, job.attempt), (JobState::Completed, 2));
    assert_eq!(
        job.errors[0].message,
        "the transaction of complete_in was not committed"
    );
}

/// Another worker's claim.
const TAKEN: &str = "WITH rival AS (
        INSERT INTO rowlock.worker (number, id, lease_ms, joined_at, seen_at)
        VALUES (7, 'rival', 600000, now(), now()) RETURNING number)
    UPDATE rowlock.job SET token = token - 1, worker = rival.number FROM rival";

pub async fn a_completion_after_a_lost_lease_is_refused(with: Arc<dyn Driver>) {
    let store = Arc::new(Store::new());
    let id = staged(&store).await;
    let seen = Arc::new(AtomicUsize::new(0));
    let refused = Arc::clone(&seen);
    let tally = run(&store, &with, kind(), move |store, with, cx| {
        let refused = Arc::clone(&refused);
        async move {
            // Somebody else has claimed it in the meantime.
            store.execute(TAKEN);
            let steps = Steps::to(End::Commit);
            let completed = with.complete(store.url(), &cx, steps).await;
            assert!(matches!(completed, Err(Error::LeaseLost)), "{completed:?}");
            refused.fetch_add(1, Ordering::Relaxed);
            Outcome::Done
        }
    });
    let tally = tally.await;
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    assert_eq!((tally.settled, tally.lost), (0, 1));
    assert_eq!(store.seen().0, "0");
    assert_eq!(store.state(id), "processing");
}

pub async fn a_job_that_was_set_aside_is_completed(with: Arc<dyn Driver>) {
    let store = Arc::new(Store::new());
    let id = staged(&store).await;
    let tally = run(&store, &with, kind(), |store, with, cx| async move {
        let aside = || store.set_aside();
        let steps = Steps {
            before: &aside,
            ..Steps::to(End::Commit)
        };
        with.complete(store.url(), &cx, steps).await.unwrap();
        Outcome::Done
    });
    let tally = tally.await;
    assert_eq!((tally.settled, tally.lost), (1, 0));
    assert_eq!(
        (store.seen().0.as_str(), store.state(id).as_str()),
        ("1", "completed")
    );
}

pub async fn an_old_snapshot_means_try_again_and_not_a_lost_lease(with: Arc<dyn Driver>) {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let store = Arc::new(Store::new());
        let id = staged(&store).await;
        let tally = run(&store, &with, kind(), move |store, with, cx| async move {
            let prelude = format!("SET TRANSACTION ISOLATION LEVEL {level}");
            let mut steps = Steps {
                prelude: &prelude,
                ..Steps::to(End::Commit)
            };
            let aside = || store.set_aside();
            // The note has taken the snapshot already.
            steps.before = &aside;
            let completed = with.complete(store.url(), &cx, steps).await;
            assert!(
                matches!(completed, Err(Error::Unavailable(_))),
                "{completed:?}"
            );
            assert_eq!(store.state(cx.id), "processing");
            steps.before = &|| ();
            with.complete(store.url(), &cx, steps).await.unwrap();
            Outcome::Done
        });
        let tally = tally.await;
        assert_eq!((tally.settled, tally.lost), (1, 0));
        assert_eq!(
            (store.seen().0.as_str(), store.state(id).as_str()),
            ("1", "completed")
        );
    }
}

pub async fn a_completed_job_of_a_kind_that_keeps_none_is_gone(with: Arc<dyn Driver>) {
    let store = Arc::new(Store::new());
    staged(&store).await;
    let mut kind = kind();
    kind.retention = Retention {
        completed: Duration::ZERO,
        ..Retention::default()
    };
    let tally = run(&store, &with, kind, |store, with, cx| async move {
        let steps = Steps::to(End::Commit);
        with.complete(store.url(), &cx, steps).await.unwrap();
        Outcome::Done
    });
    let tally = tally.await;
    assert_eq!((tally.settled, tally.lost), (1, 0));
    assert_eq!(store.seen(), ("1".to_owned(), "0".to_owned()));
}
