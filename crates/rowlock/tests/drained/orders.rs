//! What operators ask for while jobs are on their way, and what commits late.

use std::sync::Arc;
use std::time::Duration;

use rowlock::claim::WorkerId;
use rowlock::clock::Clock;
use rowlock::drain::sinks::redis::Redis;
use rowlock::drain::{Line, Options, Route};
use rowlock::engine::Dispatch;
use rowlock::job::Token;
use rowlock::settle::{Settled, Settlement, Verdict};
use rowlock::{JobId, JobState, Name};

use super::stand::{Stand, dismiss};
use crate::conformance::world::{job, wanted};

const LEASE_MS: u32 = 1_000;

pub fn a_cancel_reaches_what_waits_and_what_runs(stand: &Stand) {
    let ids = stand.stage("waits", 2);
    let drain = stand.drain(LEASE_MS, "waits");
    let mut worker = stand.worker(LEASE_MS, 1, "waits");
    worker.line_with("began waits");
    stand.until_filled(|fill| fill.ready == 1 && fill.taken == 1 || fill.taken == 2);
    let cancelled = stand.ask(stand.site.engine().cancel(ids.clone()));
    assert!(cancelled.unwrap().iter().all(Result::is_ok));
    worker.line_with("dropped");
    stand.until(|counts| counts.cancelled == 2);
    dismiss(worker);
    dismiss(drain);
}

pub fn a_route_that_ends_strands_no_job(stand: &Stand) {
    stand.stage("quick", 1_000);
    let drain = stand.drain(LEASE_MS, "quick");
    stand.until_filled(|fill| fill.ready == 1_000);
    // From here on it goes directly; what was sent comes back by the route.
    let route = Name::new("redis").unwrap();
    let routes = stand.site.rowlock.routes();
    stand
        .ask(routes.declare_route(&route, &[], &[], true))
        .unwrap();
    stand.stage("quick", 1_000);
    assert_eq!(stand.fill().unwrap().pushed, 1_000);
    let url = stand.home.url();
    let direct = crate::drained::stand::started(&["work", &url, "5000", "4", "quick"], &[]);
    stand.until(|counts| counts.completed == 1_000);
    assert_eq!(
        stand.fill().unwrap().ready,
        1_000,
        "they wait for workers of Redis"
    );
    let worker = stand.worker(LEASE_MS, 4, "quick");
    stand.until(|counts| counts.completed == 2_000);
    dismiss(direct);
    dismiss(worker);
    dismiss(drain);
    assert_eq!(stand.fill().unwrap().pushed, 1_000);
}

pub fn what_commits_late_is_sent_all_the_same() {
    let stand = Stand::new(Arc::new(crate::postgres::home::Own::new()));
    let drain = stand.drain(LEASE_MS, "quick");
    let worker = stand.worker(LEASE_MS, 4, "quick");
    let mut late = stand.home.client();
    late.begin();
    let first = late.stage(&job("quick")).unwrap().id.unwrap();
    let mut rolled_back = stand.home.client();
    rolled_back.begin();
    let never = rolled_back.stage(&job("quick")).unwrap().id.unwrap();
    let second = stand.stage("quick", 100);
    assert!(
        first < second[0] && never < second[0],
        "it has the lower id"
    );
    stand.until(|counts| counts.completed == 100);
    rolled_back.rollback();
    late.commit();
    stand.until(|counts| counts.completed == 101);
    assert_eq!(stand.ask(stand.site.state(first)), JobState::Completed);
    assert!(stand.ask(stand.site.is_gone(never)));
    dismiss(worker);
    dismiss(drain);
    assert!(!stand.begun().contains_key(&never.0));
    stand.judge();
}

pub fn a_verdict_under_an_old_token_is_refused(stand: &Stand) {
    let routes = stand.site.rowlock.routes();
    let redis = Redis::open(&stand.redis.url(), Clock::system()).unwrap();
    stand.ask(async {
        let (id, route, line) = one_job(stand, Options::default()).await;
        let worker = WorkerId::random("test").unwrap();
        redis.join(&worker, Duration::from_secs(60)).await.unwrap();
        let run = async || {
            assert_eq!(line.pump().await.unwrap().sent, 1);
            let claim = wanted(&worker, &["quick"], 1);
            let taken = redis.claim(claim).await.unwrap().jobs.remove(0);
            let done = settled(taken.id, taken.token, Verdict::Done);
            let said = redis.settle(vec![done]).await.unwrap();
            assert_eq!(said, [Settled::Accepted]);
        };
        run().await;
        // Somebody takes it back before its verdict arrives, and it is sent again.
        let sent = routes.sent(&route.holder(), None, 10).await.unwrap();
        let back = settled(id, sent[0].token, Verdict::Release);
        let answer = stand.site.engine().settle(vec![back]).await.unwrap();
        assert_eq!(answer, [Settled::Accepted]);
        assert_eq!(line.pump().await.unwrap().sent, 1);
        let none = line.collect(Duration::ZERO).await.unwrap();
        assert_eq!(none, (0, 1), "the claim that it was for is no more");
        assert_eq!(stand.site.state(id).await, JobState::Processing);
        let claim = wanted(&worker, &["quick"], 1);
        let again = redis.claim(claim).await.unwrap().jobs.remove(0);
        let done = settled(again.id, again.token, Verdict::Done);
        redis.settle(vec![done]).await.unwrap();
        assert_eq!(line.collect(Duration::ZERO).await.unwrap(), (1, 0));
        assert_eq!(stand.site.state(id).await, JobState::Completed);
    });
}

/// A job that goes by a route, and the line that it goes by.
async fn one_job(stand: &Stand, options: Options) -> (JobId, Route, Line) {
    let rowlock = &stand.site.rowlock;
    let route = Route::to(stand.redis.url()).unwrap().kind("quick").unwrap();
    let line = Line::new(rowlock, &route, &options).unwrap();
    let id = stand.site.stage(job("quick")).await;
    let routes = rowlock.routes();
    let declared = routes.declare_route(&route.name, &route.kinds, &[], true);
    declared.await.unwrap();
    line.beat().await.unwrap();
    line.open().await.unwrap();
    (id, route, line)
}

fn settled(id: JobId, token: Token, verdict: Verdict) -> Settlement {
    Settlement {
        id,
        token,
        verdict,
        started_at: None,
    }
}

pub fn what_may_still_arrive_is_not_sent_again(stand: &Stand) {
    let routes = stand.site.rowlock.routes();
    // A push may take ten minutes.
    let options = Options {
        lease: Duration::from_secs(3600),
        ..Options::default()
    };
    stand.ask(async {
        let (id, route, line) = one_job(stand, options).await;
        // Another drain has claimed it and is about to send it.
        let mut claim = wanted(&route.holder(), &[], 1);
        claim.route = Some(route.name.clone());
        let other = stand
            .site
            .engine()
            .claim(claim)
            .await
            .unwrap()
            .jobs
            .remove(0);
        let adopted = line.adopt().await.unwrap();
        assert_eq!((adopted.lost, adopted.young), (0, 1));
        let sink = route.sink(&Clock::system()).unwrap();
        sink.open(routes.store_id().await.unwrap()).await.unwrap();
        sink.push(&[other], Duration::from_secs(60)).await.unwrap();
        let adopted = line.adopt().await.unwrap();
        assert_eq!((adopted.lost, adopted.young), (0, 0));
        assert_eq!(stand.site.job(id).await.attempt, 1);
    });
}
