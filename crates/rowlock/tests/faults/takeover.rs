//! Somebody else takes over what a silent worker held.

use rowlock::claim::ClaimedJob;
use rowlock::settle::Settled;
use rowlock::{JobState, Outcome};
use rowlock_testbed::Process;

use super::{Ground, pass};
use crate::conformance::world::job;

/// Nobody else is given up on a busy machine.
const LEASE_MS: u32 = 3_000;

pub fn a_holder_that_wakes_up_late_is_refused_whatever_it_reports(ground: &Ground) {
    let site = &ground.site;
    ground.ask(site.stage_many("mail", 5));
    // It stops itself where it holds no lock: otherwise nobody could give it up.
    let mut late = ground.late(LEASE_MS);
    late.line_with("paused at claim.committed");
    late.wait_until_stopped();
    let observer = ground.worker(LEASE_MS, 1, "other");
    ground.until(|counts| counts.pending == 5);
    let successor = ground.ask(site.join());
    let current: Vec<ClaimedJob> = (0..5)
        .map(|_| {
            ground
                .ask(site.claim_suspect(&successor, &["mail"]))
                .remove(0)
        })
        .collect();
    late.signal("CONT");
    for report in ["renew", "ack", "fail", "retry", "snooze", "release"] {
        late.line_with(&format!("{report}: LeaseLost"));
    }
    assert_eq!(late.wait().0, Some(0));
    for job in &current {
        let found = ground.ask(site.job(job.id));
        assert_eq!((found.state, found.attempt), (JobState::Processing, 1));
        assert!(found.errors.is_empty(), "{:?}", found.errors);
        let settled = ground.ask(site.finish(job, Outcome::Done));
        assert_eq!(settled, Settled::Accepted);
    }
    end(observer);
}

pub fn a_rescuer_paused_between_finding_and_giving_back_undoes_nothing(ground: &Ground) {
    let site = &ground.site;
    let id = ground.ask(site.stage(job("naps")));
    let sleeper = ground.sleeper(LEASE_MS);
    let before = ground.ask(site.rowlock.operate().workers()).unwrap();
    let pause = [("ROWLOCK_PAUSE_AT", "expire.found")];
    let mut rescuer = ground.worker_with(&pause, LEASE_MS, 1, "other");
    rescuer.line_with("paused at expire.found");
    if !ground.server_clock() {
        // Whoever could write now could do the same. Nobody else is awake.
        assert!(
            !ground.home.client().can_write(),
            "the rescuer has let go of what it found"
        );
    }
    sleeper.signal("CONT");
    if ground.server_clock() {
        // The job completes under the rescuer's hands, who finds that out.
        ground.until(|counts| counts.completed == 1);
    }
    rescuer.signal("CONT");
    if ground.server_clock() {
        // It has looked again once it beats.
        ground.until_workers(2);
        pass("0.5");
        let living = ground.ask(site.rowlock.operate().workers()).unwrap();
        assert!(
            living.iter().any(|worker| worker.id == before[0].id),
            "it was heard, and buried all the same"
        );
    }
    let counts = ground.until(|counts| counts.completed == 1);
    assert_eq!(
        (counts.pending, counts.processing, counts.failed),
        (0, 0, 0)
    );
    let found = ground.ask(site.job(id));
    assert_eq!((found.state, found.attempt), (JobState::Completed, 1));
    end(sleeper);
    end(rescuer);
}

pub fn a_process_stopped_in_the_middle_of_a_claim_costs_no_job_an_attempt(ground: &Ground) {
    let site = &ground.site;
    let ids = ground.ask(site.stage_many("quick", 50));
    // A server's claim has happened, or it hasn't: it is the answer that comes late.
    let point = match ground.server_clock() {
        true => "claim.committed",
        false => "claim.written",
    };
    let pause = [("ROWLOCK_PAUSE_AT", point)];
    let mut stopped = ground.worker_with(&pause, LEASE_MS, 4, "quick");
    stopped.line_with(&format!("paused at {point}"));
    let rival = ground.worker(LEASE_MS, 4, "quick");
    pass("7.5");
    stopped.signal("CONT");
    ground.until(|counts| counts.completed == 50);
    ground.all_done_at_once(&ids);
    end(stopped);
    end(rival);
}

fn end(process: Process) {
    process.signal("TERM");
    let (code, lines) = process.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
}
