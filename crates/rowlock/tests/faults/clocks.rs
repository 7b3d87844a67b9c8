//! A process whose wall clock is wrong.

use std::path::PathBuf;

use rowlock::JobState;
use rowlock::clock;

use super::{Ground, pass};
use crate::conformance::world::job;

/// Nobody is given up on a busy machine either.
const LEASE_MS: u32 = 3_000;
const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

/// The library that bends the wall clock of a process, and leaves its monotonic clock alone.
fn libfaketime() -> PathBuf {
    let found = std::fs::read_dir("/usr/lib").unwrap().find_map(|entry| {
        let library = entry.ok()?.path().join("faketime/libfaketime.so.1");
        library.exists().then_some(library)
    });
    found.expect("libfaketime is missing: sudo apt-get install -y faketime")
}

pub fn a_process_an_hour_off_or_set_back_expires_nobody_alive(ground: &Ground) {
    let site = &ground.site;
    let folder = rowlock_testbed::folder();
    let setting = folder.path().join("faketime");
    std::fs::write(&setting, "+3600\n").unwrap();
    let (running, later) = ground.ask(async {
        let running = site.stage(job("waits")).await;
        let soon = clock::add(site.rowlock.clock().now(), HOUR / 2);
        (running, site.stage(job("rare").at(soon)).await)
    });
    let mut worker = ground.worker(LEASE_MS, 2, "waits");
    worker.line_with("began waits");
    let library = libfaketime();
    let bent = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("FAKETIME_TIMESTAMP_FILE", setting.to_str().unwrap()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("FAKETIME_NO_CACHE", "1"),
    ];
    let mut wrong = ground.worker_with(&bent, LEASE_MS, 2, "rare,mail");
    if !ground.server_clock() {
        // Only its own due times are off: this shows that its clock really is.
        wrong.line_with(&format!("began rare {later}"));
    }
    pass("7.5");
    // In one step: it is read at every look at the clock.
    let new = folder.path().join("new");
    std::fs::write(&new, "-3600\n").unwrap();
    std::fs::rename(&new, &setting).unwrap();
    ground.ask(site.stage(job("mail")));
    wrong.line_with("began mail");
    pass("7.5");
    if ground.server_clock() {
        let found = ground.ask(site.job(later));
        assert_eq!(found.state, JobState::Pending, "it ran early");
    }
    let found = ground.ask(site.job(running));
    assert_eq!((found.state, found.attempt), (JobState::Processing, 1));
    let workers = ground.ask(site.rowlock.operate().workers()).unwrap();
    assert_eq!(workers.len(), 2, "somebody was given up");
    for process in [worker, wrong] {
        process.signal("TERM");
        process.signal("INT");
        let (code, lines) = process.wait();
        assert_eq!(code, Some(0), "{lines:#?}");
        assert!(
            lines.iter().any(|line| line.contains("lost 0")),
            "{lines:#?}"
        );
    }
}
