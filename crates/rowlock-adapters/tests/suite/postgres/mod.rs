//! The same with PostgreSQL: the same cases for each of its drivers.

mod complete;
mod driver;
mod own;
mod stage;
pub mod store;
mod through_diesel;
mod through_diesel_async;
mod through_sea_orm;
mod through_sqlx;
mod through_tokio_postgres;

use std::sync::Arc;

use libtest_mimic::Trial;

use driver::Driver;

fn drivers() -> [Arc<dyn Driver>; 5] {
    [
        Arc::new(through_tokio_postgres::TokioPostgres),
        Arc::new(through_sqlx::Sqlx),
        Arc::new(through_diesel::Diesel),
        Arc::new(through_diesel_async::DieselAsync),
        Arc::new(through_sea_orm::SeaOrm),
    ]
}

crate::cases! {
    "postgres::";
    stage:
        nobody_sees_the_row_or_the_job_before_the_commit,
        a_rollback_leaves_neither_the_row_nor_the_job,
        a_batch_is_staged_in_order,
        a_refused_batch_leaves_nothing,
        a_duplicate_is_answered_with_its_holder,
        a_missing_key_field_is_named,
        a_database_without_our_tables_is_refused_with_the_remedy,
        a_lock_that_is_not_to_be_had_means_try_again,
        a_transaction_that_has_failed_is_refused_with_the_remedy,
        every_setting_of_a_job_arrives;
    complete:
        the_effect_and_the_completion_commit_together,
        a_completion_that_was_not_committed_is_tried_again,
        a_completion_after_a_lost_lease_is_refused,
        a_job_that_was_set_aside_is_completed,
        an_old_snapshot_means_try_again_and_not_a_lost_lease,
        a_completed_job_of_a_kind_that_keeps_none_is_gone;
}

pub fn all() -> Vec<Trial> {
    let mut all = trials();
    all.extend(own::trials());
    all
}
