//! Claim: due jobs, best first, and nothing else.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use std::sync::Arc;

use rowlock::claim::{Claim, QueueOrder};
use rowlock::settle::Verdict;
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{Error, JobState};
use rowlock_testbed::Process;

use super::world::{LEASE, World, ids, job, name, wanted};

pub async fn jobs_are_taken_by_priority_then_time(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let mut order = Vec::new();
    for (place, priority, early) in [(4, 0, 1), (1, 10, 2), (3, 0, 2), (2, 5, 0), (0, 10, 3)] {
        let due = world.clock.now() - Duration::from_secs(early);
        let id = site.stage(job("mail").priority(priority).at(due)).await;
        order.push((place, id));
    }
    order.sort_unstable();
    for (_, id) in &order {
        let claimed = site.claim_one(&worker, &["mail"]).await;
        assert_eq!(claimed.id, *id);
        assert_eq!(claimed.attempt, 1);
        assert_eq!(site.state(*id).await, JobState::Processing);
    }
    assert!(site.claim(&worker, &["mail"], 1).await.is_empty());
}

pub async fn a_second_claim_takes_the_second_job(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let staged = site.stage_many("mail", 5).await;
    let first = site.claim_one(&worker, &["mail"]).await;
    let second = site.claim_one(&worker, &["mail"]).await;
    assert_eq!([first.id, second.id], staged[..2]);
    assert_eq!(
        site.job(staged[0]).await.locked_by.as_deref(),
        Some(site.holder(&worker).as_str())
    );
    assert_ne!(first.token, second.token);
}

pub async fn a_job_that_came_back_is_taken_before_later_ones(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let mut staged = Vec::new();
    for _ in 0..3 {
        staged.push(site.stage(job("mail")).await);
        world.advance(Duration::from_secs(2));
    }
    let first = site.claim_one(&worker, &["mail"]).await;
    let second = site.claim_one(&worker, &["mail"]).await;
    assert_eq!([first.id, second.id], staged[..2]);
    site.settle(&first, Verdict::Release).await;
    for expected in [staged[0], staged[2]] {
        assert_eq!(site.claim_one(&worker, &["mail"]).await.id, expected);
    }
}

pub async fn priority_is_strict_across_kinds(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let low = site.stage(job("a").priority(1)).await;
    world.advance(Duration::from_secs(60));
    let high = site.stage(job("b").priority(2)).await;
    let middle = site.stage(job("a").priority(2)).await;
    let claimed = site.claim(&worker, &["a", "b"], 10).await;
    assert_eq!(ids(&claimed)[2], low);
    let mut first = ids(&claimed)[..2].to_vec();
    first.sort_unstable();
    assert_eq!(first, [high, middle]);
}

pub async fn kinds_of_equal_priority_share_a_claim(world: World) {
    let site = world.open();
    let worker = site.join().await;
    site.stage_many("flood", 500).await;
    world.advance(Duration::from_secs(1));
    let rare = site.stage_many("rare", 3).await;
    let claimed = site.claim(&worker, &["flood", "rare"], 20).await;
    assert_eq!(claimed.len(), 20);
    for id in rare {
        assert!(ids(&claimed).contains(&id), "a backlog hid job {id}");
    }
}

pub async fn jobs_due_later_do_not_hide_one_that_is_due(world: World) {
    let site = world.open();
    let worker = site.join().await;
    for priority in [5, 3] {
        let later = job("mail")
            .priority(priority)
            .delay(Duration::from_secs(60));
        site.stage(later).await;
    }
    let due = site.stage(job("mail").priority(-1)).await;
    assert_eq!(ids(&site.claim(&worker, &["mail"], 10).await), [due]);
}

pub async fn an_unknown_kind_is_never_claimed(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let unknown = site.stage(job("unknown").priority(100)).await;
    let known = site.stage(job("known")).await;
    assert_eq!(ids(&site.claim(&worker, &["known"], 10).await), [known]);
    assert_eq!(site.state(unknown).await, JobState::Pending);
    assert_eq!(site.job(unknown).await.attempt, 0);
}

pub async fn a_hundred_thousand_unknown_jobs_cost_a_claim_nothing(world: World) {
    // A process of its own makes the claim, so that what it counts is the claim.
    let me = std::env::current_exe().unwrap();
    let stage = async |kind: &str, priority, n| {
        let site = world.open_with(rowlock::Clock::system());
        let jobs = (0..n).map(|_| job(kind).priority(priority)).collect();
        site.rowlock.enqueue_many(jobs).await.unwrap();
    };
    let cost = async || -> u64 {
        stage("known", 0, 20).await;
        let before = world.home.work_done();
        let url = world.home.url();
        let run = Process::run(Command::new(&me).args(["rival", "cost", &url]), "");
        let told = run.stdout.trim().strip_prefix("20 jobs, steps ");
        let steps = told.unwrap_or_else(|| panic!("{run:?}"));
        match (before, world.home.work_done()) {
            (Some(before), Some(after)) => after - before,
            _ => steps.parse().unwrap(),
        }
    };
    let alone = cost().await;
    assert!(alone > 0, "nothing was counted");
    for _ in 0..5 {
        stage("unknown", 0, 10_000).await;
        stage("zz_unknown", 9, 10_000).await;
    }
    let crowded = cost().await;
    assert!(
        crowded <= alone * 2 + 10,
        "a claim took {alone} steps alone and {crowded} beside 100,000 unknown jobs"
    );
}

pub async fn a_paused_queue_gives_nothing_until_it_is_resumed(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let operate = site.rowlock.operate();
    let held = site.stage(job("mail").queue(name("slow"))).await;
    let free = site.stage(job("mail")).await;
    let schedule = site.rowlock.schedule();
    let pause = Setting {
        reason: Some("too slow".to_owned()),
        ..Setting::new(Mode::Pause)
    };
    let switch = |setting| {
        let schedule = Arc::clone(&schedule);
        async move { schedule.switch(Target::Queue, &name("slow"), setting).await }
    };
    switch(Some(pause)).await.unwrap();
    assert_eq!(ids(&site.claim(&worker, &["mail"], 10).await), [free]);
    let row = &operate.queues().await.unwrap()[1];
    assert_eq!((row.queue.as_str(), row.paused), ("slow", true));
    assert_eq!(row.reason.as_deref(), Some("too slow"));
    switch(None).await.unwrap();
    assert_eq!(ids(&site.claim(&worker, &["mail"], 10).await), [held]);
    let again = switch(None).await;
    assert!(matches!(again, Err(Error::NotFound(_))));
}

pub async fn only_the_named_queues_and_within_their_caps(world: World) {
    let site = world.open();
    let worker = site.join().await;
    for _ in 0..5 {
        for queue in ["a", "b", "c"] {
            site.stage(job("mail").queue(name(queue))).await;
        }
    }
    let claim = Claim {
        queues: vec![name("a"), name("b")],
        caps: BTreeMap::from([(name("a"), 2)]),
        ..wanted(&worker, &["mail"], 100)
    };
    let claimed = site.claimed(claim).await.jobs;
    let of = |queue| {
        claimed
            .iter()
            .filter(|job| job.queue.as_str() == queue)
            .count()
    };
    assert_eq!((of("a"), of("b"), of("c")), (2, 5, 0));
}

pub async fn queues_share_fairly_strictly_or_by_weight(world: World) {
    let site = world.open();
    let worker = site.join().await;
    for queue in ["a", "b", "c"] {
        let jobs = (0..100).map(|_| job("mail").queue(name(queue))).collect();
        site.rowlock.enqueue_many(jobs).await.unwrap();
    }
    let weights = BTreeMap::from([(name("b"), 3), (name("c"), 2)]);
    for (order, expected) in [
        (QueueOrder::Fair, [10, 10, 10]),
        (QueueOrder::Strict, [0, 30, 0]),
        (QueueOrder::Weighted(weights), [5, 15, 10]),
    ] {
        let claim = Claim {
            queues: vec![name("b"), name("a"), name("c")],
            order: order.clone(),
            ..wanted(&worker, &["mail"], 30)
        };
        let claimed = site.claimed(claim).await.jobs;
        let of = |queue| {
            claimed
                .iter()
                .filter(|job| job.queue.as_str() == queue)
                .count()
        };
        assert_eq!([of("a"), of("b"), of("c")], expected, "{order:?}");
    }
    // What one queue leaves, the others get.
    site.stage(job("mail").queue(name("few"))).await;
    for other in ["empty", "few"] {
        let claim = Claim {
            queues: vec![name(other), name("a")],
            ..wanted(&worker, &["mail"], 30)
        };
        assert_eq!(site.claimed(claim).await.jobs.len(), 30, "beside {other}");
    }
}

pub async fn a_claim_says_when_the_next_job_is_due(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let soon = world.clock.now() + Duration::from_secs(10);
    site.stage(job("mail").at(soon)).await;
    site.stage(job("mail").priority(5).delay(Duration::from_secs(60)))
        .await;
    site.stage(job("unknown").delay(Duration::from_secs(1)))
        .await;
    for _ in 0..2 {
        let claimed = site.claimed(wanted(&worker, &["mail"], 10)).await;
        assert!(claimed.jobs.is_empty());
        assert_eq!(claimed.next_due, Some(soon));
    }
}

pub async fn a_given_up_worker_claims_nothing(world: World) {
    let site = world.open();
    let worker = site.join().await;
    assert_eq!(site.observe(&world, LEASE, &[]).await, 1);
    let id = site.stage(job("mail")).await;
    let refused = site.dispatch().claim(wanted(&worker, &["mail"], 10)).await;
    assert!(matches!(refused, Err(Error::LeaseLost)), "{refused:?}");
    assert_eq!(site.state(id).await, site.waiting());
    assert!(matches!(
        site.beat(&worker, &[]).await,
        Err(Error::LeaseLost)
    ));
}

pub async fn wall_time_rules_as_the_engine_says(world: World) {
    let site = world.open();
    let ahead = world
        .clock
        .shifted(jiff::SignedDuration::from_hours(1))
        .unwrap();
    let ahead = world.open_with(ahead);
    let worker = ahead.join().await;
    site.stage(job("mail").delay(Duration::from_secs(600)))
        .await;
    let early = ahead.claim(&worker, &["mail"], 1).await.len();
    match ahead.engine().capabilities().server_clock {
        true => assert_eq!(early, 0, "the server's time rules"),
        false => assert_eq!(early, 1, "each process's own time rules"),
    }
}
