//! What only Redis has: jobs that a drain has sent, workers without a store, a place that forgets.

mod journey;
mod lost;
mod order;
mod sidekiq;
mod stand;
mod trouble;
mod workers;

use std::future::Future;
use std::pin::Pin;

use libtest_mimic::Trial;

use self::stand::Stand;

type Case = fn(Stand) -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! cases {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        const CASES: &[(&str, Case)] = &[
            $($((
                concat!("redis_", stringify!($module), "::", stringify!($case)),
                |stand| Box::pin($module::$case(stand)),
            )),+),+
        ];
    };
}

cases! {
    journey:
        a_job_goes_there_and_its_verdict_comes_back,
        a_verdict_keeps_its_distance_to_now,
        the_same_reports_come_until_they_are_forgotten,
        a_group_of_verdicts_may_be_forgotten_in_parts,
        a_push_that_is_made_again_changes_nothing,
        a_push_that_comes_too_late_leaves_nothing,
        a_job_that_was_sent_again_has_one_owner,
        a_worker_is_woken_by_a_push,
        a_recalled_job_comes_back_unless_somebody_has_it;
    order:
        higher_priorities_go_first_and_equals_share,
        queues_share_what_a_worker_takes,
        a_weighted_queue_gets_its_part,
        strict_queues_are_emptied_in_their_order,
        a_cap_holds_in_its_queue_only,
        suspects_are_taken_only_by_who_asks_for_them,
        kinds_and_queues_that_nobody_asked_for_stay;
    workers:
        a_dead_workers_jobs_are_bereft_and_its_verdicts_refused,
        a_released_job_goes_to_the_front,
        a_claim_whose_answer_was_lost_goes_back_with_the_next_beat,
        a_worker_that_leaves_leaves_nothing_behind,
        a_stopped_job_that_is_released_goes_back_to_the_store,
        a_body_that_can_not_be_read_stops_nobody,
        a_verdict_that_can_not_be_read_lets_its_job_run_again;
    lost:
        a_flush_is_noticed_and_everything_is_gone,
        a_restart_without_a_disk_is_noticed_and_waited_for,
        another_stores_place_is_refused,
        nothing_is_left_of_jobs_that_are_forgotten,
        whatever_key_is_thrown_away_its_jobs_are_found_and_run;
    trouble:
        a_foreign_key_is_refused_with_the_remedy,
        a_wrong_password_is_refused_and_not_shown,
        missing_rights_are_named,
        a_cluster_without_its_slots_is_waited_for,
        a_node_without_the_slot_names_the_one_that_has_it,
        a_full_redis_takes_no_jobs_and_can_be_emptied,
        a_replica_is_refused_with_the_remedy,
        an_examination_names_each_concern_and_its_remedy;
}

pub fn trials() -> Vec<Trial> {
    let trial = |(name, case): &(&'static str, Case)| {
        let case = *case;
        Trial::test(*name, move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()?;
            runtime.block_on(async move { case(Stand::new().await).await });
            Ok(())
        })
    };
    let mut trials: Vec<Trial> = CASES.iter().map(trial).collect();
    trials.extend(sidekiq::trials());
    trials
}
