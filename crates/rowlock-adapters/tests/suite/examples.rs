//! The examples, run as programs: each makes its database, runs its job, and ends on SIGTERM.

use std::process::{Command, ExitCode};

use libtest_mimic::Trial;
use rowlock_testbed::Process;

use crate::plain;

#[path = "../../examples/diesel.rs"]
mod through_diesel;
#[path = "../../examples/diesel_async.rs"]
mod through_diesel_async;
#[path = "../../examples/diesel_postgres.rs"]
mod through_diesel_postgres;
#[path = "../../examples/rusqlite.rs"]
mod through_rusqlite;
#[path = "../../examples/sea_orm.rs"]
mod through_sea_orm;
#[path = "../../examples/sqlx.rs"]
mod through_sqlx;
#[path = "../../examples/sqlx_postgres.rs"]
mod through_sqlx_postgres;
#[path = "../../examples/tokio_postgres.rs"]
mod through_tokio_postgres;

pub fn trials() -> Vec<Trial> {
    vec![
        plain("the_example_with_sqlx_runs", || run("sqlx")),
        plain("the_example_with_diesel_runs", || run("diesel")),
        plain("the_example_with_rusqlite_runs", || run("rusqlite")),
        plain("postgres::the_example_with_tokio_postgres_runs", || {
            run_with_postgres("tokio_postgres")
        }),
        plain("postgres::the_example_with_sqlx_runs", || {
            run_with_postgres("sqlx_postgres")
        }),
        plain("postgres::the_example_with_diesel_runs", || {
            run_with_postgres("diesel_postgres")
        }),
        plain("postgres::the_example_with_diesel_async_runs", || {
            run_with_postgres("diesel_async")
        }),
        plain("postgres::the_example_with_sea_orm_runs", || {
            run_with_postgres("sea_orm")
        }),
        plain("the_readme_shows_the_example", the_readme_shows_the_example),
    ]
}

/// `example NAME`: is the example.
pub fn act(arguments: &[String]) -> ExitCode {
    let mut words = arguments.iter().map(String::as_str);
    let ended = match words.next() {
        Some("analytics") => return crate::analytics::act(words.next()),
        Some("databases") => return crate::databases::act(words.next()),
        Some("newsletter") => return crate::newsletter::act(words.next(), words.next()),
        Some("sqlx") => through_sqlx::main(),
        Some("diesel") => through_diesel::main(),
        Some("rusqlite") => through_rusqlite::main(),
        Some("tokio_postgres") => through_tokio_postgres::main(),
        Some("sqlx_postgres") => through_sqlx_postgres::main(),
        Some("diesel_postgres") => through_diesel_postgres::main(),
        Some("diesel_async") => through_diesel_async::main().map_err(|why| why as _),
        Some("sea_orm") => through_sea_orm::main(),
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

fn run_with_postgres(name: &str) {
    let database = rowlock_testbed::Postgres::shared().database_from(None);
    let mut process = Process::start(
        Command::new(std::env::current_exe().unwrap())
            .args(["example", name])
            .env("DATABASE_URL", database.url()),
    );
    process.line_with("database 7 is ready");
    process.signal("TERM");
    let (code, lines) = process.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    let states = "SELECT d.state || ' ' || j.state FROM databases AS d, rowlock.jobs AS j
                  WHERE d.id = 7 AND j.kind = 'create_database'";
    assert_eq!(database.session().value(states), "ready completed");
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
