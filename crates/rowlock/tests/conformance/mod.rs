//! The one list of cases, run on every engine.

mod alike;
mod browse;
mod checkup;
mod claim;
mod claims;
mod contract;
mod cron;
mod derived;
mod held_back;
mod hostile;
mod keys;
mod lease;
mod operate;
pub mod pairs;
mod panics;
mod rivals;
mod routes;
mod settle;
mod sql_stage;
mod stage;
mod typed;
mod unique;
mod verdicts;
mod worker;
pub mod world;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use libtest_mimic::Trial;

use self::world::{Home, World};

type Case = fn(World) -> Pin<Box<dyn Future<Output = ()>>>;

macro_rules! cases {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        const CASES: &[(&str, Case)] = &[
            $($((
                concat!(stringify!($module), "::", stringify!($case)),
                |world| Box::pin($module::$case(world)),
            )),+),+
        ];
    };
}

cases! {
    alike:
        pairs_that_are_not_declared_are_not_found,
        ticks_without_rows_or_leaders_are_answered_alike,
        switches_of_what_is_unknown_are_answered_alike,
        declaring_nothing_or_the_same_twice_is_answered_alike,
        crons_that_are_unknown_or_named_twice_are_answered_alike,
        jobs_that_are_unknown_ended_or_named_twice_are_answered_alike,
        pages_past_the_end_and_empty_ranges_are_answered_alike,
        routes_that_are_unknown_or_named_twice_are_answered_alike;
    stage:
        five_jobs_wait_as_pending,
        an_immediate_job_is_immediate_at_any_time_of_day,
        a_delayed_job_waits_for_its_time,
        what_a_call_leaves_open_comes_from_the_kind_table,
        a_declaration_counts_only_while_the_kind_has_no_row,
        a_batch_is_staged_whole_or_not_at_all,
        rolled_back_staging_leaves_nothing,
        committed_staging_is_there_and_invisible_before,
        a_rejecting_switch_stores_nothing_and_says_so,
        a_holding_switch_stores_and_keeps_it_from_claims,
        an_expired_switch_is_no_switch,
        ids_rise_and_are_never_used_again;
    sql_stage:
        sql_and_call_store_the_same_job,
        sql_refuses_what_the_library_refuses,
        any_payload_is_taken_by_both_or_by_neither,
        any_name_is_taken_by_both_or_by_neither;
    hostile:
        hostile_text_is_only_text;
    keys:
        a_job_keeps_its_key_whatever_happens_to_it,
        jobs_of_one_call_have_a_key_each;
    unique:
        a_duplicate_is_answered_with_its_holder,
        a_key_until_finished_is_freed_by_every_end,
        a_key_until_start_is_freed_at_the_claim_and_not_taken_again,
        keys_belong_to_their_kind,
        a_missing_key_field_is_invalid,
        values_of_different_types_are_different_keys,
        a_long_key_is_a_key;
    claim:
        jobs_are_taken_by_priority_then_time,
        a_second_claim_takes_the_second_job,
        a_job_that_came_back_is_taken_before_later_ones,
        priority_is_strict_across_kinds,
        kinds_of_equal_priority_share_a_claim,
        jobs_due_later_do_not_hide_one_that_is_due,
        an_unknown_kind_is_never_claimed,
        a_hundred_thousand_unknown_jobs_cost_a_claim_nothing,
        a_paused_queue_gives_nothing_until_it_is_resumed,
        only_the_named_queues_and_within_their_caps,
        queues_share_fairly_strictly_or_by_weight,
        a_claim_says_when_the_next_job_is_due,
        a_given_up_worker_claims_nothing,
        wall_time_rules_as_the_engine_says;
    settle:
        done_is_final,
        not_needed_completes,
        a_failed_attempt_waits_thirty_seconds_times_its_number,
        the_last_attempt_ends_failed,
        a_snooze_gives_the_attempt_back,
        a_release_gives_the_attempt_back,
        a_late_settle_is_refused_in_every_form,
        a_late_settle_is_refused_after_a_release_gave_the_attempt_back,
        a_sent_job_is_gone,
        errors_of_all_attempts_are_kept_within_bounds,
        a_retention_of_zero_keeps_nothing,
        verdicts_of_one_call_are_judged_one_by_one,
        each_verdict_of_a_batch_has_its_own_answer;
    lease:
        a_silent_worker_is_given_up_after_a_whole_lease,
        a_job_that_cannot_be_given_back_keeps_no_other,
        a_worker_that_beats_keeps_its_jobs,
        five_hundred_jobs_claimed_ahead_are_charged_nothing,
        a_poison_job_pays_for_itself_and_ends_failed,
        a_suspect_that_never_started_pays_nothing,
        suspects_are_claimed_alone_and_a_settle_clears_the_mark,
        a_claim_whose_answer_was_lost_is_released_by_its_living_owner,
        a_lost_claim_is_missed_at_the_next_heartbeat,
        a_worker_with_its_wall_clock_an_hour_off_expires_nobody,
        an_observer_that_was_away_expires_nobody,
        a_clock_that_jumps_gives_up_nobody_alive_and_keeps_nobody_dead,
        whoever_watches_is_told_the_shortest_lease,
        rows_of_a_worker_that_somebody_removed_are_given_back,
        a_worker_that_leaves_gives_back_what_it_holds;
    routes:
        a_routed_kind_is_not_claimed_directly,
        a_routed_queue_goes_by_its_route_except_for_kinds_with_their_own,
        a_drain_claims_every_kind_of_its_route_in_bulk,
        a_route_that_changes_counts_for_what_is_not_sent,
        a_route_is_never_given_up,
        suspects_of_a_route_are_claimed_together,
        what_a_route_holds_is_listed_in_pages,
        a_cancel_and_a_pause_reach_what_was_sent,
        an_expired_verdict_marks_or_charges,
        unsent_jobs_and_their_lag_are_told,
        what_was_sent_is_counted_though_its_kind_goes_by_no_route_any_more,
        declaring_a_route_moves_kinds_and_says_so;
    operate:
        a_pending_job_is_cancelled_at_once,
        a_running_job_is_asked_to_stop_and_may_finish_first,
        a_flagged_job_of_a_dead_worker_ends_cancelled,
        a_flagged_job_gets_no_other_attempt,
        a_redrive_keeps_errors_and_gives_attempts_back,
        a_redrive_that_meets_a_live_holder_is_refused,
        a_running_job_is_not_deleted,
        pruning_takes_only_what_is_over_and_counts_exactly,
        stats_count_every_state_and_its_views,
        filters_find_what_they_name,
        what_runs_is_listed_by_its_start_and_what_ended_by_falling_number,
        kinds_are_applied_and_drift_is_named,
        a_checkup_names_what_was_left_lying_about;
    checkup:
        jobs_of_an_unknown_kind_are_counted_up_to_a_thousand,
        whoever_has_not_seen_all_that_waits_says_so,
        a_kind_of_which_one_job_runs_is_handled_however_many_wait,
        what_is_stopped_or_goes_by_a_route_is_not_unhandled;
    browse:
        a_walk_finds_every_job_once_while_jobs_come_and_end,
        a_look_ends_after_so_many_rows_and_says_where_to_go_on,
        a_page_has_what_the_filter_names,
        a_glance_counts_the_same_as_a_whole_count,
        the_newest_runs_are_told_with_how_long_they_took,
        counts_stop_at_ten_thousand,
        a_count_that_was_cut_is_exact_again_once_claims_come_so_far,
        a_count_that_was_cut_follows_what_this_process_takes_away,
        what_is_later_held_or_running_is_exact_or_said_to_be_cut,
        a_page_of_large_jobs_ends_early_and_says_where_to_go_on;
    cron:
        a_tick_makes_one_job_whoever_fires_it,
        a_leader_that_was_replaced_fires_nothing,
        missed_ticks_go_by_the_policy,
        a_long_absence_is_made_up_for_in_rounds,
        a_paused_cron_leaves_out_what_it_missed,
        a_cron_run_by_hand_keeps_its_ticks,
        a_tick_whose_key_is_held_is_answered_with_the_holder,
        a_switch_refuses_or_holds_a_tick_as_any_enqueue,
        a_cron_that_cannot_be_fired_keeps_no_other_from_it,
        the_table_of_crons_rules_until_it_is_told_to_change;
    rivals:
        rival_claims_never_share_a_job,
        rival_stages_make_one_job_per_key,
        rival_settles_are_accepted_once,
        sixteen_processes_share_ten_thousand_jobs_each_once;
    typed:
        a_typed_handler_gets_its_job_and_the_shared_state,
        an_error_means_another_attempt_and_keeps_its_words,
        a_handler_behind_a_layer_is_closed_too,
        layers_run_around_every_attempt_the_first_outermost;
    verdicts:
        a_verdict_that_cannot_be_written_holds_up_nobody,
        a_verdict_that_is_refused_for_good_runs_no_handler_without_end,
        a_verdict_that_is_always_refused_ends_with_the_last_attempt,
        a_kind_whose_verdicts_are_refused_stops_no_other;
    worker:
        a_worker_runs_what_is_due_and_ends,
        a_worker_does_not_end_while_a_retry_is_due,
        panics_and_timeouts_are_attempts,
        a_cancel_request_stops_a_running_handler,
        a_stopped_worker_gives_back_what_it_had_not_finished,
        what_a_worker_took_ahead_is_not_kept_behind_slow_jobs,
        not_even_a_few_jobs_are_kept_behind_slow_ones,
        a_worker_that_was_given_up_starts_again,
        a_worker_that_runs_once_waits_for_what_a_dead_one_held,
        a_worker_wakes_for_a_job_of_another_process,
        a_pulse_is_felt_from_the_join_until_the_worker_leaves;
    claims:
        what_a_claim_brings_after_the_lease_was_lost_is_not_run,
        suspects_are_asked_for_one_at_a_time;
    pairs:
        a_row_without_a_live_job_gets_one,
        an_enqueue_that_was_lost_is_found_and_counted,
        a_dry_tick_counts_and_changes_nothing,
        batches_go_on_from_their_key,
        keys_may_be_texts_and_several_columns,
        a_key_that_is_spelled_otherwise_is_wanted,
        shards_share_the_rows,
        a_window_is_filled_evenly,
        a_leader_that_was_replaced_writes_nothing,
        switches_hold_for_ticks;
    held_back:
        a_job_that_failed_for_good_is_held_back_for_longer_and_longer,
        a_cancelled_job_is_held_back_until_it_is_lifted,
        what_is_not_kept_is_held_back_all_the_same,
        a_key_that_no_row_can_have_is_not_noted,
        a_success_is_not_noted,
        done_twice_without_an_effect_is_held_back;
    contract:
        rows_without_a_key_of_their_own_make_a_tick_fail,
        a_row_that_can_not_become_a_job_starves_no_other,
        rows_without_a_part_of_their_key_end_no_walk,
        rows_of_another_database_come_in_bearable_parts,
        a_changed_pair_is_due_at_once,
        a_declaration_that_can_not_be_read_stops_no_other,
        a_query_that_fails_leaves_the_last_good_tick,
        a_query_that_can_not_be_keyed_is_refused,
        a_kind_is_not_changed_under_its_pair,
        declaring_again_says_what_differs,
        states_that_nobody_claims_are_named_with_their_rows,
        a_query_without_an_index_is_named_with_the_one_that_helps,
        what_is_due_by_its_time_needs_an_index_on_it,
        a_query_that_writes_is_refused_wherever_it_is_run;
    panics:
        a_subscriber_that_panics_costs_no_job_and_no_attempt,
        jobs_whose_verdicts_panic_are_given_back,
        a_worker_whose_heartbeat_panics_starts_again,
        a_claim_whose_answer_was_lost_is_let_go_at_the_next_heartbeat;
    derived:
        a_worker_derives_and_runs_what_rows_ask_for,
        a_queue_that_is_thrown_away_comes_back,
        enqueue_tick_and_retry_of_a_key_make_one_live_job,
        a_row_that_needs_nothing_any_more_is_not_worked_on,
        without_the_question_it_runs_all_the_same,
        a_handler_that_lies_is_found_out,
        a_key_is_forgotten_once_its_row_wants_nothing,
        a_failing_pair_does_not_stop_the_others,
        a_paused_pair_does_not_tick,
        rows_of_another_database_get_their_jobs,
        a_tick_that_overruns_goes_on_where_it_was,
        a_slow_question_keeps_no_job_waiting,
        a_pair_that_was_changed_or_removed_is_so_at_once;
}

/// Makes a store of its own for a case.
pub type Build = fn() -> Arc<dyn Home>;

/// One line per engine.
pub fn engines() -> Vec<(&'static str, Build)> {
    vec![
        ("sqlite", || Arc::new(crate::sqlite::home::File::new())),
        ("postgres", || Arc::new(crate::postgres::home::Own::new())),
    ]
}

/// Further ways to an engine, each for some modules of cases.
fn detours() -> Vec<(&'static str, Build, &'static [&'static str])> {
    let mut ways: Vec<(&'static str, Build)> =
        vec![(
            "pooler",
            || Arc::new(crate::postgres::pooler::Pooled::new()),
        )];
    ways.extend(crate::drained::detours());
    let journeys = ways.into_iter().map(|(way, home)| (way, home, JOURNEY));
    let published: Build = || Arc::new(crate::postgres::published::Published::new());
    journeys
        .chain([("published", published, OPERATION)])
        .collect()
}

const JOURNEY: &[&str] = &[
    "stage", "claim", "settle", "lease", "keys", "routes", "unique", "verdicts", "worker",
];

/// What changes or removes rows of every table.
const OPERATION: &[&str] = &["operate", "stage", "cron", "held_back"];

/// What a claim costs the server is counted where nobody else stays connected.
const STRAIGHT_ONLY: &str = "claim::a_hundred_thousand_unknown_jobs_cost_a_claim_nothing";

/// For a process that knows only where the store is.
pub fn home_at(url: &str) -> Arc<dyn Home> {
    match url.split_once(':').unwrap() {
        ("sqlite", path) => Arc::new(crate::sqlite::home::File::at(path)),
        ("postgres", _) => Arc::new(crate::postgres::home::Own::at(url)),
        (other, _) => panic!("no engine for {other}"),
    }
}

/// The names of the cases, without an engine.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|(name, _)| *name)
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let every = engines()
        .into_iter()
        .map(|(engine, home)| (engine, home, None));
    let some = detours()
        .into_iter()
        .map(|(detour, home, modules)| (detour, home, Some(modules)));
    for (engine, home, modules) in every.chain(some) {
        for (case, run) in CASES {
            let module = case.split("::").next().unwrap();
            if modules.is_some_and(|some| !some.contains(&module) || *case == STRAIGHT_ONLY) {
                continue;
            }
            // Whoever takes the detour goes by a route already.
            if engine.ends_with("_redis") && module == "routes" {
                continue;
            }
            trials.push(Trial::test(format!("{engine}::{case}"), move || {
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(2)
                    .enable_time()
                    .build()?;
                let home = home();
                runtime.block_on(run(World::new(Arc::clone(&home))));
                home.ended();
                Ok(())
            }));
        }
    }
    trials
}
