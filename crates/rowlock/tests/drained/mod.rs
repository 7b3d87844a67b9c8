//! Jobs that go by a route: real drains, real workers without a store, and a Redis that misbehaves.

mod deaths;
pub mod home;
mod losses;
mod orders;
mod sidekiq;
pub mod stand;
mod way;

use std::sync::Arc;

use libtest_mimic::Trial;

use self::home::Through;
use self::stand::Stand;
use crate::conformance::Build;

type Fault = fn(&Stand);

macro_rules! faults {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        const FAULTS: &[(&str, Fault)] = &[
            $($((stringify!($case), $module::$case)),+),+
        ];
    };
}

faults! {
    deaths:
        a_drain_killed_with_ten_thousand_jobs_in_redis_sends_none_of_them_again,
        drains_killed_again_and_again_lose_no_job,
        a_worker_killed_with_jobs_of_redis_costs_them_no_attempt,
        a_poison_job_of_redis_pays_for_itself,
        signals_give_back_what_workers_of_redis_had_taken,
        sixteen_workers_of_redis_share_ten_thousand_jobs_each_once;
    losses:
        a_flush_with_ten_thousand_jobs_in_redis_loses_none,
        a_restart_without_a_memory_loses_no_job,
        a_redis_that_comes_back_with_an_older_memory_loses_no_job,
        a_full_redis_is_waited_for,
        an_evicting_redis_loses_no_job,
        what_is_staged_while_redis_is_away_is_sent_after;
    orders:
        a_cancel_reaches_what_waits_and_what_runs,
        a_route_that_ends_strands_no_job,
        a_verdict_under_an_old_token_is_refused,
        what_may_still_arrive_is_not_sent_again;
    sidekiq:
        a_sidekiq_runs_every_committed_job_while_its_drain_dies,
        a_drain_that_dies_before_or_after_it_has_sent_sends_each_job_once;
}

/// The names of the cases, without an engine.
pub fn names() -> impl Iterator<Item = String> {
    FAULTS.iter().map(|(name, _)| format!("drained::{name}"))
}

/// The engines, with Redis between them and their workers.
pub fn detours() -> Vec<(&'static str, Build)> {
    vec![
        ("sqlite_redis", || {
            Arc::new(Through::new(Arc::new(crate::sqlite::home::File::new())))
        }),
        ("postgres_redis", || {
            Arc::new(Through::new(Arc::new(crate::postgres::home::Own::new())))
        }),
    ]
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (engine, home) in crate::conformance::engines() {
        for (name, fault) in FAULTS {
            trials.push(Trial::test(
                format!("{engine}::drained::{name}"),
                move || {
                    fault(&Stand::new(home()));
                    Ok(())
                },
            ));
        }
    }
    trials.push(crate::plain(
        "postgres::drained::what_commits_late_is_sent_all_the_same",
        orders::what_commits_late_is_sent_all_the_same,
    ));
    trials
}
