//! A network that swallows answers.

use std::sync::mpsc;

use rowlock::error::Error;
use rowlock::{JobState, NewJob, Status};
use rowlock_testbed::{Postgres, Process, Proxy};

use super::stand::{Stand, dismiss};
use crate::conformance::world::{Home, job, wanted};
use crate::faults::pass;

/// A store, and a network of its own to it.
fn behind_a_proxy() -> (Stand, Proxy, String) {
    let stand = Stand::new();
    let proxy = Proxy::to(Postgres::shared().port());
    let url = proxy.url(&stand.name);
    (stand, proxy, url)
}

pub fn an_enqueue_whose_answer_was_lost_is_found_by_its_key() {
    let (stand, proxy, url) = behind_a_proxy();
    let site = stand.through(&url);
    let keyed: NewJob = job("mail").unique("order 7").unwrap();
    proxy.cut_when_client_sends(b"rowlock.stage(");
    let lost = stand.ask(site.rowlock.enqueue(&keyed)).unwrap_err();
    assert!(matches!(lost, Error::Unavailable(_)), "{lost:?}");
    proxy.wait_for_cut();
    let counts = stand
        .ask(stand.site.rowlock.operate().stats())
        .unwrap()
        .total;
    assert_eq!(counts.pending, 1, "it was committed");
    let again = stand.ask(site.rowlock.enqueue(&keyed)).unwrap();
    assert_eq!(again.status, Status::Duplicate);
    let id = again.id.unwrap();
    assert_eq!(stand.ask(stand.site.state(id)), JobState::Pending);
    let counts = stand
        .ask(stand.site.rowlock.operate().stats())
        .unwrap()
        .total;
    assert_eq!(counts.pending, 1, "there is one job");
}

pub fn an_enqueue_that_never_arrived_is_made_by_the_second_try() {
    let (stand, proxy, url) = behind_a_proxy();
    let site = stand.through(&url);
    let keyed: NewJob = job("mail").unique("order 7").unwrap();
    proxy.cut_before_client_sends(b"rowlock.stage(");
    let lost = stand.ask(site.rowlock.enqueue(&keyed)).unwrap_err();
    assert!(matches!(lost, Error::Unavailable(_)), "{lost:?}");
    let counts = stand
        .ask(stand.site.rowlock.operate().stats())
        .unwrap()
        .total;
    assert_eq!(counts.pending, 0);
    let again = stand.ask(site.rowlock.enqueue(&keyed)).unwrap();
    assert_eq!(again.status, Status::Queued);
}

pub fn a_claim_whose_answer_was_lost_is_released_by_the_next_heartbeat() {
    let (stand, proxy, url) = behind_a_proxy();
    let site = stand.through(&url);
    let ids = stand.ask(stand.site.stage_many("mail", 3));
    let worker = stand.ask(site.join());
    // The first heartbeat searches in any case.
    let beat = stand.ask(site.beat(&worker, &[])).unwrap();
    assert_eq!(beat.released, 0);
    proxy.cut_when_client_sends(b"rowlock.claim_in_levels(");
    let lost = stand.ask(site.engine().claim(wanted(&worker, &["mail"], 3)));
    assert!(matches!(lost, Err(Error::Unavailable(_))), "{lost:?}");
    proxy.wait_for_cut();
    for id in &ids {
        let found = stand.ask(stand.site.job(*id));
        assert_eq!((found.state, found.attempt), (JobState::Processing, 1));
    }
    let beat = stand.ask(site.beat(&worker, &[])).unwrap();
    assert_eq!(beat.released, 3);
    for id in &ids {
        let found = stand.ask(stand.site.job(*id));
        assert_eq!((found.state, found.attempt), (JobState::Pending, 0));
    }
    let claimed = stand.ask(site.claim(&worker, &["mail"], 3));
    assert_eq!(claimed.len(), 3);
    assert!(claimed.iter().all(|job| job.attempt == 1));
}

const LEASE_MS: u32 = 3_000;

/// Two processes say their lines, the first before the second.
fn in_order(first: (Process, &'static str), second: (Process, &'static str)) -> (Process, Process) {
    let (sender, said) = mpsc::channel();
    let ids = [first.0.id(), second.0.id()];
    for (mut process, text) in [first, second] {
        let sender = sender.clone();
        let wait = move || {
            process.line_with(text);
            sender.send(process).unwrap();
        };
        std::thread::Builder::new().spawn(wait).unwrap();
    }
    drop(sender);
    let one = said.recv().unwrap();
    if one.id() != ids[0] {
        // Nobody waits for the other one any more.
        let _ = std::process::Command::new("kill")
            .args(["-KILL", &ids[0].to_string()])
            .status();
        panic!("two handlers ran the job at once");
    }
    (one, said.recv().unwrap())
}

pub fn a_silent_network_stops_handlers_before_others_begin() {
    let (stand, proxy, url) = behind_a_proxy();
    let id = stand.ask(stand.site.stage(job("waits")));
    let mut cut_off = stand.worker(&url, LEASE_MS, "waits,mail");
    cut_off.line_with("began waits");
    let successor = stand.worker(&stand.home.url(), LEASE_MS, "waits");
    stand.until_workers(2);
    proxy.drop_packets(true);
    let (mut cut_off, successor) = in_order((cut_off, "dropped"), (successor, "began waits"));
    // Three leases in all: it has been given up for long.
    pass("6");
    proxy.drop_packets(false);
    // It goes on as a new worker.
    let mail = stand.ask(stand.site.stage(job("mail")));
    cut_off.line_with("began mail");
    stand.until(|counts| counts.completed == 1);
    stand.done_at_once(mail);
    let found = stand.ask(stand.site.job(id));
    assert_eq!((found.state, found.attempt), (JobState::Processing, 1));
    dismiss(cut_off);
    dismiss(successor);
}
