//! The examples, run as programs: each makes its database, runs its job, and ends on SIGTERM.

use std::process::{Command, ExitCode};

use libtest_mimic::Trial;
use rowlock_testbed::Process;

use crate::plain;

#[path = "../../examples/diesel.rs"]
mod through_diesel;
#[path = "../../examples/rusqlite.rs"]
mod through_rusqlite;
#[path = "../../examples/sqlx.rs"]
mod through_sqlx;

pub fn trials() -> Vec<Trial> {
    vec![
        plain("the_example_with_sqlx_runs", || run("sqlx")),
        plain("the_example_with_diesel_runs", || run("diesel")),
        plain("the_example_with_rusqlite_runs", || run("rusqlite")),
        plain("the_readme_shows_the_example", the_readme_shows_the_example),
    ]
}

/// `example NAME`: is the example.
pub fn act(name: Option<&str>) -> ExitCode {
    let ended = match name {
        Some("sqlx") => through_sqlx::main(),
        Some("diesel") => through_diesel::main(),
        Some("rusqlite") => through_rusqlite::main(),
        _ => return ExitCode::FAILURE,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str) {
    let folder = rowlock_testbed::folder();
    let mut process = Process::start(
        Command::new(std::env::current_exe().unwrap())
            .args(["example", name])
            .current_dir(folder.path()),
    );
    process.line_with("database 7 is ready");
    process.signal("TERM");
    let (code, lines) = process.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    let file = rusqlite::Connection::open(folder.path().join("app.db")).unwrap();
    let found: (String, String) = file
        .query_row(
            "SELECT d.state, j.state FROM databases AS d, rowlock_jobs AS j
             WHERE d.id = 7 AND j.kind = 'create_database'",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    assert_eq!(found, ("ready".to_owned(), "completed".to_owned()));
}

/// Code without layout: no comments, no white space, no commas.
fn bare(code: &str) -> String {
    let lines = code.lines().map(|line| match line.split_once("//") {
        Some((code, _)) => code,
        None => line,
    });
    let layout = |letter: char| letter.is_whitespace() || letter == ',';
    lines.collect::<String>().replace(layout, "")
}

fn the_readme_shows_the_example() {
    let readme = std::fs::read_to_string(rowlock_testbed::repository().join("README.md")).unwrap();
    let (_, rest) = readme.split_once("```rust\n").unwrap();
    let (block, _) = rest.split_once("```").unwrap();
    let example = bare(include_str!("../../examples/sqlx.rs"));
    for part in block.split("\n\n") {
        assert!(example.contains(&bare(part)), "not in the example:\n{part}");
    }
}
