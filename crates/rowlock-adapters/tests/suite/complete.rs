//! Completing a job in the handler's own transaction.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rowlock::claim::WorkerId;
use rowlock::job::{Backoff, Retention};
use rowlock::run::{Options, Stopper, Tally};
use rowlock::{Context, Error, JobId, JobState, Kind, NewJob, Outcome, Worker};

use crate::driver::{Driver, End};
use crate::file::File;

pub fn kind() -> Kind {
    let mut kind = Kind::new("note").unwrap();
    kind.backoff = Backoff::Fixed {
        base: Duration::ZERO,
        jitter: 0.0,
    };
    kind
}

pub async fn staged(file: &File) -> JobId {
    let job = NewJob::new("note").unwrap();
    file.open().enqueue(&job).await.unwrap().id.unwrap()
}

/// A handler that notes and completes; `ends` says how, attempt by attempt.
async fn note(with: Arc<dyn Driver>, path: PathBuf, cx: Context, end: End) -> Outcome {
    match with.complete(&path, "", &cx, end).await {
        Ok(()) => Outcome::Done,
        Err(why) => Outcome::Retry {
            error: why.to_string(),
            after: None,
        },
    }
}

async fn run_once(file: &File, with: &Arc<dyn Driver>, kind: Kind, ends: &'static [End]) -> Tally {
    let (with, path) = (Arc::clone(with), file.path.clone());
    let attempt = AtomicUsize::new(0);
    let handler = move |cx: Context| {
        let end = ends[attempt.fetch_add(1, Ordering::Relaxed)];
        note(Arc::clone(&with), path.clone(), cx, end)
    };
    work(file, kind, handler).await
}

async fn work(file: &File, kind: Kind, handler: impl rowlock::Handler) -> Tally {
    let options = Options {
        once: true,
        ..Options::default()
    };
    let stopper = Stopper::default();
    Worker::new(file.open(), ())
        .options(options)
        .handle_kind(kind, handler)
        .run_until(stopper.stop())
        .await
        .unwrap()
}

pub async fn the_effect_and_the_completion_commit_together(with: Arc<dyn Driver>) {
    let file = File::new();
    let id = staged(&file).await;
    let tally = run_once(&file, &with, kind(), &[End::Commit]).await;
    assert_eq!((tally.settled, tally.lost), (1, 0));
    assert_eq!(file.notes(), 1);
    let job = file.job(id).await;
    assert_eq!((job.state, job.attempt), (JobState::Completed, 1));
    assert!(job.errors.is_empty(), "{:?}", job.errors);
    assert!(job.started_at <= job.finished_at && job.finished_at.is_some());
}

pub async fn a_completion_that_was_not_committed_is_tried_again(with: Arc<dyn Driver>) {
    let file = File::new();
    let id = staged(&file).await;
    let tally = run_once(&file, &with, kind(), &[End::Rollback, End::Commit]).await;
    assert_eq!((tally.settled, tally.lost), (2, 0));
    assert_eq!(file.notes(), 1);
    let job = file.job(id).await;
    assert_eq!((job.state, job.attempt), (JobState::Completed, 2));
    assert_eq!(
        job.errors[0].message,
        "the transaction of complete_in was not committed"
    );
}

pub async fn a_completion_after_a_lost_lease_is_refused(with: Arc<dyn Driver>) {
    let file = File::new();
    let id = staged(&file).await;
    let rowlock = file.open();
    let rival = WorkerId::random("rival").unwrap();
    let lease = Options::default().lease;
    rowlock.engine().join(&rival, lease).await.unwrap();
    let path = file.path.clone();
    let (driver, seen) = (Arc::clone(&with), Arc::new(AtomicUsize::new(0)));
    let refused = Arc::clone(&seen);
    let taken = format!("UPDATE rowlock_job SET token = token - 1, locked_by = '{rival}'");
    let handler = move |cx: Context| {
        let (with, path, refused) = (Arc::clone(&driver), path.clone(), Arc::clone(&refused));
        let taken = taken.clone();
        async move {
            // Somebody else has claimed it in the meantime.
            let other = rusqlite::Connection::open(&path).unwrap();
            other.execute_batch(&taken).unwrap();
            drop(other);
            let completed = with.complete(&path, "", &cx, End::Commit).await;
            assert!(matches!(completed, Err(Error::LeaseLost)), "{completed:?}");
            refused.fetch_add(1, Ordering::Relaxed);
            Outcome::Done
        }
    };
    let tally = work(&file, kind(), handler).await;
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    assert_eq!((tally.settled, tally.lost), (0, 1));
    assert_eq!(file.notes(), 0);
    assert_eq!(file.job(id).await.state, JobState::Processing);
}

pub async fn a_completed_job_of_a_kind_that_keeps_none_is_gone(with: Arc<dyn Driver>) {
    let file = File::new();
    staged(&file).await;
    let mut kind = kind();
    kind.retention = Retention {
        completed: Duration::ZERO,
        ..Retention::default()
    };
    let tally = run_once(&file, &with, kind, &[End::Commit]).await;
    assert_eq!((tally.settled, tally.lost), (1, 0));
    assert_eq!((file.notes(), file.jobs()), (1, 0));
}

pub async fn a_completion_beside_an_attached_store_is_refused(with: Arc<dyn Driver>) {
    let (app, jobs) = (File::bare(), File::new());
    let id = staged(&jobs).await;
    let (path, attach) = (app.path.clone(), jobs.attach());
    let handler = move |cx: Context| {
        let (with, path, attach) = (Arc::clone(&with), path.clone(), attach.clone());
        async move {
            let completed = with.complete(&path, &attach, &cx, End::Commit).await;
            match completed {
                Err(Error::Schema(why)) => Outcome::Fail(why),
                other => Outcome::Fail(format!("{other:?}")),
            }
        }
    };
    work(&jobs, kind(), handler).await;
    let job = jobs.job(id).await;
    assert_eq!(job.state, JobState::Failed);
    let why = &job.errors[0].message;
    assert!(why.contains("url = \"sqlite:app.db\""), "{why}");
    assert_eq!(app.notes(), 0);
}
