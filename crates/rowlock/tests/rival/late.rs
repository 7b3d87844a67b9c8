//! A holder that beats for its jobs until it is refused, and then reports all the same.

use std::time::Duration;

use rowlock::claim::WorkerId;
use rowlock::clock;
use rowlock::error::Error;
use rowlock::job::{ErrorKind, JobError};
use rowlock::settle::{Settlement, Verdict};

use crate::conformance::world::wanted;

pub async fn late(url: &str, lease: &str) {
    let rowlock = crate::conformance::home_at(url).open(rowlock::Clock::system());
    let engine = rowlock.engine();
    let clock = rowlock.clock();
    let worker = WorkerId::random("late").unwrap();
    let lease = Duration::from_millis(lease.parse().unwrap());
    engine.join(&worker, lease).await.unwrap();
    let claim = wanted(&worker, &["mail"], 5);
    let token = claim.token;
    let jobs = engine.claim(claim).await.unwrap().jobs;
    println!("claimed {}", jobs.len());
    let refused = loop {
        clock.sleep(lease / 6).await;
        if let Err(why) = engine.heartbeat(&worker, vec![token]).await {
            break why;
        }
    };
    assert!(matches!(refused, Error::LeaseLost), "{refused}");
    println!("renew: LeaseLost");
    let now = clock.now();
    let error = JobError::new(1, now, ErrorKind::Error, "too late");
    let reports = [
        ("ack", Verdict::Done),
        ("fail", Verdict::Fail(error.clone())),
        ("retry", Verdict::Retry { at: now, error }),
        ("snooze", Verdict::Snooze(clock::add(now, lease))),
        ("release", Verdict::Release),
    ];
    for (job, (what, verdict)) in jobs.iter().zip(reports) {
        let settlement = Settlement {
            id: job.id,
            token,
            verdict,
            started_at: None,
        };
        let settled = engine.settle(vec![settlement]).await.unwrap();
        println!("{what}: {:?}", settled[0]);
    }
}
