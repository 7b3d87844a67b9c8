//! What only SQLite has: the application's own file, the schema, threads.

mod complete;
mod golden;
pub mod home;
mod own_file;
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
    ]
}
