//! Workers that die, let go, or find what they can't read.

use std::time::Duration;

use rowlock::drain::{Hold, Sink};
use rowlock::engine::{Dispatch, Recalled};
use rowlock::error::Error;
use rowlock::settle::{Settled, Verdict};

use super::stand::{LONG, SOON, STORE, Stand, sent};
use crate::conformance::world::{ids, wanted};

pub async fn a_dead_workers_jobs_are_bereft_and_its_verdicts_refused(stand: Stand) {
    let jobs = stand.jobs("mail", 4);
    stand.push(&jobs).await;
    let (worker, other) = (stand.join().await, stand.join().await);
    let taken = stand.take(&worker, &["mail"], 2).await;
    let others = stand.take(&other, &["mail"], 1).await;
    stand.settle(&taken[0], Verdict::Done).await;
    assert!(stand.sink.bereft(9).await.unwrap().is_empty());
    stand.dead(&worker).await;
    assert_eq!(
        stand.settle(&taken[1], Verdict::Done).await,
        Settled::LeaseLost
    );
    let begun = stand
        .redis
        .start_suspect(&worker, taken[1].id, taken[1].token)
        .await;
    assert!(matches!(begun, Err(Error::LeaseLost)), "{begun:?}");
    let beat = stand.redis.heartbeat(&worker, vec![taken[1].token]).await;
    assert!(matches!(beat, Err(Error::LeaseLost)), "{beat:?}");
    let claimed = stand.redis.claim(wanted(&worker, &["mail"], 1)).await;
    assert!(matches!(claimed, Err(Error::LeaseLost)), "{claimed:?}");
    stand.redis.leave(&worker).await.unwrap();
    let holds: Vec<_> = jobs.iter().map(sent).collect();
    let holds = stand.sink.holds(&holds).await.unwrap();
    // A verdict that waits, one without a worker, one that another has, one that nobody has.
    assert_eq!(holds, [Hold::Held, Hold::Bereft, Hold::Held, Hold::Held]);
    for _ in 0..2 {
        let bereft = stand.sink.bereft(9).await.unwrap();
        let bereft: Vec<_> = bereft.iter().map(|job| (job.id, job.token)).collect();
        assert_eq!(bereft, [sent(&jobs[1])]);
    }
    stand.sink.forget(&[sent(&jobs[1])]).await.unwrap();
    assert!(stand.sink.bereft(9).await.unwrap().is_empty());
    assert_eq!(stand.hold(&jobs[1]).await, Hold::Gone);
    assert_eq!(
        stand.settle(&others[0], Verdict::Done).await,
        Settled::Accepted
    );
    assert_eq!(stand.sink.fill().await.unwrap().workers, 1);
}

pub async fn a_released_job_goes_to_the_front(stand: Stand) {
    let jobs = stand.jobs("mail", 5);
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail"], 3).await;
    for job in taken[1..].iter().rev() {
        assert_eq!(stand.settle(job, Verdict::Release).await, Settled::Accepted);
    }
    assert!(
        stand.reports().await.is_empty(),
        "the store hears nothing of it"
    );
    assert_eq!(stand.sink.fill().await.unwrap().ready, 4);
    let again = stand.take(&worker, &["mail"], 9).await;
    assert_eq!(ids(&again), ids(&jobs[1..]));
    assert_eq!(
        stand.settle(&taken[1], Verdict::Done).await,
        Settled::LeaseLost
    );
    assert_eq!(
        stand.settle(&again[0], Verdict::Done).await,
        Settled::Accepted
    );
}

pub async fn a_claim_whose_answer_was_lost_goes_back_with_the_next_beat(stand: Stand) {
    let jobs = stand.jobs("mail", 6);
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let first = stand.take(&worker, &["mail"], 2).await;
    let lost = stand.take(&worker, &["mail"], 3).await;
    stand.settle(&lost[0], Verdict::Done).await;
    let held = vec![first[0].token];
    let beat = stand.redis.heartbeat(&worker, held.clone()).await.unwrap();
    assert_eq!(beat.released, 2);
    let beat = stand.redis.heartbeat(&worker, held).await.unwrap();
    assert_eq!(beat.released, 0);
    let again = stand.take(&worker, &["mail"], 9).await;
    assert_eq!(ids(&again), ids(&jobs[3..]));
    assert_eq!(
        stand.settle(&lost[1], Verdict::Done).await,
        Settled::LeaseLost
    );
    assert_eq!(
        stand.settle(&first[1], Verdict::Done).await,
        Settled::Accepted
    );
}

pub async fn a_worker_that_leaves_leaves_nothing_behind(stand: Stand) {
    let jobs = stand.jobs("mail", 4);
    stand.push(&jobs).await;
    let worker = stand.join_for(LONG).await;
    let taken = stand.take(&worker, &["mail"], 3).await;
    stand.settle(&taken[0], Verdict::Done).await;
    stand.redis.leave(&worker).await.unwrap();
    assert_eq!(
        stand.settle(&taken[1], Verdict::Done).await,
        Settled::LeaseLost
    );
    let other = stand.join().await;
    assert_eq!(
        ids(&stand.take(&other, &["mail"], 9).await),
        ids(&jobs[1..])
    );
    let keys = stand.server.command(&["KEYS", &format!("*{worker}*")]);
    assert_eq!(keys, "");
    assert!(stand.sink.bereft(9).await.unwrap().is_empty());
}

pub async fn a_stopped_job_that_is_released_goes_back_to_the_store(stand: Stand) {
    let jobs = stand.jobs("mail", 2);
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail"], 2).await;
    let recalled = jobs.iter().enumerate().map(|(n, job)| Recalled {
        id: job.id,
        token: job.token,
        cancel: n == 1,
    });
    stand
        .sink
        .recall(&recalled.collect::<Vec<_>>())
        .await
        .unwrap();
    for job in &taken {
        stand.settle(job, Verdict::Release).await;
    }
    assert!(stand.take(&worker, &["mail"], 9).await.is_empty());
    let reports = stand.reports().await;
    let verdicts: Vec<_> = reports.iter().map(|it| &it.settlement.verdict).collect();
    assert_eq!(verdicts, [&Verdict::Release, &Verdict::Cancelled]);
    assert_eq!(reports[0].taken, taken[0].token);
}

pub async fn a_body_that_can_not_be_read_stops_nobody(stand: Stand) {
    let jobs = stand.jobs("mail", 4);
    stand.push(&jobs).await;
    let lane = stand.key("ready:default/mail/0");
    let entry = |n: &str| stand.server.command(&["LINDEX", &lane, n]);
    let head = |n: &str| entry(n).split(" {").next().unwrap().to_owned();
    let torn = format!("{} {{\"payload\":", head("0"));
    stand.server.command(&["LSET", &lane, "0", &torn]);
    stand.server.command(&["LSET", &lane, "1", &head("1")]);
    let other = format!("{} {{\"payload\":1}}", head("2"));
    stand.server.command(&["LSET", &lane, "2", &other]);
    stand.server.command(&["LPUSH", &lane, "no job at all"]);
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail"], 9).await;
    assert_eq!(ids(&taken), [jobs[3].id]);
    let reports = stand.sink.reports(9, SOON).await.unwrap();
    let put_off: Vec<_> = reports.iter().map(|it| it.settlement.id).collect();
    assert_eq!(put_off, ids(&jobs[..3]));
    let snoozed = |it: &rowlock::drain::Report| matches!(it.settlement.verdict, Verdict::Snooze(_));
    assert!(reports.iter().all(snoozed), "{reports:?}");
    // What is no job at all goes when it would go back.
    let settled = stand.settle(&taken[0], Verdict::Done).await;
    assert_eq!(settled, Settled::Accepted);
    stand.redis.heartbeat(&worker, Vec::new()).await.unwrap();
    assert_eq!(stand.server.command(&["KEYS", &stand.key("parcel:*")]), "");
    assert!(stand.take(&worker, &["mail"], 9).await.is_empty());
}

pub async fn a_verdict_that_can_not_be_read_lets_its_job_run_again(stand: Stand) {
    let jobs = stand.jobs("mail", 3);
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail"], 3).await;
    let reports = stand.key("reports");
    for job in &taken[1..] {
        stand.settle(job, Verdict::Done).await;
    }
    // One names its job, the other one nothing at all.
    stand.server.command(&["DEL", &reports]);
    let (id, token) = sent(&jobs[1]);
    let named = format!("{id} {}", token.get());
    for torn in [
        &["take", "1", "worker", "w", "jobs", &named, "told", "{}"][..],
        &["take", "1", "worker", "w", "jobs", "1 x", "told", "{}"],
        &["x", ""],
    ] {
        let words = [&["XADD", &*reports, "*"], torn].concat();
        stand.server.command(&words);
    }
    stand.settle(&taken[0], Verdict::Done).await;
    let read = stand.sink.reports(9, Duration::ZERO).await.unwrap();
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].settlement.id, jobs[0].id);
    assert_eq!(stand.server.command(&["XLEN", &reports]), "1");
    assert_eq!(stand.hold(&jobs[1]).await, Hold::Gone);
    assert!(
        stand.sink.open(STORE).await.unwrap(),
        "something is missing"
    );
    let holds: Vec<_> = jobs.iter().map(sent).collect();
    let holds = stand.sink.holds(&holds).await.unwrap();
    assert_eq!(holds, [Hold::Held, Hold::Gone, Hold::Gone]);
}
