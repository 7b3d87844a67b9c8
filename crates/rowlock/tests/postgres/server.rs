//! A server that crashes, that is away, or that takes no writes.

use rowlock::JobState;
use rowlock::error::Error;
use rowlock::verify::{self, RanLog, ToldLog};
use rowlock_testbed::{Postgres, Process, Stop, folder};

use super::stand::{Stand, dismiss, rival};
use crate::conformance::world::{Home, job};

const LEASE_MS: u32 = 3_000;

pub fn twenty_crashes_of_the_server_lose_nothing_that_was_acknowledged() {
    const CRASHES: usize = 20;
    let server = Postgres::start_own();
    let stand = Stand::on(&server);
    let logs = folder();
    let log = |name: &str| logs.path().join(name).display().to_string();
    let (url, told, ran) = (stand.home.url(), log("told"), log("ran"));
    let workers = [(); 2].map(|()| {
        let role = ["work", &url, "2000", "4", "quick,stumbles,naps", &ran];
        let mut worker = Process::start(&mut rival(&role));
        worker.line_with("ready");
        worker
    });
    let mut producer = Process::start(&mut rival(&["insist", &url, &told]));
    let mut completed = 0;
    for _ in 0..CRASHES {
        // Both sides have something under way.
        producer.line_with("told");
        completed = stand.until(|counts| counts.completed > completed).completed;
        server.restart(Stop::Immediate);
    }
    producer.line_with("told");
    producer.signal("TERM");
    let (code, lines) = producer.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    stand.until(|counts| counts.pending + counts.processing == 0);
    for worker in workers {
        dismiss(worker);
    }
    let told = ToldLog::read(told).unwrap();
    let ran = RanLog::read(ran).unwrap();
    let report = stand.ask(verify::check(
        stand.site.rowlock.operate(),
        Some(&told),
        Some(&ran),
    ));
    let report = report.unwrap();
    let lines: Vec<String> = report.checked.iter().map(ToString::to_string).collect();
    assert!(report.is_clean() && report.lost == 0, "{lines:#?}");
    assert!(
        told.enqueued() >= CRASHES * 20,
        "the producer was told too little"
    );
    assert!(report.ended >= told.enqueued() as u64, "{lines:#?}");
}

pub fn a_server_that_is_away_stops_handlers_before_others_begin() {
    let server = Postgres::start_own();
    let stand = Stand::on(&server);
    let url = stand.home.url();
    let id = stand.ask(stand.site.stage(job("waits")));
    let mut worker = stand.worker(&url, LEASE_MS, "waits");
    worker.line_with("began waits");
    server.stop(Stop::Fast);
    worker.line_with("dropped");
    server.start();
    // It goes on as a new worker, and takes up what the old one had left.
    worker.line_with("began waits");
    let found = stand.ask(stand.site.job(id));
    assert_eq!((found.state, found.attempt), (JobState::Processing, 1));
    dismiss(worker);
}

pub fn a_server_that_turned_read_only_is_waited_for() {
    let server = Postgres::start_own();
    let stand = Stand::on(&server);
    let url = stand.home.url();
    let mut worker = stand.worker(&url, LEASE_MS, "waits,mail");
    stand.ask(stand.site.stage(job("waits")));
    worker.line_with("began waits");
    server.set("default_transaction_read_only = on");
    let refused = stand
        .ask(stand.site.rowlock.enqueue(&job("mail")))
        .unwrap_err();
    assert!(
        matches!(&refused, Error::Unreachable(why) if why.contains("target_session_attrs=read-write")),
        "{refused:?}"
    );
    // A standby's heartbeat is worth nothing either.
    worker.line_with("dropped");
    server.set("default_transaction_read_only = off");
    stand.ask(stand.site.stage(job("mail")));
    worker.line_with("began mail");
    let lines = dismiss(worker);
    assert!(
        lines.iter().filter(|line| line.contains("ready")).count() == 1,
        "{lines:#?}"
    );
    let counts = stand
        .ask(stand.site.rowlock.operate().stats())
        .unwrap()
        .total;
    assert_eq!((counts.completed, counts.failed), (1, 0));
}
