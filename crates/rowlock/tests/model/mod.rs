//! Random lives of a store, compared step by step with a state machine in memory.
//!
//! Every run begins with another seed. A failure prints the seed and the shortest sequence of
//! operations that was found; `ROWLOCK_SEED=...` repeats it. `ROWLOCK_MODEL_CASES` asks for more.

mod compare;
mod life;
mod machine;
mod operation;
mod picked;
mod silence;

use std::fmt::Write as _;

use libtest_mimic::{Failed, Trial};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use rowlock::job::Token;

use self::life::Life;
use self::operation::{Operation, finale, operations};
use crate::conformance::Build;
use crate::conformance::world::World;

/// Enough to catch what the mutants named in tests/mutants take out; fewer where each takes a server's
/// time.
fn enough(engine: &str) -> u64 {
    match engine {
        "sqlite" => 50,
        _ => 20,
    }
}

/// The longest that a failing life is made shorter, in milliseconds.
const SHRINKING: u32 = 15_000;

const NAME: &str = "model::random_operations_do_what_the_state_machine_says";

/// The names of the cases, without an engine.
pub fn names() -> impl Iterator<Item = String> {
    [NAME.to_owned()].into_iter()
}

pub fn trials() -> Vec<Trial> {
    let engines = crate::conformance::engines().into_iter();
    engines
        .map(|(engine, home)| Trial::test(format!("{engine}::{NAME}"), move || lives(engine, home)))
        .collect()
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let read = text.parse();
    Some(read.unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}

fn lives(engine: &str, home: Build) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()?;
    let first = number("ROWLOCK_SEED");
    let first = first.unwrap_or_else(|| Token::random().unwrap().get().unsigned_abs());
    for n in 0..number("ROWLOCK_MODEL_CASES").unwrap_or_else(|| enough(engine)) {
        let seed = first.wrapping_add(n);
        let lived = runner(seed).run(&operations(), |operations| {
            let life = live(home, &operations);
            runtime.block_on(life).map_err(TestCaseError::fail)
        });
        lived.map_err(|why| told(seed, &why))?;
    }
    Ok(())
}

/// One life for each seed, so that a seed alone repeats a failure.
fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: 1,
        failure_persistence: None,
        // Nobody reads why a mutant failed.
        max_shrink_iters: match std::env::var_os("ROWLOCK_MUTANT") {
            None => 10_000,
            Some(_) => 0,
        },
        max_shrink_time: SHRINKING,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

async fn live(home: Build, operations: &[Operation]) -> Result<(), String> {
    let mut life = Life::begin(World::new(home())).await;
    for (n, operation) in operations.iter().chain(&finale()).enumerate() {
        let step = life.step(operation).await;
        step.map_err(|why| format!("step {}, {operation:?}: {why}", n + 1))?;
    }
    Ok(())
}

fn told(seed: u64, why: &TestError<Vec<Operation>>) -> String {
    let mut text = String::new();
    match why {
        TestError::Fail(why, operations) => {
            let _ = writeln!(text, "{why}\nthe shortest sequence that was found:");
            for (n, operation) in operations.iter().enumerate() {
                let _ = writeln!(text, "{:>4}. {operation:?}", n + 1);
            }
            let _ = writeln!(text, "and then everything is claimed");
        }
        TestError::Abort(why) => {
            let _ = writeln!(text, "{why}");
        }
    }
    text + &format!("ROWLOCK_SEED={seed} repeats it")
}
