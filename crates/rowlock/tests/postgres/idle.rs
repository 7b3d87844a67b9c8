//! What a worker costs that has nothing to do.

use rowlock_testbed::{PgBouncer, Postgres};

use super::stand::{Stand, dismiss};
use crate::conformance::world::Home;
use crate::faults::pass;

const SECONDS: u32 = 20;

/// The transactions that a database has seen.
fn transactions(name: &str) -> u32 {
    let session = Postgres::shared().session();
    let count = session.value(&format!(
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = '{name}'"
    ));
    count.parse().unwrap()
}

pub fn an_idle_worker_asks_less_than_once_a_second() {
    let pooler = PgBouncer::start(Postgres::shared());
    let (woken, polling) = (Stand::new(), Stand::new());
    let names = [woken.name.clone(), polling.name.clone()];
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
    let before = names.each_ref().map(|name| transactions(name));
    pass(&SECONDS.to_string());
    let after = names.each_ref().map(|name| transactions(name));
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
