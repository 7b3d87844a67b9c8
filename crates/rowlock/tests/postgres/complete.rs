//! Completing in the handler's own transaction, through tokio-postgres. Every other driver has the
//! same cases in crates/rowlock-adapters.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::job::{Backoff, Record};
use rowlock::run::{Options, Stopper, Tally};
use rowlock::{Context, Error, Handler, JobState, Kind, NewJob, Outcome, Worker};
use tokio_postgres::NoTls;

use super::home::wait;
use super::small::Small;
use crate::conformance::world::Home;

/// Runs one job with `handler` until nothing is due.
async fn run(small: &Small, handler: impl Handler) -> (Tally, Record) {
    let mut kind = Kind::new("note").unwrap();
    kind.backoff = Backoff::Fixed {
        base: Duration::ZERO,
        jitter: 0.0,
    };
    let options = Options {
        once: true,
        ..Options::default()
    };
    let site = small.open(&Clock::system());
    let worker = Worker::new(site.rowlock.clone(), ())
        .options(options)
        .handle_kind(kind, handler);
    let id = site.stage(NewJob::new("note").unwrap()).await;
    let stopper = Stopper::default();
    let tally = worker.run_until(stopper.stop()).await.unwrap();
    (tally, site.job(id).await)
}

/// One note in a transaction with the job's end; whether to commit it.
fn note(url: &str, cx: &Context, commit: bool) -> Result<(), Error> {
    wait(async {
        let (mut client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        let connection = tokio::runtime::Handle::current().spawn(connection);
        let tx = client.transaction().await.unwrap();
        let noted = "INSERT INTO notes VALUES ('noted')";
        tx.execute(noted, &[]).await.unwrap();
        cx.complete_in(&tx).await?;
        match commit {
            true => tx.commit().await.unwrap(),
            false => tx.rollback().await.unwrap(),
        }
        drop(client);
        connection.await.unwrap().unwrap();
        Ok(())
    })
}

fn notes(small: &Small) -> usize {
    small.number("SELECT count(*) FROM notes")
}

pub async fn an_effect_that_was_rolled_back_is_tried_again(small: Small) {
    let notebook = "CREATE TABLE notes (text text)";
    small.side.execute(notebook).unwrap();
    let url = small.own.url();
    let attempts = AtomicUsize::new(0);
    let (tally, job) = run(&small, move |cx: Context| {
        let second = attempts.fetch_add(1, Ordering::Relaxed) == 1;
        note(&url, &cx, second).unwrap();
        async { Outcome::Done }
    })
    .await;
    assert_eq!((tally.settled, tally.lost), (2, 0));
    assert_eq!((job.state, job.attempt), (JobState::Completed, 2));
    assert_eq!(notes(&small), 1);
}

pub async fn a_late_completion_is_refused(small: Small) {
    let notebook = "CREATE TABLE notes (text text)";
    small.side.execute(notebook).unwrap();
    let rival = small.open(&Clock::system()).join().await;
    let (url, other) = (small.own.url(), small.own.session());
    let taken = format!(
        "UPDATE rowlock.job SET token = token - 1,
                worker = (SELECT number FROM rowlock.worker WHERE id = '{rival}')"
    );
    let (tally, job) = run(&small, move |cx: Context| {
        other.execute(&taken).unwrap();
        let outcome = match note(&url, &cx, true) {
            Err(Error::LeaseLost) => Outcome::Done,
            other => Outcome::Fail(format!("{other:?}")),
        };
        async { outcome }
    })
    .await;
    assert_eq!((tally.settled, tally.lost), (0, 1));
    assert_eq!(job.state, JobState::Processing);
    assert_eq!(notes(&small), 0);
}
