//! Staging and completing in transactions of each driver: the same cases for all of them.
//!
//! The same binary is a process to be killed when it is called with `victim`, and one of the
//! examples when it is called with `example`.

// A case that isn't in its list would be dead code: it doesn't compile.
#![deny(dead_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod analytics;
mod complete;
mod crash;
mod databases;
mod driver;
mod examples;
mod file;
mod newsletter;
mod own;
mod postgres;
mod stage;
mod through_diesel;
mod through_rusqlite;
mod through_sqlx;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};

use driver::Driver;

fn drivers() -> [Arc<dyn Driver>; 3] {
    [
        Arc::new(through_rusqlite::Rusqlite),
        Arc::new(through_sqlx::Sqlx),
        Arc::new(through_diesel::Diesel),
    ]
}

/// Lists the cases: each is run with every driver, under a name that may have a prefix.
macro_rules! cases {
    ($prefix:literal; $($module:ident: $($case:ident),*;)*) => {
        fn trials() -> Vec<Trial> {
            let mut trials = Vec::new();
            for driver in drivers() {
                $($(
                    let with = Arc::clone(&driver);
                    let name = format!(concat!($prefix, "{}::", stringify!($case)), driver.name());
                    trials.push(Trial::test(name, move || {
                        crate::runtime().block_on($module::$case(with));
                        Ok(())
                    }));
                )*)*
            }
            trials
        }
    };
}
use cases;

cases! {
    "";
    stage:
        a_commit_keeps_the_row_and_the_job,
        a_rollback_leaves_neither_the_row_nor_the_job,
        a_batch_is_staged_in_order,
        a_refused_batch_leaves_nothing_and_the_callers_row_stays,
        a_duplicate_is_answered_with_its_holder,
        a_missing_key_field_is_named,
        an_attached_file_is_refused_with_the_remedy,
        a_locked_file_means_try_again,
        every_setting_of_a_job_arrives;
    complete:
        the_effect_and_the_completion_commit_together,
        a_completion_that_was_not_committed_is_tried_again,
        a_completion_after_a_lost_lease_is_refused,
        a_completed_job_of_a_kind_that_keeps_none_is_gone,
        a_completion_beside_an_attached_store_is_refused;
    crash:
        a_process_killed_before_the_commit_leaves_neither,
        a_process_killed_after_the_commit_leaves_both;
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("victim") => return crash::victim(&arguments.collect::<Vec<_>>()),
        Some("example") => return examples::act(&arguments.collect::<Vec<_>>()),
        _ => {}
    }
    let mut trials = trials();
    trials.extend(own::trials());
    trials.extend(postgres::all());
    trials.extend(examples::trials());
    trials.extend(analytics::trials());
    trials.extend(databases::trials());
    trials.extend(newsletter::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// A test that isn't the same for every driver.
fn plain(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
