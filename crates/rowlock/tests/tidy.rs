//! Tidiness: what a reader may rely on without looking.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use rowlock::job::{JobState, MOVES, diagram};

use crate::plain;

pub fn trials() -> Vec<Trial> {
    vec![
        plain("tidy::files_are_short", files_are_short),
        plain("tidy::sql_is_in_sql_files_only", sql_is_in_sql_files_only),
        plain(
            "tidy::every_statement_says_its_purpose_and_is_used",
            every_statement_says_its_purpose_and_is_used,
        ),
        plain(
            "tidy::statements_make_exactly_the_moves_of_the_table",
            statements_make_exactly_the_moves_of_the_table,
        ),
        plain(
            "tidy::migrations_tell_operators_what_to_do",
            migrations_tell_operators_what_to_do,
        ),
        plain(
            "tidy::the_diagram_is_the_table_of_moves",
            the_diagram_is_the_table_of_moves,
        ),
        plain("tidy::the_traits_stay_small", the_traits_stay_small),
        plain(
            "tidy::the_library_logs_through_its_own_macros",
            the_library_logs_through_its_own_macros,
        ),
        plain(
            "tidy::every_crash_point_has_its_case",
            every_crash_point_has_its_case,
        ),
        plain(
            "tidy::every_case_that_a_promise_names_exists",
            every_case_that_a_promise_names_exists,
        ),
    ]
}

fn root() -> PathBuf {
    rowlock_testbed::repository()
}

/// Every file below a folder with this ending.
fn files(folder: &Path, ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == ending) {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(
        !found.is_empty(),
        "no .{ending} files below {}",
        folder.display()
    );
    found.sort();
    found
}

fn files_are_short() {
    let mut lengths = Vec::new();
    for (path, text) in files(&root().join("crates"), "rs") {
        let lines = text.lines().count();
        assert!(
            lines <= 500,
            "{} has {lines} lines, the limit is 500",
            path.display()
        );
        lengths.push(lines);
    }
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    let ninth = lengths[lengths.len() * 9 / 10];
    assert!(median <= 150, "the median file has {median} lines");
    assert!(ninth <= 350, "one file in ten has more than {ninth} lines");
}

fn sql_is_in_sql_files_only() {
    let verbs = [
        "SELECT ",
        "INSERT INTO ",
        "UPDATE ",
        "DELETE FROM ",
        "CREATE TABLE",
        "ALTER TABLE",
    ];
    for (path, text) in files(&root().join("crates/rowlock/src"), "rs") {
        // A unit test may look at the store from outside.
        let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
        for (n, line) in lines.enumerate() {
            let code = line.trim_start();
            let is_comment = code.starts_with("//");
            let has_sql = verbs.iter().any(|verb| code.contains(verb));
            assert!(
                is_comment || !has_sql,
                "{}:{}: {code}",
                path.display(),
                n + 1
            );
        }
    }
}

/// Those survive a subscriber that panics.
fn the_library_logs_through_its_own_macros() {
    let others = [
        "tracing::error!",
        "tracing::warn!",
        "tracing::info!",
        "tracing::debug!",
        "tracing::trace!",
        "_span!(",
        "Instrument",
    ];
    for (path, text) in files(&root().join("crates/rowlock/src"), "rs") {
        if path.ends_with("src/log.rs") {
            continue;
        }
        for (n, line) in text.lines().enumerate() {
            let found = others
                .iter()
                .any(|other| line.contains(other) && !line.contains("log::info_span!("));
            assert!(!found, "{}:{}: use crate::log", path.display(), n + 1);
        }
    }
}

fn every_crash_point_has_its_case() {
    let mut marked = BTreeSet::new();
    for (_, text) in files(&root().join("crates/rowlock/src"), "rs") {
        for rest in text.split("crash_point!(\"").skip(1) {
            marked.insert(rest.split('"').next().unwrap().to_owned());
        }
    }
    let cases = crate::crash::POINTS
        .iter()
        .map(|(point, _)| (*point).to_owned());
    assert_eq!(marked, cases.collect::<BTreeSet<_>>());
}

fn engines() -> Vec<PathBuf> {
    ["sqlite", "postgres"]
        .map(|engine| root().join("crates/rowlock/src/engine").join(engine))
        .into()
}

fn every_statement_says_its_purpose_and_is_used() {
    for engine in engines() {
        let code: String = files(&engine, "rs")
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        for (path, text) in files(&engine.join("sql"), "sql") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(
                text.starts_with("-- purpose: "),
                "{} has no purpose",
                path.display()
            );
            assert!(
                code.contains(&format!("sql!(\"{name}\")")),
                "{} is not used",
                path.display()
            );
            let statement: String = text
                .lines()
                .filter(|line| !line.starts_with("--"))
                .collect();
            let states = [
                "state = 'pending',",
                "state = 'processing',",
                "DELETE FROM main.rowlock_job ",
                "INSERT INTO main.rowlock_history",
                "INSERT INTO rowlock.history",
                "SET token = with_token",
            ]
            .iter()
            .any(|words| statement.contains(words));
            if states {
                assert!(
                    text.contains("-- moves: "),
                    "{} changes a state without saying so",
                    path.display()
                );
            }
        }
    }
}

fn statements_make_exactly_the_moves_of_the_table() {
    let name = |state: Option<JobState>| state.map_or("none", JobState::as_str);
    let table: BTreeSet<String> = MOVES
        .iter()
        .map(|step| format!("{} {} -> {}", step.verb, name(step.from), name(step.to)))
        .collect();
    for engine in engines() {
        let mut made = BTreeSet::new();
        for (path, text) in files(&engine.join("sql"), "sql") {
            for step in text
                .lines()
                .filter_map(|line| line.strip_prefix("-- moves: "))
            {
                assert!(
                    table.contains(step),
                    "{}: no such move: {step}",
                    path.display()
                );
                made.insert(step.to_owned());
            }
        }
        let missing: Vec<_> = table.difference(&made).collect();
        assert!(
            missing.is_empty(),
            "{} never makes {missing:?}",
            engine.display()
        );
    }
}

fn migrations_tell_operators_what_to_do() {
    for engine in engines() {
        for (n, (path, text)) in files(&engine.join("migrations"), "sql")
            .into_iter()
            .enumerate()
        {
            let first = text.lines().next().unwrap_or_default();
            let known = [
                "-- operators: safe while workers run",
                "-- operators: stop workers first",
            ];
            assert!(known.contains(&first), "{}: {first}", path.display());
            let number = format!("{:04}_", n + 1);
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(name.starts_with(&number), "{name} is out of order");
        }
    }
}

fn the_diagram_is_the_table_of_moves() {
    let page = std::fs::read_to_string(root().join("docs/journey.md")).unwrap();
    let shown = page
        .split("```mermaid\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    assert_eq!(
        shown,
        Some(diagram().as_str()),
        "docs/journey.md shows another diagram"
    );
}

fn the_traits_stay_small() {
    let text = std::fs::read_to_string(root().join("crates/rowlock/src/engine/mod.rs")).unwrap();
    for (name, most) in [("Engine", 20), ("Operate", 12)] {
        let start = text.find(&format!("pub trait {name}:")).unwrap();
        let body = text[start..].split("\n}\n").next().unwrap();
        let methods = body.matches(" fn ").count();
        assert!(
            methods > 0 && methods <= most,
            "{name} has {methods} methods"
        );
    }
}

fn every_case_that_a_promise_names_exists() {
    let mut cases: BTreeSet<String> = crate::conformance::names().map(str::to_owned).collect();
    let mut plain = crate::sqlite::trials();
    plain.extend(crate::postgres::trials());
    plain.extend(crate::lease_protocol::trials());
    cases.extend(plain.iter().map(|trial| trial.name().to_owned()));
    cases.extend(crate::faults::names());
    cases.extend(crate::crash::names());
    cases.extend(crate::drained::names());
    cases.extend(crate::model::names());
    for page in ["docs/guarantees.md", "SECURITY.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let named: Vec<&str> = text.split('`').filter(|word| word.contains("::")).collect();
        assert!(named.len() > 10, "{page} names its cases");
        for case in named {
            let known = cases.contains(case) || is_of_the_binary(case);
            assert!(known, "{page} names {case}, which doesn't exist");
        }
    }
}

/// Whether `cli_TEST::CASE` or `cli_TEST::MODULE::CASE` is a test of the binary.
fn is_of_the_binary(case: &str) -> bool {
    let parts: Vec<&str> = case.split("::").collect();
    let (file, case) = match parts[..] {
        [test, case] => (format!("{test}.rs"), case),
        [test, module, case] => (format!("{test}/{module}.rs"), case),
        _ => return false,
    };
    let Some(file) = file.strip_prefix("cli_") else {
        return false;
    };
    let path = root().join("crates/rowlock-cli/tests").join(file);
    std::fs::read_to_string(path)
        .is_ok_and(|text| text.contains(&format!("#[test]\nfn {case}() {{")))
}
