//! A Redis that forgets, and one that belongs to somebody else.

use rowlock::drain::{Hold, Sink};
use rowlock::engine::Dispatch;
use rowlock::error::Error;
use rowlock::job::Token;
use rowlock::settle::{Settled, Settlement, Verdict};

use super::stand::{SOON, STORE, Stand, sent, sink};
use crate::conformance::world::wanted;

pub async fn a_flush_is_noticed_and_everything_is_gone(stand: Stand) {
    let jobs = stand.jobs("mail", 3);
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail"], 2).await;
    stand.settle(&taken[0], Verdict::Done).await;
    assert!(!stand.sink.open(STORE).await.unwrap());
    stand.server.command(&["FLUSHALL"]);
    // Nothing is sent to a place whose owner nobody knows.
    let refused = stand.sink.push(&stand.jobs("mail", 1), SOON).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    for job in &jobs {
        assert_eq!(stand.hold(job).await, Hold::Gone);
    }
    assert_eq!(
        stand.settle(&taken[1], Verdict::Done).await,
        Settled::LeaseLost
    );
    let claimed = stand.redis.claim(wanted(&worker, &["mail"], 1)).await;
    assert!(matches!(claimed, Err(Error::LeaseLost)), "{claimed:?}");
    assert!(stand.sink.open(STORE).await.unwrap(), "it has no memory");
    assert!(!stand.sink.open(STORE).await.unwrap());
    stand.push(&jobs).await;
    let worker = stand.join().await;
    assert_eq!(stand.take(&worker, &["mail"], 9).await.len(), 3);
}

pub async fn a_restart_without_a_disk_is_noticed_and_waited_for(stand: Stand) {
    let jobs = stand.jobs("mail", 3);
    stand.push(&jobs).await;
    stand.server.kill();
    let away = stand.sink.push(&jobs, SOON).await;
    assert!(matches!(away, Err(Error::Unavailable(_))), "{away:?}");
    stand.server.restart();
    let is_new = loop {
        // The old connection may be tried once more.
        match stand.sink.open(STORE).await {
            Ok(is_new) => break is_new,
            Err(why) => assert!(why.is_transient(), "{why:?}"),
        }
    };
    assert!(is_new);
    stand.push(&jobs).await;
}

pub async fn another_stores_place_is_refused(stand: Stand) {
    stand.push(&stand.jobs("mail", 1)).await;
    let other = sink(&stand.server.url());
    let why = other.open(STORE + 1).await.unwrap_err().to_string();
    assert!(why.contains("?prefix="), "{why}");
    let apart = sink(&format!("{}?prefix=others", stand.server.url()));
    assert!(apart.open(STORE + 1).await.unwrap());
    assert_eq!(apart.fill().await.unwrap().ready, 0);
    // A place that was given away meanwhile.
    stand.server.command(&["SET", &stand.key("owner"), "8"]);
    let why = stand.sink.push(&stand.jobs("mail", 1), SOON).await;
    assert!(matches!(why, Err(Error::Schema(_))), "{why:?}");
}

pub async fn nothing_is_left_of_jobs_that_are_forgotten(stand: Stand) {
    let worker = stand.join().await;
    let mut all = Vec::new();
    for round in 0..3 {
        let jobs = stand.jobs("mail", 20);
        stand.push(&jobs).await;
        for job in stand.take(&worker, &["mail"], 10 + round).await {
            stand.settle(&job, Verdict::Done).await;
        }
        all.extend(jobs);
    }
    stand.reports().await;
    let all: Vec<_> = all.iter().map(sent).collect();
    stand.sink.forget(&all).await.unwrap();
    stand.redis.leave(&worker).await.unwrap();
    let keys = stand.server.command(&["KEYS", "*"]);
    let mut keys: Vec<&str> = keys.lines().collect();
    keys.sort_unstable();
    // A stream stays when it is empty.
    assert_eq!(
        keys,
        ["evicted", "owner", "pushed", "reports"].map(|key| stand.key(key))
    );
    let fill = stand.sink.fill().await.unwrap();
    assert_eq!((fill.ready, fill.taken, fill.reports), (0, 0, 0));
}

pub async fn whatever_key_is_thrown_away_its_jobs_are_found_and_run(stand: Stand) {
    let keys = [
        "held", "lanes", "ready", "parcel", "done", "running", "workers", "worker", "reports",
        "tally", "owner",
    ];
    for key in keys {
        stand.server.command(&["FLUSHALL"]);
        assert!(stand.sink.open(STORE).await.unwrap());
        let mut jobs = stand.jobs("mail", 9);
        stand.push(&jobs).await;
        let worker = stand.join().await;
        let taken = stand.take(&worker, &["mail"], 4).await;
        stand.settle(&taken[0], Verdict::Done).await;
        let found = stand
            .server
            .command(&["KEYS", &stand.key(&format!("{key}*"))]);
        let is = |found: &&str| {
            *found == stand.key(key) || found.starts_with(&stand.key(&format!("{key}:")))
        };
        let gone: Vec<&str> = found.lines().filter(is).collect();
        assert_eq!(gone.len(), 1, "{key}: {found}");
        stand.server.command(&["UNLINK", gone[0]]);

        // A drain looks, and sends again what isn't there; a worker goes on, or begins anew.
        let mut rounds = 0;
        let mut ended = std::collections::BTreeSet::new();
        while ended.len() < jobs.len() {
            rounds += 1;
            assert!(rounds < 9, "{key}: only {ended:?} of {} ended", jobs.len());
            stand.sink.open(STORE).await.unwrap();
            for report in stand.reports().await {
                let Settlement { id, token, .. } = report.settlement;
                // As in the store, the first verdict counts, under the token that is known there.
                if jobs.iter().any(|job| sent(job) == (id, token)) {
                    ended.insert(id);
                }
                stand.sink.forget(&[(id, token)]).await.unwrap();
            }
            for job in jobs.iter_mut().filter(|job| !ended.contains(&job.id)) {
                match stand.hold(job).await {
                    Hold::Held => continue,
                    Hold::Bereft => stand.sink.forget(&[sent(job)]).await.unwrap(),
                    _ => {}
                }
                job.token = Token::random().unwrap();
                stand.push(std::slice::from_ref(job)).await;
            }
            for job in &taken {
                stand.settle(job, Verdict::Done).await;
            }
            let other = stand.join().await;
            for job in stand.take(&other, &["mail"], 99).await {
                stand.settle(&job, Verdict::Done).await;
            }
        }
    }
}
