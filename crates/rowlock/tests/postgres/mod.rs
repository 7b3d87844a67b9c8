//! What only PostgreSQL has: the ring, roles, sessions, a server that comes and goes.

pub mod home;
mod idle;
mod network;
pub mod pooler;
mod server;
mod sessions;
pub mod space;
mod stand;

use libtest_mimic::Trial;

use crate::plain;

macro_rules! trials {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        pub fn trials() -> Vec<Trial> {
            vec![$($(plain(
                concat!("postgres_", stringify!($module), "::", stringify!($case)),
                $module::$case,
            )),+),+]
        }
    };
}

trials! {
    server:
        twenty_crashes_of_the_server_lose_nothing_that_was_acknowledged,
        a_server_that_is_away_stops_handlers_before_others_begin,
        a_server_that_turned_read_only_is_waited_for;
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
        a_deadlock_of_two_callers_ends_with_a_second_try;
}
