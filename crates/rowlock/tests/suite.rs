//! The one test binary: every case on every engine, random lives against a model,
//! the lease protocol in a model checker, faults with real processes, tidiness, mutants.
//!
//! `cargo test --test suite` runs the cases. The same binary is a rival process when it is called
//! with `rival`, and the judge of the mutants when it is called with `judge`.

// A case that isn't in its list would be dead code: it doesn't compile.
#![deny(dead_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod conformance;
mod crash;
mod drained;
mod faults;
mod lease_protocol;
mod model;
mod mutants;
mod postgres;
mod redis;
mod rival;
mod sqlite;
mod tidy;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("rival") => return rival::act(&arguments.collect::<Vec<_>>()),
        Some("judge") => return mutants::judge(&arguments.collect::<Vec<_>>()),
        _ => {}
    }
    let mut trials = cases();
    trials.extend(mutants::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Every case that a mutant may name.
fn cases() -> Vec<Trial> {
    let mut trials = conformance::trials();
    trials.extend(faults::trials());
    trials.extend(crash::trials());
    trials.extend(drained::trials());
    trials.extend(lease_protocol::trials());
    trials.extend(model::trials());
    trials.extend(postgres::trials());
    trials.extend(redis::trials());
    trials.extend(sqlite::trials());
    trials.extend(tidy::trials());
    trials
}

/// A test without a world.
fn plain(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
