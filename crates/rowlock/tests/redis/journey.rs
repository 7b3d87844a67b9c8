//! There and back.

use std::time::Duration;

use rowlock::clock::{self, Clock};
use rowlock::drain::{Hold, Sink};
use rowlock::engine::{Dispatch, Recalled};
use rowlock::error::Error;
use rowlock::job::{ErrorKind, JobError, Token};
use rowlock::settle::{Settled, Verdict};

use super::stand::{SOON, Stand, sent, settlement, sink};
use crate::conformance::world::{ids, name};

pub async fn a_job_goes_there_and_its_verdict_comes_back(stand: Stand) {
    let jobs = stand.jobs("mail", 3);
    assert_eq!(stand.push(&jobs).await.ready, 3);
    assert_eq!(stand.hold(&jobs[0]).await, Hold::Held);
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail"], 2).await;
    assert_eq!(ids(&taken), ids(&jobs[..2]));
    let (got, gave) = (&taken[0], &jobs[0]);
    assert_ne!(got.token, gave.token, "the worker has a fence of its own");
    assert_eq!(got.payload, gave.payload);
    assert_eq!(got.unique_key, gave.unique_key);
    assert_eq!(
        (got.attempt, got.max_attempts, got.timeout, got.scheduled_at),
        (
            gave.attempt,
            gave.max_attempts,
            gave.timeout,
            gave.scheduled_at
        )
    );
    let fill = stand.sink.fill().await.unwrap();
    assert_eq!((fill.ready, fill.taken, fill.reports), (1, 2, 0));
    assert_eq!((fill.workers, fill.pushed), (1, 3));

    assert_eq!(stand.settle(got, Verdict::Done).await, Settled::Accepted);
    assert_eq!(stand.settle(got, Verdict::Done).await, Settled::LeaseLost);
    assert_eq!(stand.hold(gave).await, Hold::Held, "its verdict waits");
    let reports = stand.sink.reports(10, SOON).await.unwrap();
    assert_eq!(reports.len(), 1);
    let report = &reports[0];
    assert_eq!(report.settlement.id, gave.id);
    assert_eq!(report.settlement.token, gave.token);
    assert_eq!(report.settlement.verdict, Verdict::Done);
    assert_eq!(report.taken, got.token);
    assert_eq!(report.kind, name("mail"));
    assert_eq!(report.unique_key, gave.unique_key);
    stand.sink.forget(&[sent(gave)]).await.unwrap();
    assert_eq!(stand.hold(gave).await, Hold::Gone);
    assert!(stand.reports().await.is_empty());
    let fill = stand.sink.fill().await.unwrap();
    assert_eq!((fill.ready, fill.taken, fill.reports), (1, 1, 0));
}

pub async fn a_verdict_keeps_its_distance_to_now(stand: Stand) {
    let jobs = stand.jobs("mail", 3);
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail"], 3).await;
    let now = Clock::system().now();
    let hour = Duration::from_secs(3600);
    let error = JobError::new(2, now, ErrorKind::Timeout, "too \"slow\"\n");
    let mut retry = settlement(
        &taken[0],
        Verdict::Retry {
            at: clock::add(now, hour),
            error: error.clone(),
        },
    );
    retry.started_at = Some(now);
    let verdicts = vec![
        retry,
        settlement(&taken[1], Verdict::Snooze(clock::add(now, 2 * hour))),
        settlement(&taken[2], Verdict::Fail(error.clone())),
    ];
    let settled = stand.redis.settle(verdicts).await.unwrap();
    assert_eq!(settled, [Settled::Accepted; 3]);
    // A drain whose clock is a day behind.
    let behind =
        Clock::manual(clock::add(now, Duration::ZERO) - jiff::SignedDuration::from_hours(24));
    let sink = rowlock::drain::sinks::redis::RedisSink::new(&stand.server.url(), behind.clone());
    let sink = sink.unwrap();
    let reports = sink.reports(10, SOON).await.unwrap();
    // Its clock stands still, so that only the time that the verdict waited is missing.
    let waited = |at: jiff::Timestamp, wait: Duration| {
        let until = clock::add(behind.now(), wait);
        let missing = at.duration_until(until);
        assert!(
            !missing.is_negative() && missing.as_secs() < 3600,
            "{at} is not {wait:?} after the verdict"
        );
    };
    let Verdict::Retry { at, error: told } = &reports[0].settlement.verdict else {
        panic!("{reports:?}");
    };
    waited(*at, hour);
    waited(told.at, Duration::ZERO);
    assert_eq!((told.attempt, told.kind), (2, ErrorKind::Timeout));
    assert_eq!(told.message, error.message);
    waited(reports[0].settlement.started_at.unwrap(), Duration::ZERO);
    let Verdict::Snooze(at) = &reports[1].settlement.verdict else {
        panic!("{reports:?}");
    };
    waited(*at, 2 * hour);
    assert!(
        matches!(&reports[2].settlement.verdict, Verdict::Fail(told) if told.message == error.message)
    );
}

pub async fn the_same_reports_come_until_they_are_forgotten(stand: Stand) {
    let jobs = stand.jobs("mail", 5);
    stand.push(&jobs).await;
    let worker = stand.join().await;
    for job in stand.take(&worker, &["mail"], 5).await {
        stand.settle(&job, Verdict::Done).await;
    }
    let of = |reports: &[rowlock::drain::Report]| -> Vec<_> {
        reports.iter().map(|report| report.settlement.id).collect()
    };
    let first = stand.sink.reports(2, SOON).await.unwrap();
    assert_eq!(
        of(&first),
        ids(&jobs[..2]),
        "oldest first, as many as wanted"
    );
    assert_eq!(of(&stand.reports().await), ids(&jobs));
    // Another drain sees the same, and may be faster.
    let other = sink(&stand.server.url());
    other.open(super::stand::STORE).await.unwrap();
    assert_eq!(of(&other.reports(9, SOON).await.unwrap()), ids(&jobs));
    other
        .forget(&[sent(&jobs[0]), sent(&jobs[3])])
        .await
        .unwrap();
    let left = [jobs[1].id, jobs[2].id, jobs[4].id];
    assert_eq!(of(&stand.reports().await), left);
    let all: Vec<_> = jobs.iter().map(sent).collect();
    stand.sink.forget(&all).await.unwrap();
    assert!(other.reports(9, Duration::ZERO).await.unwrap().is_empty());
}

pub async fn a_group_of_verdicts_may_be_forgotten_in_parts(stand: Stand) {
    let jobs = stand.jobs("mail", 4);
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail"], 4).await;
    let verdicts = taken.iter().map(|job| settlement(job, Verdict::Done));
    stand.redis.settle(verdicts.collect()).await.unwrap();
    assert_eq!(stand.sink.reports(3, SOON).await.unwrap().len(), 3);
    stand
        .sink
        .forget(&[sent(&jobs[0]), sent(&jobs[1])])
        .await
        .unwrap();
    let reports = stand.reports().await;
    let left: Vec<_> = reports.iter().map(|report| report.settlement.id).collect();
    assert_eq!(left, ids(&jobs[2..]));
    stand
        .sink
        .forget(&[sent(&jobs[2]), sent(&jobs[3])])
        .await
        .unwrap();
    assert!(stand.reports().await.is_empty());
    assert_eq!(stand.server.command(&["XLEN", &stand.key("reports")]), "0");
}

pub async fn a_push_that_is_made_again_changes_nothing(stand: Stand) {
    let jobs = stand.jobs("mail", 3);
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail"], 2).await;
    stand.settle(&taken[0], Verdict::Done).await;
    // Its first answer was lost.
    let pushed = stand.push(&jobs).await;
    assert_eq!(pushed.ready, 2, "one waits, and one verdict");
    assert_eq!(ids(&stand.take(&worker, &["mail"], 9).await), [jobs[2].id]);
    assert_eq!(
        stand.settle(&taken[1], Verdict::Done).await,
        Settled::Accepted
    );
    assert_eq!(stand.reports().await.len(), 2);
    assert_eq!(stand.sink.fill().await.unwrap().pushed, 3);
}

pub async fn a_push_that_comes_too_late_leaves_nothing(stand: Stand) {
    let jobs = stand.jobs("mail", 2);
    // Whoever writes waits at the server for longer than the push may take.
    stand.server.command(&["CLIENT", "PAUSE", "3000", "WRITE"]);
    let late = stand.sink.push(&jobs, Duration::from_millis(50)).await;
    assert!(
        matches!(&late, Err(Error::Unavailable(why)) if why.contains("late")),
        "{late:?}"
    );
    for job in &jobs {
        assert_eq!(stand.hold(job).await, Hold::Gone);
    }
    let worker = stand.join().await;
    assert!(stand.take(&worker, &["mail"], 9).await.is_empty());
    stand.push(&jobs).await;
    assert_eq!(stand.take(&worker, &["mail"], 9).await.len(), 2);
}

pub async fn a_job_that_was_sent_again_has_one_owner(stand: Stand) {
    let worker = stand.join().await;
    // Once it waits, once it runs, once its verdict waits.
    let old = stand.jobs("mail", 3);
    stand.push(&old[..2]).await;
    let taken = stand.take(&worker, &["mail"], 2).await;
    stand.settle(&taken[1], Verdict::Done).await;
    stand.push(&old[2..]).await;
    let mut new = old.clone();
    for job in &mut new {
        job.token = Token::random().unwrap();
    }
    let pushed = stand.push(&new).await;
    assert_eq!(pushed.ready, 4, "three wait, and one verdict");
    for (old, new) in old.iter().zip(&new) {
        assert_eq!(stand.hold(old).await, Hold::Gone);
        assert_eq!(stand.hold(new).await, Hold::Held);
    }
    assert_eq!(
        stand.settle(&taken[0], Verdict::Done).await,
        Settled::LeaseLost
    );
    let again = stand.take(&worker, &["mail"], 9).await;
    let mut found = ids(&again);
    found.sort();
    assert_eq!(found, ids(&new), "each one once");
    // Forgetting what was replaced leaves the new one alone.
    let all: Vec<_> = old.iter().map(sent).collect();
    assert_eq!(stand.reports().await.len(), 1);
    stand.sink.forget(&all).await.unwrap();
    assert!(stand.reports().await.is_empty());
    for job in &again {
        assert_eq!(stand.settle(job, Verdict::Done).await, Settled::Accepted);
    }
    let tokens: Vec<_> = stand
        .reports()
        .await
        .iter()
        .map(|it| it.settlement.token)
        .collect();
    assert!(
        new.iter().all(|job| tokens.contains(&job.token)),
        "{tokens:?}"
    );
}

pub async fn a_worker_is_woken_by_a_push(stand: Stand) {
    let mut wakeups = stand.redis.wakeups();
    // It rings once when it begins to listen.
    wakeups.next().await;
    stand.push(&stand.jobs("mail", 1)).await;
    wakeups.next().await;
    // A connection that is cut is made again, and says so.
    stand.server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    wakeups.next().await;
    stand.push(&stand.jobs("mail", 1)).await;
    wakeups.next().await;
}

pub async fn a_recalled_job_comes_back_unless_somebody_has_it(stand: Stand) {
    let jobs = stand.jobs("mail", 4);
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail"], 2).await;
    let recalled = |n: usize, cancel| Recalled {
        id: jobs[n].id,
        token: jobs[n].token,
        cancel,
    };
    let all = [
        recalled(0, true),
        recalled(1, false),
        recalled(2, true),
        recalled(3, false),
    ];
    stand.sink.recall(&all).await.unwrap();
    stand.sink.recall(&all).await.unwrap();
    let reports = stand.reports().await;
    let verdicts: Vec<_> = reports.iter().map(|it| &it.settlement.verdict).collect();
    assert_eq!(verdicts, [&Verdict::Cancelled, &Verdict::Release]);
    assert!(stand.take(&worker, &["mail"], 9).await.is_empty());
    let held = vec![taken[0].token];
    let beat = stand.redis.heartbeat(&worker, held.clone()).await.unwrap();
    assert_eq!(beat.cancel_requested, [jobs[0].id]);
    assert_eq!(beat.stopped, [jobs[1].id]);
    // Once it has ended, nobody is asked any more.
    stand.settle(&taken[0], Verdict::Cancelled).await;
    let beat = stand.redis.heartbeat(&worker, held).await.unwrap();
    assert!(beat.cancel_requested.is_empty());
    assert_eq!(beat.stopped, [jobs[1].id]);
}
