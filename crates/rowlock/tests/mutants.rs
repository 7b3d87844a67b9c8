//! Mutants: each takes one safeguard out; the cases it names must notice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;
use rowlock::hooks::{Edit, Mutant};

use crate::plain;

fn folder() -> PathBuf {
    rowlock_testbed::repository().join("crates/rowlock/tests/mutants")
}

fn all() -> Vec<(PathBuf, Mutant)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let mutant =
            toml::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        (path, mutant)
    };
    paths.into_iter().map(read).collect()
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// What one run of a case came to.
#[derive(Clone, Copy, PartialEq)]
enum Run {
    Passed,
    Failed,
    /// The statement itself didn't run: such a mutant proves nothing.
    Broken,
}

/// The test and the case of `cli_TEST::CASE`: one of the binary `rowlock`, which is changed while the test isn't.
fn of_the_binary(case: &str) -> Option<(&str, &str)> {
    case.strip_prefix("cli_")?.split_once("::")
}

/// Runs one case, of this binary or of the tests of `rowlock`.
fn run(case: &str, mutant: Option<&Path>) -> Run {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut name = case;
    if let Some((test, of_it)) = of_the_binary(case) {
        name = of_it;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        command = Command::new(cargo);
        command
            // As scripts/mutants has built them.
            .args(["test", "--quiet", "--locked", "--workspace"])
            .args(["--all-features", "--test", test, "--"])
            .current_dir(rowlock_testbed::repository());
    } else if !case.starts_with("sqlite") && !case.starts_with("redis") {
        // One server for all of them: starting one takes longer than most cases.
        let server = rowlock_testbed::Postgres::shared();
        command.env("ROWLOCK_TEST_POSTGRES", server.admin_url());
    }
    command
        .args(["--exact", name, "--test-threads", "1"])
        .env_remove("ROWLOCK_MUTANT")
        .stdin(Stdio::null());
    if let Some(path) = mutant {
        // Whether it is caught must not depend on luck.
        command.env("ROWLOCK_MUTANT", path).env("ROWLOCK_SEED", "1");
    }
    let (passed, told) = finish(command);
    assert!(
        told.is_empty() || told.contains("1 passed") || told.contains("1 failed"),
        "there is no case {case}: {told}"
    );
    match passed {
        true => Run::Passed,
        false if BROKEN.iter().any(|words| told.contains(words)) => Run::Broken,
        false => Run::Failed,
    }
}

/// What is said of a statement that can't be changed, or that can't be run.
const BROKEN: [&str; 15] = [
    "the mutant's text is not in",
    // A script of Redis.
    "user_script",
    // SQLite and its driver.
    "syntax error",
    "no such column",
    "parameter",
    "no query solution",
    // PostgreSQL: no such column or an ambiguous one, no such function or table, types that don't
    // fit, bad definitions; as the library tells it, and as the driver does.
    ": 42601: ",
    ": 42702: ",
    ": 42703: ",
    ": 42803: ",
    ": 42804: ",
    ": 42P10: ",
    ": 42P13: ",
    "no rowlock tables, or older ones",
    "SqlState(E42",
];

/// Longer than any case takes: a mutant that makes a case hang is noticed too.
const DEADLINE: Duration = Duration::from_secs(180);

/// Whether it ended well, and what it said; nothing when it had to be ended.
fn finish(mut command: Command) -> (bool, String) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let (sender, told) = std::sync::mpsc::channel();
    let reader = std::thread::Builder::new().spawn(move || {
        let mut text = String::new();
        // The pipe closes with the process.
        let _ = stdout.read_to_string(&mut text);
        let _ = sender.send(text);
    });
    reader.unwrap();
    match told.recv_timeout(DEADLINE) {
        Ok(text) => (child.wait().unwrap().success(), text),
        Err(_) => {
            child.kill().unwrap();
            child.wait().unwrap();
            (false, String::new())
        }
    }
}

/// `suite judge [--quick] [NAME...]`: a line for each case and mutant; fails if one survives.
pub fn judge(arguments: &[String]) -> ExitCode {
    let (flags, names): (Vec<&String>, Vec<&String>) = arguments
        .iter()
        .partition(|argument| argument.starts_with("--"));
    let quick = flags.iter().any(|flag| *flag == "--quick");
    let mut survived = 0;
    let mut judged = 0;
    // Each case runs once without a mutant, however many it catches. The quick set comes after all
    // cases have passed.
    let mut healthy = BTreeMap::new();
    for (path, mutant) in all() {
        let is_named = names.is_empty() || names.contains(&&name(&path));
        if !is_named || (quick && !mutant.quick) {
            continue;
        }
        for case in &mutant.caught_by {
            let alone = *healthy
                .entry(case.clone())
                .or_insert_with(|| if quick { Run::Passed } else { run(case, None) });
            let verdict = match (run(case, Some(&path)), alone) {
                (Run::Failed, Run::Passed) => "caught",
                (Run::Passed, _) => "SURVIVED",
                (Run::Broken, _) => "BROKEN",
                (Run::Failed, _) => "FAILS ANYWAY",
            };
            judged += 1;
            survived += usize::from(verdict != "caught");
            println!("{verdict:<9} {:<34} {case}", name(&path));
        }
    }
    println!("{} of {judged} caught", judged - survived);
    match survived {
        0 if judged > 0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

pub fn trials() -> Vec<Trial> {
    vec![plain(
        "mutants::every_mutant_changes_something_and_names_cases",
        every_mutant_changes_something_and_names_cases,
    )]
}

fn every_mutant_changes_something_and_names_cases() {
    let mutants = all();
    assert!(!mutants.is_empty());
    let cases = crate::cases();
    let names: BTreeSet<&str> = cases.iter().map(Trial::name).collect();
    for (path, mutant) in mutants {
        let name = name(&path);
        assert!(!mutant.about.is_empty(), "{name}");
        assert!(!mutant.caught_by.is_empty(), "{name}");
        let mut texts = BTreeMap::new();
        for edit in &mutant.edits {
            assert_ne!(edit.find, edit.put, "{name}");
            let text = texts
                .entry((&edit.engine, &edit.statement))
                .or_insert_with(|| statement(edit));
            assert!(
                text.contains(&edit.find),
                "{name}: not in {} of {}: {}",
                edit.statement,
                edit.engine,
                edit.find
            );
            *text = text.replace(&edit.find, &edit.put);
        }
        for case in &mutant.caught_by {
            let known = names.contains(case.as_str()) || is_in_its_file(case);
            assert!(known, "{name} names {case}");
            let edited = |edit: &Edit| {
                // A store that is published is one of PostgreSQL's.
                let engine = case
                    .strip_prefix("published")
                    .map_or(case.as_str(), |_| "postgres");
                engine.starts_with(edit.engine.as_str()) || of_the_binary(case).is_some()
            };
            assert!(
                mutant.switch.is_some() || mutant.edits.iter().any(edited),
                "{name} changes nothing that {case} could notice"
            );
        }
    }
}

/// Whether a test of `rowlock` has this case.
fn is_in_its_file(case: &str) -> bool {
    let Some((test, rest)) = of_the_binary(case) else {
        return false;
    };
    let tests = rowlock_testbed::repository().join("crates/rowlock-cli/tests");
    let (file, name) = match rest.split_once("::") {
        Some((module, name)) => (tests.join(test).join(format!("{module}.rs")), name),
        None => (tests.join(format!("{test}.rs")), rest),
    };
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.contains(&format!("#[test]\nfn {name}() {{"))
}

/// The text that an edit changes.
fn statement(edit: &Edit) -> String {
    let Edit {
        engine, statement, ..
    } = edit;
    let source = rowlock_testbed::repository().join("crates/rowlock/src");
    [
        format!("engine/{engine}/sql/{statement}.sql"),
        format!("engine/{engine}/migrations/{statement}.sql"),
        format!("drain/sinks/{engine}/scripts/{statement}.lua"),
        format!("drain/sinks/sidekiq/{statement}.lua"),
    ]
    .iter()
    .find_map(|file| std::fs::read_to_string(source.join(file)).ok())
    .unwrap_or_else(|| panic!("{engine} has no statement {statement}"))
}
