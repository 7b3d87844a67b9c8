//! What only SQLite has: the application's own file, the schema, threads.

mod complete;
mod files;
mod golden;
pub mod home;
mod own_file;
mod pairs;
mod routes;
mod schema;

use libtest_mimic::Trial;

use crate::plain;

pub fn trials() -> Vec<Trial> {
    vec![
        plain(
            "sqlite_file::beside_a_foreign_schema_nothing_of_it_is_touched",
            own_file::beside_a_foreign_schema_nothing_of_it_is_touched,
        ),
        plain(
            "sqlite_file::the_applications_transaction_commits_both_or_neither",
            own_file::the_applications_transaction_commits_both_or_neither,
        ),
        plain(
            "sqlite_file::an_attached_file_is_refused_with_the_remedy",
            own_file::an_attached_file_is_refused_with_the_remedy,
        ),
        plain(
            "sqlite_file::a_commit_waits_for_the_disk_unless_told_otherwise",
            own_file::a_commit_waits_for_the_disk_unless_told_otherwise,
        ),
        plain(
            "sqlite_file::a_file_that_is_gone_takes_no_jobs",
            own_file::a_file_that_is_gone_takes_no_jobs,
        ),
        plain(
            "sqlite_file::a_log_that_is_gone_takes_no_jobs",
            files::a_log_that_is_gone_takes_no_jobs,
        ),
        plain(
            "sqlite_file::a_log_that_is_gone_behind_a_link_takes_no_jobs",
            files::a_log_that_is_gone_behind_a_link_takes_no_jobs,
        ),
        plain(
            "sqlite_file::a_log_that_another_program_has_cut_takes_no_jobs",
            files::a_log_that_another_program_has_cut_takes_no_jobs,
        ),
        plain(
            "sqlite_file::a_log_that_sqlite_has_emptied_or_begun_again_is_a_good_one",
            files::a_log_that_sqlite_has_emptied_or_begun_again_is_a_good_one,
        ),
        plain(
            "sqlite_file::what_a_removed_log_held_is_there_after_a_clean_end",
            files::what_a_removed_log_held_is_there_after_a_clean_end,
        ),
        plain(
            "sqlite_file::a_log_that_others_have_begun_since_is_not_written_over",
            files::a_log_that_others_have_begun_since_is_not_written_over,
        ),
        plain(
            "sqlite_file::a_log_removed_during_a_commit_acknowledges_nothing",
            files::a_log_removed_during_a_commit_acknowledges_nothing,
        ),
        plain(
            "sqlite_file::a_database_that_moves_with_its_folder_or_is_restored_takes_no_jobs",
            files::a_database_that_moves_with_its_folder_or_is_restored_takes_no_jobs,
        ),
        plain(
            "sqlite_file::a_new_database_is_for_its_owner_only_and_an_old_one_stays_as_it_is",
            files::a_new_database_is_for_its_owner_only_and_an_old_one_stays_as_it_is,
        ),
        plain(
            "sqlite_file::a_missing_or_empty_file_beside_its_log_is_not_made",
            files::a_missing_or_empty_file_beside_its_log_is_not_made,
        ),
        plain(
            "sqlite_file::a_row_written_by_hand_stops_nobody",
            own_file::a_row_written_by_hand_stops_nobody,
        ),
        plain(
            "sqlite_complete::an_effect_that_was_rolled_back_is_tried_again",
            complete::an_effect_that_was_rolled_back_is_tried_again,
        ),
        plain(
            "sqlite_complete::a_late_completion_is_refused",
            complete::a_late_completion_is_refused,
        ),
        plain("sqlite_schema::is_as_recorded", golden::is_as_recorded),
        plain(
            "sqlite_schema::migrating_twice_changes_nothing",
            schema::migrating_twice_changes_nothing,
        ),
        plain(
            "sqlite_schema::rival_migrations_apply_once",
            schema::rival_migrations_apply_once,
        ),
        plain(
            "sqlite_schema::a_newer_schema_is_refused",
            schema::a_newer_schema_is_refused,
        ),
        plain(
            "sqlite_schema::a_changed_migration_is_refused",
            schema::a_changed_migration_is_refused,
        ),
        plain(
            "sqlite_schema::a_file_without_tables_is_refused_with_the_remedy",
            schema::a_file_without_tables_is_refused_with_the_remedy,
        ),
        plain(
            "sqlite_schema::bytes_that_are_no_database_are_refused",
            schema::bytes_that_are_no_database_are_refused,
        ),
        plain(
            "sqlite_pairs::a_query_that_takes_too_long_is_stopped_and_holds_nobody_up",
            pairs::a_query_that_takes_too_long_is_stopped_and_holds_nobody_up,
        ),
        plain(
            "sqlite_pairs::a_query_that_nobody_waits_for_any_more_is_stopped",
            pairs::a_query_that_nobody_waits_for_any_more_is_stopped,
        ),
        plain(
            "sqlite_pairs::what_json_can_not_hold_is_told_with_the_remedy",
            pairs::what_json_can_not_hold_is_told_with_the_remedy,
        ),
        plain(
            "sqlite_pairs::a_row_that_breaks_a_rule_is_named_and_the_others_get_their_jobs",
            pairs::a_row_that_breaks_a_rule_is_named_and_the_others_get_their_jobs,
        ),
        plain(
            "sqlite_pairs::the_words_of_the_database_are_handed_on",
            pairs::the_words_of_the_database_are_handed_on,
        ),
        plain(
            "sqlite_pairs::rows_without_a_key_stop_no_batch",
            pairs::rows_without_a_key_stop_no_batch,
        ),
        plain(
            "sqlite_pairs::a_batch_of_several_transactions_is_counted_as_one",
            pairs::a_batch_of_several_transactions_is_counted_as_one,
        ),
        plain(
            "sqlite_pairs::an_enqueue_by_sql_that_a_switch_refuses_is_counted_once",
            pairs::an_enqueue_by_sql_that_a_switch_refuses_is_counted_once,
        ),
        plain(
            "sqlite_pairs::rows_of_another_file_need_no_tables_of_ours",
            pairs::rows_of_another_file_need_no_tables_of_ours,
        ),
        plain(
            "sqlite_pairs::a_column_that_comes_later_is_in_the_next_payload",
            pairs::a_column_that_comes_later_is_in_the_next_payload,
        ),
        plain(
            "sqlite_pairs::a_post_is_read_without_a_write",
            pairs::a_post_is_read_without_a_write,
        ),
        plain(
            "sqlite_pairs::the_remedy_makes_the_remark_go_away",
            pairs::the_remedy_makes_the_remark_go_away,
        ),
        plain(
            "sqlite_pairs::states_that_nobody_claims_are_counted",
            pairs::states_that_nobody_claims_are_counted,
        ),
        plain(
            "sqlite_routes::a_store_of_the_second_schema_is_brought_up_to_date_under_its_workers",
            routes::a_store_of_the_second_schema_is_brought_up_to_date_under_its_workers,
        ),
        plain(
            "sqlite_routes::a_route_whose_row_was_removed_keeps_what_it_sent",
            routes::a_route_whose_row_was_removed_keeps_what_it_sent,
        ),
    ]
}
