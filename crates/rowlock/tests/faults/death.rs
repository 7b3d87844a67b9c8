//! Processes that die, and jobs that never end well.

use rowlock::job::ErrorKind;
use rowlock::{JobId, JobState};

use super::Ground;
use crate::conformance::world::job;

/// Short where a worker dies again and again, and whoever comes next waits for its lease.
const SHORT_MS: u32 = 600;
/// Nobody loses it on a busy machine.
const LEASE_MS: u32 = 3_000;

/// Enough for the worker to measure a rate at which it claims more than 500 ahead: the poison waits
/// for that moment.
const RUN_UP: u64 = 4_000;
const OTHERS: usize = 6_000;
/// Many, so that a slow machine gets that far ahead as well.
const SLOTS: u32 = 400;

pub fn a_poison_job_ends_failed_and_its_neighbours_are_charged_nothing(ground: &Ground) {
    let site = &ground.site;
    // A run-up, so that the worker claims far ahead when it meets the poison.
    let (poison, others): (JobId, Vec<JobId>) = ground.ask(async {
        let run_up = (0..RUN_UP).map(|_| job("quick").priority(9)).collect();
        site.rowlock.enqueue_many(run_up).await.unwrap();
        let poison = job("poison").priority(5).max_attempts(3).unwrap();
        let poison = site.stage(poison).await;
        (poison, site.stage_many("quick", OTHERS).await)
    });
    let mut deaths = 0;
    while ground.ask(site.state(poison)) != JobState::Failed {
        let mut worker = ground.worker(SHORT_MS, SLOTS, "quick,poison");
        worker.line_with("began poison");
        if deaths == 0 {
            // It dies only now, with more than 500 others claimed ahead.
            worker.line_with("holds ");
        }
        let (code, _) = worker.wait();
        assert_eq!(code, None, "it was ended by a signal");
        deaths += 1;
        assert!(deaths <= 4, "it kills more often than it may");
        if deaths == 4 {
            // The last death is noticed by somebody without the poison's kind.
            let healer = ground.worker(SHORT_MS, 4, "quick");
            ground.until(|counts| counts.failed == 1);
            healer.signal("TERM");
            healer.wait();
        }
    }
    let healer = ground.worker(SHORT_MS, 4, "quick");
    ground.until(|counts| counts.completed == RUN_UP + OTHERS as u64);
    healer.signal("TERM");
    assert_eq!(healer.wait().0, Some(0));
    let found = ground.ask(site.job(poison));
    assert_eq!((found.attempt, found.errors.len()), (3, 3));
    assert!(
        found
            .errors
            .iter()
            .all(|error| error.kind == ErrorKind::Lease)
    );
    ground.all_done_at_once(&others);
}

pub fn panics_and_endless_jobs_hold_up_nobody(ground: &Ground) {
    let site = &ground.site;
    let (panics, endless) = ground.ask(async {
        let panics = site.stage(job("panics").max_attempts(3).unwrap()).await;
        let endless = site.stage(job("waits")).await;
        site.stage_many("mail", 200).await;
        (panics, endless)
    });
    let worker = ground.worker(LEASE_MS, 2, "mail,panics,waits");
    let counts = ground.until(|counts| counts.completed == 200 && counts.failed == 1);
    assert_eq!(counts.processing, 1);
    let found = ground.ask(site.job(panics));
    assert_eq!((found.state, found.attempt), (JobState::Failed, 3));
    assert_eq!(found.errors[2].kind, ErrorKind::Panic);
    ground
        .ask(site.engine().cancel(vec![endless]))
        .unwrap()
        .remove(0)
        .unwrap();
    ground.until(|counts| counts.cancelled == 1);
    worker.signal("TERM");
    assert_eq!(worker.wait().0, Some(0));
}

pub fn a_worker_without_the_kind_leaves_it_to_the_one_that_has_it(ground: &Ground) {
    let site = &ground.site;
    ground.ask(async {
        site.stage_many("rare", 50).await;
        site.stage_many("mail", 300).await;
    });
    let without = ground.worker(LEASE_MS, 4, "mail");
    let counts = ground.until(|counts| counts.completed == 300);
    assert_eq!((counts.pending, counts.failed), (50, 0), "never discarded");
    let with = ground.worker(LEASE_MS, 4, "mail,rare");
    ground.ask(site.stage_many("mail", 300));
    ground.until(|counts| counts.completed == 650);
    for worker in [without, with] {
        worker.signal("TERM");
        assert_eq!(worker.wait().0, Some(0));
    }
}
