//! What becomes of jobs while the ring turns under them.

use std::collections::BTreeSet;
use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::{JobId, JobState, Kind, Status};

use super::small::{Small, drain, drain_all};
use crate::conformance::world::{job, name};

/// A transaction's snapshot, taken without a lock on any segment.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rowlock.worker";

pub async fn a_running_job_stays_where_a_snapshot_has_it(small: Small) {
    let site = small.open(&Clock::system());
    let worker = site.join().await;
    let running = site.stage(job("mail")).await;
    let held = site.claim_one(&worker, &["mail"]).await;
    let place = small.place(running);
    let caller = small.own.session();
    caller.execute(SNAPSHOT).unwrap();
    for _ in 0..4 {
        small.turn(&site, &worker, "filler").await;
        assert_eq!(small.place(running), place);
    }
    let segment = place.split(' ').next().unwrap().replace("rowlock.job_", "");
    let completed = caller.value(&format!(
        "SELECT rowlock.complete({segment}::smallint, {running}, {}, 0)",
        held.token.get()
    ));
    assert_eq!(completed, "t");
    caller.execute("COMMIT").unwrap();
    assert_eq!(site.state(running).await, JobState::Completed);
    small.turn(&site, &worker, "filler").await;
    let segment: usize = segment.parse().unwrap();
    let turned = small.rotate(&[]);
    assert!(
        ["empty", "retired", "current"].contains(&turned[segment].did.as_str()),
        "{turned:?}"
    );
}

pub async fn an_old_snapshot_enqueues_into_a_ring_that_has_turned(small: Small) {
    let site = small.open(&Clock::system());
    let worker = site.join().await;
    small.turn(&site, &worker, "filler").await;
    let caller = small.own.session();
    caller.execute(SNAPSHOT).unwrap();
    for _ in 0..5 {
        small.turn(&site, &worker, "filler").await;
    }
    let staged = caller.value("SELECT id FROM rowlock.enqueue('mail')");
    for _ in 0..2 {
        small.turn(&site, &worker, "filler").await;
    }
    assert!(drain(&site, &worker, &["mail"], 10).await.is_empty());
    caller.execute("COMMIT").unwrap();
    let ran = drain_all(&site, &worker, &["mail"], 1).await;
    assert_eq!(ran, [JobId(staged.parse().unwrap())]);
}

pub async fn what_still_waits_moves_on_unchanged(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    let soon = Duration::from_secs(30);
    let mut waiting = BTreeSet::new();
    for n in 0..20_i16 {
        let new = job("mail")
            .queue(name("slow"))
            .priority(n - 10)
            .delay(soon)
            .tag(name("red"))
            .max_attempts(7)
            .and_then(|new| new.payload_of(&n))
            .and_then(|new| new.unique(format!("key {n}")))
            .unwrap();
        waiting.insert(site.stage(new).await);
    }
    // Its place in the lane is all that may change.
    let rows = || {
        let sql =
            "SELECT to_jsonb(job) - 'ready_at' FROM rowlock.job WHERE kind = 'mail' ORDER BY id";
        small.side.query(sql).unwrap()
    };
    let (before, places) = (rows(), small.place(*waiting.first().unwrap()));
    for _ in 0..5 {
        small.turn(&site, &worker, "filler").await;
        assert_eq!(rows(), before);
    }
    assert_ne!(small.place(*waiting.first().unwrap()), places);
    assert!(drain(&site, &worker, &["mail"], 10).await.is_empty());
    world.advance(soon);
    let ran = drain_all(&site, &worker, &["mail"], waiting.len()).await;
    assert_eq!(BTreeSet::from_iter(ran), waiting);
    // Keys are held and freed with their jobs.
    let integrity = site.rowlock.operate().integrity().await.unwrap();
    assert!(integrity.is_clean(), "{integrity:?}");
}

pub async fn a_held_backlog_moves_out_of_the_way(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    let kind = Kind::new("mail").unwrap();
    site.rowlock.operate().apply(&[kind]).await.unwrap();
    let mut backlog: BTreeSet<JobId> = site.stage_many("mail", 1_500).await.into_iter().collect();
    let switch = |to: &str| {
        let sql = format!("UPDATE rowlock.kind SET switch = {to} WHERE kind = 'mail'");
        small.side.execute(&sql).unwrap();
    };
    switch("'hold'");
    let answers = site.rowlock.enqueue_many(vec![job("mail"); 1_500]).await;
    for answer in answers.unwrap() {
        assert_eq!(answer.status, Status::Held);
        backlog.extend(answer.id);
    }
    for _ in 0..5 {
        small.turn(&site, &worker, "filler").await;
        let claimed = site.claim(&worker, &["mail", "filler"], 10).await;
        assert!(claimed.is_empty(), "{claimed:?}");
    }
    assert_eq!(
        small.number("SELECT count(*) FROM rowlock.aside WHERE held"),
        backlog.len(),
        "nothing of it is left in the ring"
    );
    switch("NULL");
    let ran = drain_all(&site, &worker, &["mail"], backlog.len()).await;
    assert_eq!(BTreeSet::from_iter(ran), backlog);
    assert!(drain(&site, &worker, &["mail"], 10).await.is_empty());
}
