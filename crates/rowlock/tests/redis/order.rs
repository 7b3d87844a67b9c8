//! Who goes first.

use std::collections::BTreeMap;

use rowlock::claim::{Claim, ClaimedJob, QueueOrder};

use super::stand::{Stand, at, queues};
use crate::conformance::world::{ids, name, wanted};

/// The queues of jobs, and how many are of each.
fn by_queue(jobs: &[ClaimedJob]) -> BTreeMap<&str, usize> {
    let mut found = BTreeMap::new();
    for job in jobs {
        *found.entry(job.queue.as_str()).or_default() += 1;
    }
    found
}

pub async fn higher_priorities_go_first_and_equals_share(stand: Stand) {
    let mut jobs = vec![
        at(stand.job("mail"), "default", -5, 1),
        at(stand.job("mail"), "default", 0, 2),
        at(stand.job("mail"), "default", 0, 3),
        at(stand.job("mail"), "default", 0, 4),
        at(stand.job("report"), "default", 0, 1),
        at(stand.job("report"), "default", 7, 9),
    ];
    jobs.extend((0..20).map(|n| at(stand.job("report"), "default", 0, 10 + n)));
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail", "report"], 5).await;
    // The highest, then both kinds in equal parts; the one that has waited longest begins.
    let expected = [5, 4, 6, 1, 2].map(|n: usize| jobs[n].id);
    assert_eq!(ids(&taken), expected);
    let rest = stand.take(&worker, &["mail", "report"], 99).await;
    assert_eq!(rest.len(), jobs.len() - 5);
    assert_eq!(rest.last().unwrap().id, jobs[0].id);
}

pub async fn queues_share_what_a_worker_takes(stand: Stand) {
    let mut jobs: Vec<_> = (0..30).map(|n| at(stand.job("mail"), "a", 9, n)).collect();
    jobs.extend((0..30).map(|n| at(stand.job("mail"), "b", 0, n)));
    jobs.extend((0..2).map(|n| at(stand.job("mail"), "c", 0, n)));
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail"], 12).await;
    // What one leaves goes to those that have more.
    let found = by_queue(&taken);
    assert_eq!(found["c"], 2);
    assert!(found["a"] >= 4 && found["b"] >= 4, "{found:?}");
    // One at a time, each queue has its turn.
    let mut single = Vec::new();
    for _ in 0..8 {
        single.extend(stand.take(&worker, &["mail"], 1).await);
    }
    let found = by_queue(&single);
    assert_eq!((found["a"], found["b"]), (4, 4), "{found:?}");
}

pub async fn a_weighted_queue_gets_its_part(stand: Stand) {
    let mut jobs: Vec<_> = (0..30).map(|n| at(stand.job("mail"), "a", 0, n)).collect();
    jobs.extend((0..30).map(|n| at(stand.job("mail"), "b", 0, n)));
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let claim = Claim {
        queues: queues(&["a", "b"]),
        order: QueueOrder::Weighted(BTreeMap::from([(name("a"), 3)])),
        ..wanted(&worker, &["mail"], 12)
    };
    let taken = stand.taken(claim).await;
    assert_eq!(by_queue(&taken), BTreeMap::from([("a", 9), ("b", 3)]));
}

pub async fn strict_queues_are_emptied_in_their_order(stand: Stand) {
    let mut jobs: Vec<_> = (0..3).map(|n| at(stand.job("mail"), "a", 9, n)).collect();
    jobs.extend((0..3).map(|n| at(stand.job("mail"), "b", 0, n)));
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let claim = |limit| Claim {
        queues: queues(&["b", "a"]),
        order: QueueOrder::Strict,
        ..wanted(&worker, &["mail"], limit)
    };
    assert_eq!(
        by_queue(&stand.taken(claim(2)).await),
        BTreeMap::from([("b", 2)])
    );
    let taken = stand.taken(claim(2)).await;
    assert_eq!(by_queue(&taken), BTreeMap::from([("a", 1), ("b", 1)]));
}

pub async fn a_cap_holds_in_its_queue_only(stand: Stand) {
    let mut jobs: Vec<_> = (0..9).map(|n| at(stand.job("mail"), "a", 0, n)).collect();
    jobs.extend((0..9).map(|n| at(stand.job("mail"), "b", 0, n)));
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let claim = |cap| Claim {
        caps: BTreeMap::from([(name("a"), cap)]),
        ..wanted(&worker, &["mail"], 8)
    };
    let taken = stand.taken(claim(1)).await;
    assert_eq!(by_queue(&taken), BTreeMap::from([("a", 1), ("b", 7)]));
    let taken = stand.taken(claim(0)).await;
    assert_eq!(by_queue(&taken), BTreeMap::from([("b", 2)]));
}

pub async fn suspects_are_taken_only_by_who_asks_for_them(stand: Stand) {
    let mut jobs = stand.jobs("mail", 3);
    jobs[1].suspect = true;
    jobs[2].suspect = true;
    stand.push(&jobs).await;
    let worker = stand.join().await;
    assert_eq!(ids(&stand.take(&worker, &["mail"], 9).await), [jobs[0].id]);
    let claim = || Claim {
        suspect: true,
        ..wanted(&worker, &["mail"], 1)
    };
    let taken = stand.taken(claim()).await;
    assert_eq!(ids(&taken), [jobs[1].id]);
    assert!(taken[0].suspect);
    assert_eq!(ids(&stand.taken(claim()).await), [jobs[2].id]);
}

pub async fn kinds_and_queues_that_nobody_asked_for_stay(stand: Stand) {
    let jobs = vec![
        at(stand.job("mail"), "a", 0, 1),
        at(stand.job("report"), "a", 0, 1),
        // Names may have colons in them, and must not be mixed up.
        at(stand.job("b:mail"), "a", 0, 1),
        at(stand.job("mail"), "a:b", 0, 1),
    ];
    stand.push(&jobs).await;
    let worker = stand.join().await;
    assert!(stand.take(&worker, &[], 9).await.is_empty());
    let claim = Claim {
        queues: queues(&["a"]),
        ..wanted(&worker, &["mail"], 9)
    };
    assert_eq!(ids(&stand.taken(claim).await), [jobs[0].id]);
    assert_eq!(ids(&stand.take(&worker, &["mail"], 9).await), [jobs[3].id]);
    assert_eq!(
        ids(&stand.take(&worker, &["b:mail"], 9).await),
        [jobs[2].id]
    );
}
