//! What is done to sessions: limits, isolation, an end by force, a lock in the way.

use rowlock::clock::Clock;
use rowlock::engine::Dispatch;
use rowlock::engine::postgres::{Address, Postgres as Store};
use rowlock::error::Error;
use rowlock::settle::{Settled, Verdict};
use rowlock::{JobState, Status};
use rowlock_testbed::{Postgres, until};

use super::stand::{Stand, dismiss};
use crate::conformance::world::{Home, job};

const LEASE_MS: u32 = 30_000;

/// How many sessions of ours were ended; only those whose last statement begins so.
fn end_sessions(stand: &Stand, statement: &str) -> usize {
    let session = Postgres::shared().session();
    let ended = session.query(&format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = '{}' AND application_name = 'rowlock' AND query LIKE '{statement}%'",
        stand.name
    ));
    ended.unwrap().len()
}

pub fn sessions_ended_by_force_lose_nothing() {
    let stand = Stand::new();
    let worker = stand.worker(&stand.home.url(), LEASE_MS, "quick");
    // Whoever can't join doesn't begin at all.
    stand.until_workers(1);
    let session = stand.home.session();
    for _ in 0..20 {
        session
            .execute("SELECT rowlock.enqueue('quick') FROM generate_series(1, 20)")
            .unwrap();
        until("sessions are ended", || {
            (end_sessions(&stand, "") > 0).then_some(())
        });
    }
    let completed =
        "SELECT count(*) FROM rowlock.history WHERE state = 'completed' AND attempt = 1";
    stand.eventually("all are done", async || {
        (session.value(completed) == "400").then_some(())
    });
    dismiss(worker);
}

pub fn listening_comes_back_after_its_session_was_ended() {
    let stand = Stand::new();
    let address = Address::parse(&stand.home.url()).unwrap();
    let store = stand.ask(Store::open(address, Clock::system())).unwrap();
    let mut wakeups = store.wakeups();
    let listens = |wanted: bool| {
        stand.eventually("listening begins or ends", async || {
            (store.listening() == Some(wanted)).then_some(())
        });
    };
    listens(true);
    assert_eq!(end_sessions(&stand, "LISTEN \"rowlock.ready\""), 1);
    listens(false);
    listens(true);
    // What was enqueued in between was told to nobody: it rings once it hears again.
    wakeups.mark();
    let session = stand.home.session();
    session.execute("NOTIFY \"rowlock.ready\"").unwrap();
    stand.ask(wakeups.next());
}

pub fn a_worker_whose_listening_session_was_ended_still_finds_work() {
    let stand = Stand::new();
    let mut worker = stand.worker(&stand.home.url(), LEASE_MS, "mail");
    stand.until_workers(1);
    let session = stand.home.session();
    for _ in 0..3 {
        stand.eventually("it listens", async || {
            (end_sessions(&stand, "LISTEN") > 0).then_some(())
        });
        session.execute("SELECT rowlock.enqueue('mail')").unwrap();
        worker.line_with("began mail");
    }
    dismiss(worker);
}

pub fn a_limit_on_statements_holds_up_nobody_for_good() {
    let server = Postgres::start_own();
    let stand = Stand::on(&server);
    server
        .session()
        .execute(&format!(
            "ALTER DATABASE {} SET statement_timeout = '1s'",
            stand.name
        ))
        .unwrap();
    let mut worker = stand.worker(&stand.home.url(), LEASE_MS, "mail,waits");
    stand.until_workers(1);
    let session = stand.home.session();
    session
        .execute("SET statement_timeout = 0; BEGIN; LOCK TABLE rowlock.worker, rowlock.lane, rowlock.job_0")
        .unwrap();
    // Claims run into the limit, more than once.
    stand.eventually("the server ends statements", async || {
        let ended = server.log().matches("due to statement timeout").count();
        (ended >= 3).then_some(())
    });
    session.execute("COMMIT").unwrap();
    let id = stand.ask(stand.site.stage(job("mail")));
    worker.line_with("began mail");
    stand.until(|counts| counts.completed == 1);
    stand.done_at_once(id);
    dismiss(worker);
}

pub fn a_stricter_isolation_of_the_database_changes_nothing() {
    for level in ["repeatable read", "serializable"] {
        let stand = Stand::new();
        Postgres::shared()
            .session()
            .execute(&format!(
                "ALTER DATABASE {} SET default_transaction_isolation = '{level}'",
                stand.name
            ))
            .unwrap();
        let handles: Vec<_> = (0..4).map(|_| stand.through(&stand.home.url())).collect();
        stand.ask(handles[0].stage_many("mail", 400));
        let rivals = handles.iter().map(|site| async {
            let worker = site.join().await;
            let mut taken = 0;
            loop {
                // The ring can't be turned by somebody who doesn't see what others commit.
                site.engine().upkeep().await.unwrap();
                let jobs = site.claim(&worker, &["mail"], 5).await;
                if jobs.is_empty() {
                    site.engine().leave(&worker).await.unwrap();
                    return taken;
                }
                taken += jobs.len();
                for job in &jobs {
                    assert_eq!(site.settle(job, Verdict::Done).await, Settled::Accepted);
                }
            }
        });
        let taken = stand.ask(all(rivals.collect()));
        assert_eq!(taken.iter().sum::<usize>(), 400, "{level}: {taken:?}");
    }
}

/// All at once, on one thread.
async fn all<T, F: Future<Output = T>>(futures: Vec<F>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done = Vec::new();
    std::future::poll_fn(move |cx| {
        waiting.retain_mut(|future| match future.as_mut().poll(cx) {
            std::task::Poll::Ready(answer) => {
                done.push(answer);
                false
            }
            std::task::Poll::Pending => true,
        });
        match waiting.is_empty() {
            true => std::task::Poll::Ready(std::mem::take(&mut done)),
            false => std::task::Poll::Pending,
        }
    })
    .await
}

pub fn a_deadlock_of_two_callers_ends_with_a_second_try() {
    let stand = Stand::new();
    let url = stand.home.url();
    let keyed = |key: &str| job("mail").unique(key).unwrap();
    let (first, second) = (keyed("first"), keyed("second"));
    stand.ask(async {
        let connect = async || {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
                .await
                .unwrap();
            #[expect(clippy::disallowed_methods, reason = "it ends with the client")]
            tokio::spawn(connection);
            client
        };
        let (one, other) = (connect().await, connect().await);
        one.batch_execute("BEGIN").await.unwrap();
        other.batch_execute("BEGIN").await.unwrap();
        rowlock::enqueue(&one, &first).await.unwrap();
        rowlock::enqueue(&other, &second).await.unwrap();
        let stage = async |client: &tokio_postgres::Client, job| {
            let answer = rowlock::enqueue(client, job).await;
            let end = if answer.is_ok() { "COMMIT" } else { "ROLLBACK" };
            client.batch_execute(end).await.unwrap();
            answer
        };
        let (a, b) = tokio::join!(stage(&one, &second), stage(&other, &first));
        let (won, lost, client) = match (a, b) {
            (Ok(won), Err(lost)) => (won, lost, &other),
            (Err(lost), Ok(won)) => (won, lost, &one),
            both => panic!("one of them has to give way: {both:?}"),
        };
        assert_eq!(won.status, Status::Queued);
        assert!(
            matches!(&lost, Error::Unavailable(why) if why.contains("try again")),
            "{lost:?}"
        );
        for job in [&first, &second] {
            let again = rowlock::enqueue(client, job).await.unwrap();
            assert_eq!(again.status, Status::Duplicate);
            assert_eq!(stand.site.state(again.id.unwrap()).await, JobState::Pending);
        }
    });
    let counts = stand
        .ask(stand.site.rowlock.operate().stats())
        .unwrap()
        .total;
    assert_eq!(counts.pending, 2);
}

pub fn a_caller_with_an_older_snapshot_tries_its_transaction_again() {
    let stand = Stand::new();
    let url = stand.home.url();
    stand.ask(async {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
            .await
            .unwrap();
        #[expect(clippy::disallowed_methods, reason = "it ends with the client")]
        tokio::spawn(connection);
        for level in ["REPEATABLE READ", "SERIALIZABLE"] {
            let keyed = job("mail").unique(level).unwrap();
            let begin = format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM pg_class");
            client.batch_execute(&begin).await.unwrap();
            let holder = stand.site.rowlock.enqueue(&keyed).await.unwrap();
            let refused = rowlock::enqueue(&client, &keyed).await.unwrap_err();
            assert!(
                matches!(&refused, Error::Unavailable(why) if why.contains("try again from its BEGIN")),
                "{level}: {refused:?}"
            );
            assert!(refused.is_transient());
            client.batch_execute("ROLLBACK").await.unwrap();
            client.batch_execute(&begin).await.unwrap();
            let again = rowlock::enqueue(&client, &keyed).await.unwrap();
            assert_eq!((again.status, again.id), (Status::Duplicate, holder.id));
            client.batch_execute("COMMIT").await.unwrap();
        }
    });
}
