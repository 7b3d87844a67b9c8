//! Drains and workers that die.

use rowlock::JobState;
use rowlock::job::ErrorKind;

use super::stand::{Stand, dismiss, kill};
use crate::conformance::world::job;

/// Long enough that nobody is given up on a busy machine.
const LEASE_MS: u32 = 30_000;

pub fn a_drain_killed_with_ten_thousand_jobs_in_redis_sends_none_of_them_again(stand: &Stand) {
    let ids = stand.stage("quick", 10_000);
    let first = stand.drain(LEASE_MS, "quick");
    stand.until_filled(|fill| fill.ready == 10_000);
    kill(first);
    // Their verdicts wait in Redis for somebody to fetch them.
    let worker = stand.worker(LEASE_MS, 8, "quick");
    stand.until_filled(|fill| fill.reports >= 2_000);
    let second = stand.drain(LEASE_MS, "quick");
    stand.until(|counts| counts.completed == 10_000);
    stand.all_done_at_once(&ids);
    let lines = dismiss(second);
    dismiss(worker);
    assert!(
        lines.contains(&"sent 0 settled 10000 lost 0".to_owned()),
        "{lines:#?}"
    );
    assert_eq!(stand.fill().unwrap().pushed, 10_000, "sent once each");
    assert!(stand.begun().values().all(|times| *times == 1));
    stand.judge();
}

pub fn drains_killed_again_and_again_lose_no_job(stand: &Stand) {
    let worker = stand.worker(1_000, 8, "quick");
    let mut ids = Vec::new();
    for round in 1..=5 {
        let killed = stand.drain(1_000, "quick");
        ids.extend(stand.stage("quick", 1_000));
        // In the middle of something, at another moment each time.
        stand.until(|counts| counts.completed >= 200 * round);
        kill(killed);
    }
    let healer = stand.drain(1_000, "quick");
    stand.until(|counts| counts.completed == 5_000);
    dismiss(worker);
    dismiss(healer);
    for id in ids {
        assert_eq!(stand.ask(stand.site.state(id)), JobState::Completed);
    }
    stand.judge();
}

pub fn a_worker_killed_with_jobs_of_redis_costs_them_no_attempt(stand: &Stand) {
    let ids = stand.stage("waits", 5);
    let drain = stand.drain(1_000, "waits,quick");
    let mut killed = stand.worker(1_000, 5, "waits");
    for _ in 0..5 {
        killed.line_with("began waits");
    }
    kill(killed);
    let quick = stand.stage("quick", 100);
    let worker = stand.worker(1_000, 5, "quick,waits");
    stand.until(|counts| counts.completed == 100);
    for id in quick {
        assert_eq!(stand.ask(stand.site.state(id)), JobState::Completed);
    }
    // Each of them is a suspect now, and runs alone.
    rowlock_testbed::until("they were given back uncharged", || {
        let found = ids.iter().map(|id| stand.ask(stand.site.job(*id)));
        let found: Vec<_> = found.collect();
        assert!(found.iter().all(|job| job.errors.is_empty()));
        (stand.fill()?.taken == 1).then_some(())
    });
    kill(worker);
    kill(drain);
}

pub fn a_poison_job_of_redis_pays_for_itself(stand: &Stand) {
    stand.retries_at_once("poison");
    let neighbours = stand.stage("quick", 50);
    let poison = stand.ask(stand.site.stage(job("poison").max_attempts(2).unwrap()));
    let drain = stand.drain(1_000, "quick,poison");
    let mut deaths = 0;
    while stand.ask(stand.site.state(poison)) != JobState::Failed {
        let mut worker = stand.worker(1_000, 4, "quick,poison");
        // It dies of it, or it has nothing to die of.
        rowlock_testbed::until("the poison is taken, or has ended", || {
            let ended = stand.ask(stand.site.state(poison)) == JobState::Failed;
            (ended || !worker.lives()).then_some(())
        });
        match worker.lives() {
            true => kill(worker),
            false => deaths += 1,
        }
        assert!(deaths < 10, "it dies and dies");
    }
    let found = stand.ask(stand.site.job(poison));
    assert_eq!(found.attempt, 2);
    assert!(
        found
            .errors
            .iter()
            .all(|error| error.kind == ErrorKind::Lease)
    );
    let worker = stand.worker(1_000, 4, "quick");
    stand.until(|counts| counts.completed == 50);
    stand.all_done_at_once(&neighbours);
    dismiss(worker);
    dismiss(drain);
}

pub fn signals_give_back_what_workers_of_redis_had_taken(stand: &Stand) {
    let ids = stand.stage("waits", 20);
    stand.stage("quick", 2_000);
    let drain = stand.drain(5_000, "waits,quick");
    for _ in 0..2 {
        let mut worker = stand.worker(5_000, 8, "waits");
        for _ in 0..8 {
            worker.line_with("began waits");
        }
        worker.signal("TERM");
        worker.signal("INT");
        let (code, lines) = worker.wait();
        assert_eq!(code, Some(0), "{lines:#?}");
        stand.until_filled(|fill| fill.taken == 0 && fill.workers == 0);
    }
    for id in &ids {
        let found = stand.ask(stand.site.job(*id));
        // Back in Redis, as its first attempt.
        assert_eq!((found.state, found.attempt), (JobState::Processing, 1));
        assert!(found.errors.is_empty());
    }
    dismiss(drain);
    let drain = stand.drain(5_000, "waits,quick");
    let worker = stand.worker(5_000, 8, "quick");
    stand.until(|counts| counts.completed == 2_000);
    dismiss(worker);
    dismiss(drain);
    stand.judge();
}

pub fn sixteen_workers_of_redis_share_ten_thousand_jobs_each_once(stand: &Stand) {
    let ids = stand.stage("quick", 10_000);
    let drains = [(); 2].map(|()| stand.drain(LEASE_MS, "quick"));
    let workers = [(); 16].map(|()| stand.worker(LEASE_MS, 4, "quick"));
    stand.until(|counts| counts.completed == 10_000);
    workers.into_iter().for_each(|worker| drop(dismiss(worker)));
    drains.into_iter().for_each(|drain| drop(dismiss(drain)));
    stand.all_done_at_once(&ids);
    let begun = stand.begun();
    assert_eq!(begun.len(), 10_000);
    assert!(begun.values().all(|times| *times == 1), "a job ran twice");
    stand.judge();
}
