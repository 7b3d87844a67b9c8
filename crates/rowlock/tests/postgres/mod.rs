//! What only PostgreSQL has: the ring, roles, sessions, a server that comes and goes.

mod alone;
mod bell;
mod browse;
mod budget;
mod complete;
mod copies;
mod crons;
mod deeds;
mod failover;
mod golden;
mod guard;
mod history;
pub mod home;
mod horizon;
mod idle;
mod keys;
mod lanes;
mod late;
mod leaders;
mod lease;
mod moved;
mod network;
mod pairs;
pub mod pooler;
pub mod published;
mod reading;
mod refused;
mod replica;
mod ring;
mod rivals;
mod routes;
mod server;
mod sessions;
mod siege;
mod small;
pub mod space;
mod spared;
mod stand;
mod strangers;
mod traps;
mod verdicts;

use std::future::Future;
use std::pin::Pin;

use libtest_mimic::Trial;

use self::small::Small;
use crate::plain;

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
    siege:
        nothing_is_lost_under_siege;
    late:
        an_open_transaction_keeps_only_its_own_segment,
        a_dump_that_stays_open_stalls_nobody_and_is_named,
        a_reader_of_all_jobs_stalls_nobody_and_is_named;
    complete:
        an_effect_that_was_rolled_back_is_tried_again,
        a_late_completion_is_refused;
    lease:
        a_claim_under_way_is_given_back_with_the_rest,
        a_worker_that_a_failover_forgot_answers_for_no_other,
        an_older_program_gives_up_nobody_alive_when_the_clock_jumps,
        a_jump_of_the_clock_loses_nothing_and_runs_nothing_twice,
        jobs_of_one_number_end_one_after_the_other,
        ids_are_checked_when_a_connection_was_lost,
        a_worker_that_was_given_up_is_not_remembered,
        a_claim_under_way_is_given_back_by_a_worker_that_leaves,
        a_route_with_a_claim_under_way_is_not_forgotten;
    traps:
        what_others_put_into_the_search_path_runs_in_none_of_our_statements;
    verdicts:
        a_verdict_that_a_trigger_refuses_in_any_words_holds_up_no_other,
        a_row_that_cannot_be_claimed_stops_no_other_kind;
    strangers:
        a_role_without_a_grant_stops_no_job,
        the_role_of_an_application_stops_no_job,
        a_reader_of_every_table_stops_no_job;
    alone:
        a_job_alone_is_stored_like_one_among_others,
        a_prepared_enqueue_stores_what_any_other_does,
        what_speaks_against_a_job_is_seen_when_it_comes_alone,
        jobs_that_are_alike_are_answered_in_their_order_and_refused_together,
        a_kind_that_moves_to_a_closed_queue_is_seen_by_the_next_job,
        a_queue_that_is_being_switched_makes_no_kind_plain,
        a_kind_that_is_moving_to_a_closed_queue_is_not_made_plain,
        a_switch_with_an_older_snapshot_is_refused,
        a_trigger_that_was_switched_off_is_found_and_mended,
        programs_of_the_schema_before_go_on_after_the_migration;
    browse:
        a_look_reads_no_more_behind_many_rows,
        a_checkup_reads_no_more_behind_many_rows,
        a_worker_that_may_hold_more_than_is_seen_is_known;
    lanes:
        the_whole_range_of_priorities_is_claimed_from_high_to_low,
        three_thousand_lanes_are_served_in_order,
        what_comes_back_hides_nothing_that_waits_longer,
        a_claim_that_could_take_more_wants_to_be_woken,
        a_lane_that_was_dropped_is_found_again;
    bell:
        an_enqueue_that_is_not_committed_silences_no_other,
        while_a_notification_was_just_heard_no_enqueue_notifies,
        a_clock_that_was_set_back_silences_no_enqueue,
        a_worker_that_was_woken_for_nothing_looks_again_soon,
        a_worker_that_hears_nothing_asks_for_no_notification;
    horizon:
        a_backlog_for_tomorrow_does_not_stop_the_ring,
        a_backlog_that_looks_empty_is_not_sorted_for_each_claim,
        a_verdict_reads_its_own_rows_and_no_others,
        a_look_for_suspects_walks_past_no_dead_key,
        a_key_that_was_used_often_is_freed_without_a_look_at_its_past,
        a_segment_that_looks_empty_is_not_walked_for_each_verdict;
    copies:
        a_restored_dump_goes_on,
        a_copy_without_sequences_uses_no_id_twice;
    moved:
        a_verdict_finds_a_job_that_is_just_being_set_aside,
        a_verdict_ends_its_own_job_though_another_lies_in_its_place,
        an_open_completion_holds_up_nobody_else,
        a_locked_job_that_was_held_stops_no_claim,
        a_job_whose_lock_was_rolled_back_is_claimed_all_the_same,
        what_a_failed_claim_had_locked_is_taken_by_the_next,
        a_worker_that_runs_once_finds_what_its_bounds_hide,
        a_worker_that_runs_once_goes_on_behind_jobs_of_others,
        large_payloads_keep_nothing_from_moving;
    history:
        a_day_goes_as_a_whole_and_a_reader_keeps_only_his_own;
    pairs:
        an_open_enqueue_of_a_key_holds_up_only_a_tick_that_wants_it,
        a_lock_on_a_table_of_the_query_is_not_waited_for,
        uuids_are_keys,
        texts_are_keys_in_the_order_of_their_collation,
        padded_texts_are_keys,
        large_numbers_are_keys,
        long_fractions_are_keys,
        days_and_times_are_keys,
        two_columns_are_a_key,
        a_key_that_can_not_be_asked_about_is_wanted,
        rows_without_a_key_are_counted_by_ticks_of_any_length,
        a_row_that_breaks_a_rule_is_named_and_the_others_get_their_jobs,
        a_query_that_takes_too_long_is_ended_on_the_server,
        a_walk_of_a_whole_table_is_noticed_and_the_index_helps,
        a_role_without_rights_on_the_table_is_told_so,
        what_is_wrong_with_a_query_is_told_in_the_servers_words,
        a_tick_looks_for_each_key_in_the_index,
        a_store_of_the_first_schema_is_brought_up_to_date;
    reading:
        a_query_can_not_write,
        nothing_of_a_query_stays_in_the_session,
        a_query_on_another_database_can_not_write,
        a_query_behind_a_pooler_can_not_write,
        what_turns_a_row_into_json_can_not_write;
    keys:
        a_key_whose_job_is_gone_is_found_and_freed;
    refused:
        what_a_declaration_carries_is_checked,
        a_completion_without_a_token_ends_no_job,
        a_session_whose_strings_have_escapes_stages_alike,
        a_call_past_the_library_keeps_its_rules;
    routes:
        what_was_sent_keeps_no_segment_though_no_drain_runs,
        a_list_of_what_was_sent_sets_it_aside,
        a_route_whose_row_was_removed_keeps_what_it_sent,
        an_older_worker_goes_on_after_the_migration,
        a_claim_of_a_route_reads_its_own_rows_and_no_others;
    leaders:
        a_leader_that_lost_its_post_stages_nothing,
        a_long_tick_holds_up_no_beat,
        what_failed_or_was_called_off_is_left_alone,
        what_still_wants_work_is_held_back_the_second_time,
        what_a_switch_refuses_is_counted,
        rows_of_another_database_get_their_jobs,
        a_tick_of_a_cron_makes_one_job,
        an_open_enqueue_of_a_key_holds_up_no_other_row;
    crons:
        an_open_enqueue_of_a_key_holds_up_no_other_cron_and_no_other_row,
        a_leader_that_waits_for_a_key_holds_no_post;
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
    CASES.iter().map(trial).chain(with_servers()).collect()
}

macro_rules! with_servers {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        fn with_servers() -> Vec<Trial> {
            vec![$($(plain(
                concat!("postgres_", stringify!($module), "::", stringify!($case)),
                $module::$case,
            )),+),+]
        }
    };
}

with_servers! {
    golden:
        is_as_recorded,
        every_table_has_a_replica_identity,
        an_older_form_of_a_function_is_one_thing_with_the_newer;
    lease:
        a_claim_under_an_old_snapshot_takes_one_transaction_number_and_an_empty_one_none;
    published:
        a_subscriber_of_every_table_has_the_same_rows;
    guard:
        everything_that_pins_the_horizon_is_named,
        a_standby_with_feedback_is_named,
        only_what_is_too_old_is_ended,
        a_cancel_ends_what_runs_and_not_what_is_idle,
        our_own_sessions_are_never_touched,
        maintenance_of_superusers_is_left_alone,
        the_youngest_beyond_a_budget_are_ended,
        a_transaction_that_has_ended_meanwhile_is_left_alone,
        a_guard_looks_again_and_again_until_it_is_asked_to_stop,
        classes_are_kept_for_everybody;
    spared:
        maintenance_of_any_role_is_left_alone,
        a_name_alone_spares_nobody,
        a_comment_does_not_evade_a_budget,
        behind_a_pooler_a_shared_session_is_not_ours,
        a_refusal_is_told_from_a_server_that_is_away,
        two_looks_tell_what_an_hour_costs;
    budget:
        whoever_waits_pins_nothing,
        no_more_run_at_once_than_the_budget_says,
        within_a_process_whoever_came_first_goes_first,
        processes_share_a_budget,
        a_holder_that_was_ended_frees_its_place,
        a_process_that_was_killed_frees_its_place,
        whoever_gets_no_place_in_time_is_told_what_to_do,
        what_was_done_is_kept_unless_the_work_failed,
        a_place_is_had_by_a_transaction_that_only_reads,
        a_class_that_grows_has_more_places;
    deeds:
        neither_a_stranger_nor_the_application_stops_the_store;
    server:
        twenty_crashes_of_the_server_lose_nothing_that_was_acknowledged,
        a_server_that_is_away_stops_handlers_before_others_begin,
        a_server_that_turned_read_only_is_waited_for;
    failover:
        a_job_keeps_its_key_over_a_promotion_and_one_with_its_number_has_another,
        four_workers_go_on_behind_a_standby_that_was_three_seconds_behind,
        a_synchronous_standby_loses_nothing_and_repeats_nothing;
    network:
        an_enqueue_whose_answer_was_lost_is_found_by_its_key,
        an_enqueue_that_never_arrived_is_made_by_the_second_try,
        a_claim_whose_answer_was_lost_is_released_by_the_next_heartbeat,
        a_silent_network_stops_handlers_before_others_begin;
    pooler:
        nothing_of_a_session_is_left_behind,
        a_worker_finds_work_without_being_woken;
    idle:
        an_idle_worker_asks_less_than_once_a_second,
        a_worker_that_beats_often_still_looks_when_a_job_is_due;
    space:
        a_full_disk_takes_no_job_and_loses_none;
    sessions:
        sessions_ended_by_force_lose_nothing,
        listening_comes_back_after_its_session_was_ended,
        a_worker_whose_listening_session_was_ended_still_finds_work,
        a_limit_on_statements_holds_up_nobody_for_good,
        a_stricter_isolation_of_the_database_changes_nothing,
        a_deadlock_of_two_callers_ends_with_a_second_try,
        a_caller_with_an_older_snapshot_tries_its_transaction_again;
}
