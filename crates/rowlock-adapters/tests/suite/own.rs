//! What only one driver has, and what none of them may forget.

use std::task::Poll;

use diesel::connection::Connection as _;
use libtest_mimic::Trial;
use rowlock::run::{Options, Stopper};
use rowlock::{Context, Error, JobState, NewJob, Outcome, Worker};
use sqlx::Connection as _;

use crate::complete::{kind, staged};
use crate::file::File;
use crate::plain;

pub fn trials() -> Vec<Trial> {
    vec![
        plain(
            "completing_outside_a_transaction_is_refused",
            completing_outside_a_transaction_is_refused,
        ),
        plain(
            "a_transaction_that_sqlx_does_not_know_is_refused_with_the_remedy",
            a_transaction_that_sqlx_does_not_know_is_refused_with_the_remedy,
        ),
        plain(
            "every_form_of_a_connection_stages",
            every_form_of_a_connection_stages,
        ),
        plain(
            "a_staging_that_is_dropped_half_way_leaves_all_or_nothing",
            a_staging_that_is_dropped_half_way_leaves_all_or_nothing,
        ),
    ]
}

fn job() -> NewJob {
    NewJob::new("note").unwrap()
}

fn completing_outside_a_transaction_is_refused() {
    let file = File::new();
    let runtime = crate::runtime();
    let id = runtime.block_on(staged(&file));
    let path = file.path.clone();
    let handler = move |cx: Context| {
        let path = path.clone();
        async move {
            let rusqlite = rusqlite::Connection::open(&path).unwrap();
            let mut diesel = diesel::SqliteConnection::establish(path.to_str().unwrap()).unwrap();
            for refused in [
                cx.complete_in_blocking(&rusqlite),
                cx.complete_in_blocking(&mut diesel),
            ] {
                assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
            }
            Outcome::Done
        }
    };
    let options = Options {
        once: true,
        ..Options::default()
    };
    let stopper = Stopper::default();
    let worker = Worker::new(file.open(), ())
        .options(options)
        .handle_kind(kind(), handler);
    let tally = runtime.block_on(worker.run_until(stopper.stop())).unwrap();
    assert_eq!((tally.settled, tally.lost), (1, 0));
    assert_eq!(runtime.block_on(file.job(id)).state, JobState::Completed);
}

fn a_transaction_that_sqlx_does_not_know_is_refused_with_the_remedy() {
    let file = File::new();
    let refused = crate::runtime().block_on(async {
        let mut connection = sqlx::SqliteConnection::connect(&file.url()).await.unwrap();
        let begin = sqlx::raw_sql("BEGIN IMMEDIATE");
        begin.execute(&mut connection).await.unwrap();
        rowlock::enqueue(&mut connection, &job()).await
    });
    let Err(Error::Invalid(why)) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("begin_with"), "{why}");
}

fn every_form_of_a_connection_stages() {
    let file = File::new();
    let job = job();
    let mut connection = file.connect();
    rowlock::enqueue_blocking(&connection, &job).unwrap();
    rowlock::enqueue_blocking(&mut connection, &job).unwrap();
    let mut tx = connection.transaction().unwrap();
    rowlock::enqueue_blocking(&tx, &job).unwrap();
    rowlock::enqueue_blocking(&mut tx, &job).unwrap();
    let mut savepoint = tx.savepoint().unwrap();
    rowlock::enqueue_blocking(&savepoint, &job).unwrap();
    rowlock::enqueue_blocking(&mut savepoint, &job).unwrap();
    savepoint.commit().unwrap();
    tx.commit().unwrap();
    let mut diesel = diesel::SqliteConnection::establish(file.path.to_str().unwrap()).unwrap();
    rowlock::enqueue_blocking(&mut diesel, &job).unwrap();
    crate::runtime().block_on(async {
        let rowlock = file.open();
        rowlock::enqueue(&rowlock, &job).await.unwrap();
        rowlock::enqueue_many(&rowlock, std::slice::from_ref(&job))
            .await
            .unwrap();
        let mut sqlx = sqlx::SqliteConnection::connect(&file.url()).await.unwrap();
        rowlock::enqueue(&mut sqlx, &job).await.unwrap();
        let mut tx = sqlx.begin().await.unwrap();
        rowlock::enqueue(&mut *tx, &job).await.unwrap();
        rowlock::enqueue(&mut tx, &job).await.unwrap();
        tx.commit().await.unwrap();
    });
    assert_eq!(file.jobs(), 12);
}

/// A request that is cancelled drops its future anywhere.
fn a_staging_that_is_dropped_half_way_leaves_all_or_nothing() {
    let file = File::new();
    let jobs = vec![job(); 20];
    crate::runtime().block_on(async {
        let mut connection = sqlx::SqliteConnection::connect(&file.url()).await.unwrap();
        for polls in 1..=20 {
            let mut staging = Box::pin(rowlock::enqueue_many(&mut connection, &jobs));
            let mut polled = 0;
            // Polls it so often, then lets go of it.
            let ended = std::future::poll_fn(|cx| {
                polled += 1;
                match staging.as_mut().poll(cx) {
                    Poll::Ready(_) => Poll::Ready(true),
                    Poll::Pending if polled >= polls => Poll::Ready(false),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await;
            drop(staging);
            connection.ping().await.unwrap();
            // Dropped while its commit was under way, it may have been committed.
            let jobs = file.jobs();
            let whole = jobs == 20 || (jobs == 0 && !ended);
            assert!(whole, "{jobs} jobs after {polled} polls");
            // Nothing is locked any more.
            file.execute("DELETE FROM rowlock_job");
        }
        rowlock::enqueue_many(&mut connection, &jobs).await.unwrap();
    });
    assert_eq!(file.jobs(), 20);
}
