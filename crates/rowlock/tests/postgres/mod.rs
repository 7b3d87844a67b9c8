//! What only PostgreSQL has: the ring, roles, sessions, a server that comes and goes.

mod complete;
mod copies;
mod history;
pub mod home;
mod horizon;
mod lanes;
mod late;
mod lease;
mod ring;
mod rivals;
mod small;

use std::future::Future;
use std::pin::Pin;

use libtest_mimic::Trial;

use self::small::Small;

type Case = fn(Small) -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! cases {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        const CASES: &[(&str, Case)] = &[
            $($((
                concat!("postgres_", stringify!($module), "::", stringify!($case)),
                |small| Box::pin($module::$case(small)),
            )),+),+
        ];
    };
}

cases! {
    ring:
        a_running_job_stays_where_a_snapshot_has_it,
        an_old_snapshot_enqueues_into_a_ring_that_has_turned,
        what_still_waits_moves_on_unchanged,
        a_held_backlog_moves_out_of_the_way;
    rivals:
        nothing_is_lost_while_the_ring_turns;
    late:
        an_open_transaction_keeps_only_its_own_segment,
        a_dump_that_stays_open_stalls_nobody_and_is_named,
        a_reader_of_all_jobs_stalls_nobody_and_is_named;
    complete:
        an_effect_that_was_rolled_back_is_tried_again,
        a_late_completion_is_refused;
    lease:
        a_claim_under_way_is_given_back_with_the_rest;
    lanes:
        the_whole_range_of_priorities_is_claimed_from_high_to_low,
        three_thousand_lanes_are_served_in_order,
        a_lane_that_was_dropped_is_found_again;
    horizon:
        a_backlog_for_tomorrow_does_not_stop_the_ring;
    copies:
        a_restored_dump_goes_on,
        a_copy_without_sequences_uses_no_id_twice;
    history:
        a_day_goes_as_a_whole_and_a_reader_keeps_only_his_own;
}

pub fn trials() -> Vec<Trial> {
    let trial = |(name, case): &(&'static str, Case)| {
        let case = *case;
        Trial::test(*name, move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_time()
                .build()?;
            runtime.block_on(case(Small::new()));
            Ok(())
        })
    };
    CASES.iter().map(trial).collect()
}
