//! A Redis that forgets, fills up, or goes away.

use super::stand::{Stand, dismiss};

const LEASE_MS: u32 = 3_000;

/// Jobs, a drain and workers that are in the middle of them.
fn in_the_middle(stand: &Stand, jobs: usize, lose: impl FnOnce()) {
    stand.stage("quick", jobs);
    let drain = stand.drain(LEASE_MS, "quick");
    stand.until_filled(|fill| fill.ready == jobs as u64);
    let workers = [(); 2].map(|()| stand.worker(LEASE_MS, 4, "quick"));
    stand.until(|counts| counts.completed >= 100);
    lose();
    stand.until(|counts| counts.completed == jobs as u64);
    // Whoever asks is told.
    stand.until_filled(|fill| fill.resent > 0);
    workers.into_iter().for_each(|worker| drop(dismiss(worker)));
    dismiss(drain);
    assert_eq!(stand.begun().len(), jobs);
    stand.judge();
}

pub fn a_flush_with_ten_thousand_jobs_in_redis_loses_none(stand: &Stand) {
    in_the_middle(stand, 10_000, || {
        stand.redis.command(&["FLUSHALL"]);
    });
}

pub fn a_restart_without_a_memory_loses_no_job(stand: &Stand) {
    in_the_middle(stand, 10_000, || {
        stand.redis.kill();
        stand.redis.restart();
    });
}

/// As from a copy: what is done is there again, and what was sent since is not.
pub fn a_redis_that_comes_back_with_an_older_memory_loses_no_job(stand: &Stand) {
    let drain = stand.drain(LEASE_MS, "quick");
    stand.stage("quick", 300);
    stand.until_filled(|fill| fill.ready == 300);
    stand.redis.command(&["SAVE"]);
    let worker = stand.worker(LEASE_MS, 4, "quick");
    stand.until(|counts| counts.completed == 300);
    dismiss(worker);
    stand.stage("quick", 300);
    stand.until_filled(|fill| fill.ready == 300 && fill.reports == 0);
    stand.redis.kill();
    stand.redis.restart();
    let worker = stand.worker(LEASE_MS, 4, "quick");
    stand.until(|counts| counts.completed == 600);
    stand.until_filled(|fill| (fill.ready, fill.taken, fill.reports) == (0, 0, 0));
    dismiss(worker);
    dismiss(drain);
    stand.judge();
}

pub fn a_full_redis_is_waited_for(stand: &Stand) {
    let full = stand.redis.command(&["INFO", "memory"]);
    let used = full
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    let used: u64 = used.unwrap().trim().parse().unwrap();
    let limit = (used + 2_500_000).to_string();
    stand.redis.command(&["CONFIG", "SET", "maxmemory", &limit]);
    stand.stage("quick", 10_000);
    let drain = stand.drain(LEASE_MS, "quick");
    rowlock_testbed::until("Redis is full", || {
        let said = stand.redis.try_command(&["SET", "one", "more"]);
        said.is_err_and(|why| why.contains("OOM")).then_some(())
    });
    let some = stand.fill().unwrap().pushed;
    assert!(some < 10_000, "it was never full");
    stand.redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let worker = stand.worker(LEASE_MS, 4, "quick");
    stand.until(|counts| counts.completed == 10_000);
    dismiss(worker);
    dismiss(drain);
    stand.judge();
}

pub fn an_evicting_redis_loses_no_job(stand: &Stand) {
    in_the_middle(stand, 3_000, || {
        // Whichever keys it takes: everything hangs on a few.
        stand
            .redis
            .command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-random"]);
        stand.redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
        rowlock_testbed::until("it evicts", || {
            let stats = stand.redis.command(&["INFO", "stats"]);
            let evicted = stats
                .lines()
                .find_map(|line| line.strip_prefix("evicted_keys:"))?;
            (evicted.trim().parse::<u64>().ok()? > 3).then_some(())
        });
        stand.redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    });
}

pub fn what_is_staged_while_redis_is_away_is_sent_after(stand: &Stand) {
    let drain = stand.drain(LEASE_MS, "quick");
    let worker = stand.worker(LEASE_MS, 4, "quick");
    stand.stage("quick", 100);
    stand.until(|counts| counts.completed == 100);
    stand.redis.kill();
    let ids = stand.stage("quick", 20_000);
    stand.redis.restart();
    stand.until(|counts| counts.completed == 20_100);
    dismiss(worker);
    dismiss(drain);
    stand.all_done_at_once(&ids);
    stand.judge();
}
