//! What a worker costs that has nothing to do.

use std::time::Duration;

use rowlock::JobState;
use rowlock_testbed::{PgBouncer, Postgres};

use super::stand::{Stand, dismiss};
use crate::conformance::world::{Home, job};
use crate::faults::pass;

const SECONDS: usize = 20;

/// The statements that a database has seen, each of them a transaction.
fn statements(server: &Postgres, name: &str) -> usize {
    let of_database = format!("{name} LOG:  ");
    let log = server.log();
    let lines = log
        .lines()
        .filter_map(|line| line.strip_prefix(&of_database));
    lines
        .filter(|line| line.starts_with("execute") || line.starts_with("statement"))
        .count()
}

pub fn an_idle_worker_asks_less_than_once_a_second() {
    // Its statistics are too late: sessions report up to ten seconds after the fact.
    let server = Postgres::start_own();
    server.set("log_line_prefix = '%d '\nlog_statement = all");
    let pooler = PgBouncer::start(&server);
    let (woken, polling) = (Stand::on(&server), Stand::on(&server));
    let names = [&woken.name, &polling.name];
    // As by default: a lease of half a minute.
    let workers = [
        woken.worker(&woken.home.url(), 30_000, "mail"),
        polling.worker(&pooler.url(&polling.name), 30_000, "mail"),
    ];
    for stand in [&woken, &polling] {
        stand.until_workers(1);
    }
    // Only the workers are counted, once they have calmed down: nobody else asks anything here.
    pass("5");
    let before = names.map(|name| statements(&server, name));
    pass(&SECONDS.to_string());
    let after = names.map(|name| statements(&server, name));
    let [by_bell, by_clock] = [after[0] - before[0], after[1] - before[1]];
    println!("transactions in {SECONDS} s: {by_bell} when woken, {by_clock} when polling");
    for worker in workers {
        dismiss(worker);
    }
    // None at all would be no worker: it has to beat.
    assert!(by_bell > 0 && by_bell < SECONDS, "{by_bell} in {SECONDS} s");
    assert!(
        by_clock > 0 && by_clock < 2 * SECONDS,
        "{by_clock} in {SECONDS} s"
    );
}

pub fn a_worker_that_beats_often_still_looks_when_a_job_is_due() {
    let stand = Stand::new();
    let mut worker = stand.worker(&stand.home.url(), 500, "mail");
    // Longer than the pause between two beats; nobody rings when its time has come.
    let delayed = job("mail").delay(Duration::from_secs(2));
    let id = stand.ask(stand.site.stage(delayed));
    worker.line_with("began mail");
    stand.until(|counts| counts.completed == 1);
    assert_eq!(stand.ask(stand.site.state(id)), JobState::Completed);
    dismiss(worker);
}
