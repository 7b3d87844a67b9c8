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
