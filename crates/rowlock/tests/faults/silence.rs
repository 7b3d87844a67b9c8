//! Workers that can't be heard for a while.

use rowlock::{JobState, Outcome};

use super::{Ground, pass};
use crate::conformance::world::job;

/// Nobody is given up on a busy machine either.
const LEASE_MS: u32 = 3_000;

fn nobody_was_given_up(lines: &[String]) {
    let given_up = lines
        .iter()
        .any(|line| line.contains("lost") && !line.contains("lost 0"));
    assert!(!given_up, "{lines:#?}");
}

pub fn a_handler_that_blocks_its_thread_for_three_leases_loses_nothing(ground: &Ground) {
    let id = ground.ask(ground.site.stage(job("blocks")));
    let mut worker = ground.worker(LEASE_MS, 2, "blocks");
    let observer = ground.worker(LEASE_MS, 2, "mail");
    worker.line_with("began blocks");
    ground.until(|counts| counts.completed == 1);
    let found = ground.ask(ground.site.job(id));
    assert_eq!((found.state, found.attempt), (JobState::Completed, 1));
    for process in [worker, observer] {
        process.signal("TERM");
        let (code, lines) = process.wait();
        assert_eq!(code, Some(0));
        nobody_was_given_up(&lines);
    }
}

pub fn a_write_lock_held_for_three_leases_costs_nobody_anything(ground: &Ground) {
    let running = ground.ask(ground.site.stage(job("waits")));
    let mut worker = ground.worker(LEASE_MS, 2, "mail,waits");
    let observer = ground.worker(LEASE_MS, 2, "other");
    worker.line_with("began waits");
    ground.until_workers(2);
    let mut holder = ground.home.client();
    let quick = ground.ask(ground.site.stage(job("mail")));
    worker.line_with("began mail");
    holder.begin();
    pass("9.6");
    holder.commit();
    ground.until(|counts| counts.completed == 1);
    let found = ground.ask(ground.site.job(quick));
    assert_eq!((found.state, found.attempt), (JobState::Completed, 1));
    let found = ground.ask(ground.site.job(running));
    assert_eq!(
        (found.state, found.attempt),
        (JobState::Processing, 1),
        "no handler was cancelled"
    );
    assert_eq!(
        ground
            .ask(ground.site.rowlock.operate().workers())
            .unwrap()
            .len(),
        2
    );
    for process in [worker, observer] {
        // Two of one kind could be merged into one by the system.
        process.signal("TERM");
        process.signal("INT");
        let (code, lines) = process.wait();
        assert_eq!(code, Some(0));
        nobody_was_given_up(&lines);
    }
}

pub fn a_store_that_is_gone_stops_handlers_before_the_lease_ends(ground: &Ground) {
    goes_away(ground, "");
}

pub fn a_store_whose_log_is_gone_stops_handlers_before_the_lease_ends(ground: &Ground) {
    goes_away(ground, "-wal");
}

/// A file of the store goes away beside a running handler, and comes back.
fn goes_away(ground: &Ground, ending: &str) {
    let site = &ground.site;
    let id = ground.ask(site.stage(job("waits")));
    let mut worker = ground.worker(LEASE_MS, 2, "waits");
    worker.line_with("began waits");
    let url = ground.home.url();
    let path = format!("{}{ending}", url.strip_prefix("sqlite:").unwrap());
    let away = format!("{path}.away");
    std::fs::rename(&path, &away).unwrap();
    worker.line_with("dropped");
    // It waits for the store, and goes on as a new worker when that is back.
    std::fs::rename(&away, &path).unwrap();
    let observer = ground.worker(LEASE_MS, 1, "mail");
    worker.line_with("began waits");
    let found = ground.ask(site.job(id));
    assert_eq!((found.state, found.attempt), (JobState::Processing, 1));
    for process in [worker, observer] {
        process.signal("TERM");
        process.signal("INT");
        let (code, lines) = process.wait();
        assert_eq!(code, Some(0), "{lines:#?}");
    }
}

pub fn a_lease_lost_while_stopping_ends_the_handlers(ground: &Ground) {
    let site = &ground.site;
    let id = ground.ask(site.stage(job("waits")));
    let mut worker = ground.worker(LEASE_MS, 2, "waits");
    worker.line_with("began waits");
    // It has a minute of grace, and would wait that long for its handler.
    worker.signal("TERM");
    let workers = ground.ask(site.rowlock.operate().workers()).unwrap();
    ground.ask(site.engine().leave(&workers[0].id)).unwrap();
    worker.line_with("dropped");
    let (code, lines) = worker.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    let found = ground.ask(site.job(id));
    assert_eq!((found.state, found.attempt), (JobState::Pending, 0));
}

pub fn a_stopped_process_that_wakes_up_late_is_refused(ground: &Ground) {
    let site = &ground.site;
    let id = ground.ask(site.stage(job("naps")));
    let sleeper = ground.sleeper(LEASE_MS);
    let observer = ground.worker(LEASE_MS, 1, "mail");
    ground.until(|counts| counts.pending == 1);
    let successor = ground.ask(site.join());
    let current = ground
        .ask(site.claim_suspect(&successor, &["naps"]))
        .remove(0);
    assert_eq!(current.id, id);
    // It wakes up, finishes its nap and reports: too late.
    sleeper.signal("CONT");
    sleeper.signal("TERM");
    let (code, lines) = sleeper.wait();
    assert_eq!(code, Some(0));
    assert!(
        lines.iter().any(|line| line.contains("settled 0")),
        "{lines:#?}"
    );
    assert_eq!(
        ground.ask(site.state(id)),
        JobState::Processing,
        "the successor has it"
    );
    let settled = ground.ask(site.finish(&current, Outcome::Done));
    assert_eq!(settled, rowlock::settle::Settled::Accepted);
    observer.signal("TERM");
    observer.wait();
}
