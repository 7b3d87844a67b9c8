//! Lanes: a queue, a kind and a priority each.

use std::collections::BTreeSet;
use std::time::Duration;

use rowlock::claim::{Claim, WorkerId};
use rowlock::clock::Clock;
use rowlock::{JobId, NewJob};

use super::small::{Small, done, drain_all};
use crate::conformance::world::{Site, job, name, wanted};

pub async fn the_whole_range_of_priorities_is_claimed_from_high_to_low(small: Small) {
    let site = small.open(&Clock::system());
    let worker = site.join().await;
    let range = [0, -1, i16::MAX, i16::MIN, 1, i16::MIN + 1, i16::MAX - 1];
    for round in 0..3 {
        for priority in range {
            site.stage(job("mail").priority(priority)).await;
        }
        // Some in this segment, some in the next.
        if round < 2 {
            small.turn(&site, &worker, "filler").await;
        }
    }
    let mut claimed = Vec::new();
    while claimed.len() < 3 * range.len() {
        let jobs = site.claim(&worker, &["mail"], 2).await;
        assert!(!jobs.is_empty(), "{claimed:?}");
        claimed.extend(jobs.iter().map(|job| job.priority));
    }
    let mut sorted = [range, range, range].concat();
    sorted.sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!(claimed, sorted);
}

pub async fn what_comes_back_hides_nothing_that_waits_longer(small: Small) {
    let site = small.open(&Clock::system());
    let older = site.stage(job("mail")).await;
    let delayed = site
        .stage(job("mail").delay(Duration::from_secs(600)))
        .await;
    small
        .side
        .execute("UPDATE rowlock.job_0 SET ready_at = ready_at - interval '1 hour'")
        .unwrap();
    small
        .side
        .execute("UPDATE rowlock.aside SET ready_at = rowlock.now(), scheduled_at = rowlock.now()")
        .unwrap();
    // A process of its own knows no bounds.
    let other = small.open(&Clock::system());
    let worker = other.join().await;
    let claimed = other.claim(&worker, &["mail"], 10).await;
    let claimed: BTreeSet<JobId> = claimed.iter().map(|job| job.id).collect();
    assert_eq!(claimed, BTreeSet::from([older, delayed]));
}

/// Stages and claims until all are done, each once; the priorities in the order of the claims.
async fn all_once(site: &Site, worker: &WorkerId, jobs: Vec<NewJob>, queues: &[&str]) -> Vec<i16> {
    let kinds: BTreeSet<String> = jobs.iter().map(|job| job.kind().to_string()).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let staged = site.rowlock.enqueue_many(jobs).await.unwrap();
    let staged: BTreeSet<JobId> = staged.into_iter().filter_map(|answer| answer.id).collect();
    let mut claimed = Vec::new();
    let mut priorities = Vec::new();
    while claimed.len() < staged.len() {
        let claim = Claim {
            queues: queues.iter().map(|queue| name(queue)).collect(),
            ..wanted(worker, &kinds, 300)
        };
        let jobs = site.claimed(claim).await.jobs;
        assert!(!jobs.is_empty(), "{} of {}", claimed.len(), staged.len());
        done(site, &jobs).await;
        claimed.extend(jobs.iter().map(|job| job.id));
        priorities.extend(jobs.iter().map(|job| job.priority));
    }
    assert_eq!(BTreeSet::from_iter(claimed), staged);
    priorities
}

pub async fn three_thousand_lanes_are_served_in_order(small: Small) {
    let site = small.open(&Clock::system());
    let worker = site.join().await;
    let kinds = (0..1_000).map(|n| job(&format!("kind_{n}")).priority(n % 2));
    let kinds = kinds.map(|job| job.queue(name("kinds"))).collect();
    let taken = all_once(&site, &worker, kinds, &["kinds"]).await;
    assert!(taken.is_sorted_by(|one, next| one >= next));
    let levels = (-500..500).map(|n| job("level").priority(n).queue(name("levels")));
    let taken = all_once(&site, &worker, levels.collect(), &["levels"]).await;
    assert!(taken.is_sorted_by(|one, next| one >= next), "{taken:?}");
    let queues = (0..1_000).map(|n| {
        let queue = name(&format!("queue_{}", n % 100));
        job(&format!("share_{}", n / 100)).queue(queue)
    });
    all_once(&site, &worker, queues.collect(), &[]).await;
    let lanes = || small.number("SELECT count(*) FROM rowlock.lane");
    assert!(lanes() >= 3_000, "{}", lanes());
    // What nobody uses any more costs nothing any more.
    site.engine().prune(1).await.unwrap();
    assert_eq!(lanes(), 0);
}

pub async fn a_claim_that_could_take_more_wants_to_be_woken(small: Small) {
    let site = small.open(&Clock::system());
    let worker = site.join().await;
    let _wakeups = site.engine().wakeups();
    let sign = || small.number("SELECT last_value FROM rowlock.asleep");
    rowlock_testbed::until("it hears notifications", || {
        super::home::wait(site.claim(&worker, &["none"], 1));
        (sign() > 0).then_some(())
    });
    // Now and then a claim looks twice; what counts is the one look of the others.
    for _ in 0..20 {
        let down = "SELECT setval('rowlock.asleep', 0)";
        small.side.query(down).unwrap();
        site.stage_many("mail", 1).await;
        assert_eq!(site.claim(&worker, &["mail"], 5).await.len(), 1);
        assert!(sign() > 0);
    }
}

pub async fn a_lane_that_was_dropped_is_found_again(small: Small) {
    let site = small.open(&Clock::system());
    let worker = site.join().await;
    let kinds = (0..1_001).map(|n| job(&format!("kind_{n}"))).collect();
    all_once(&site, &worker, kinds, &[]).await;
    let late = small.own.session();
    late.execute("BEGIN").unwrap();
    let staged = late.value("SELECT id FROM rowlock.enqueue('kind_7')");
    // It can't know of the job that is still to come.
    site.engine().prune(1).await.unwrap();
    assert_eq!(small.number("SELECT count(*) FROM rowlock.lane"), 0);
    late.execute("COMMIT").unwrap();
    let ran = drain_all(&site, &worker, &["kind_7"], 1).await;
    assert_eq!(ran, [JobId(staged.parse().unwrap())]);
}
