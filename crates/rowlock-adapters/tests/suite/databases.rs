//! The example of a database host, run as a program: its queue is thrown away, and nothing is lost.

use std::collections::HashMap;
use std::process::{Command, ExitCode};

use libtest_mimic::Trial;
use rowlock::MINUTE;
use rowlock::config::Config;
use rowlock_testbed::Process;

use crate::plain;

// Its own `main` only reads the arguments, which are others here.
#[allow(dead_code)]
#[path = "../../../../examples/databases/main.rs"]
mod example;

const ROWS: usize = 300;
/// Those that the example forgets to enqueue.
const FORGOTTEN: usize = 6;
/// Those that were enqueued while nothing was claimed, so that their jobs waited.
const SURE_TO_WAIT: usize = 147;

pub fn trials() -> Vec<Trial> {
    vec![
        plain("the_database_host_loses_its_queue_and_no_work", || {
            let folder = rowlock_testbed::folder();
            let path = folder.path().join("app.db");
            run(&format!("sqlite:{}", path.display()));
            let file = rusqlite::Connection::open(path).unwrap();
            let value = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
            check_tables("rowlock_jobs", |sql| value(sql).to_string());
        }),
        plain(
            "postgres::the_database_host_loses_its_queue_and_no_work",
            || {
                let database = rowlock_testbed::Postgres::shared().database_from(None);
                run(database.url());
                let session = database.session();
                check_tables("rowlock.jobs", |sql| session.value(sql));
            },
        ),
        plain(
            "the_guide_to_pairs_says_the_same_in_both_languages",
            the_guide_to_pairs_says_the_same_in_both_languages,
        ),
    ]
}

/// `example databases URL`: is the example.
pub fn act(url: Option<&str>) -> ExitCode {
    let host = example::host(url.unwrap_or_default(), ROWS);
    crate::runtime().block_on(host).unwrap_or_else(|why| {
        eprintln!("{why}");
        ExitCode::FAILURE
    })
}

/// Runs it and believes what it prints only as far as it must be true.
fn run(url: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let ended = Process::run(command.args(["example", "databases", url]), "");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let told: HashMap<&str, Vec<usize>> = ended.stdout.lines().map(numbers).collect();
    assert_eq!(told["created"], [ROWS, FORGOTTEN], "{}", ended.stdout);
    assert!(told["thrown"][0] >= SURE_TO_WAIT, "{}", ended.stdout);
    let lost = SURE_TO_WAIT + FORGOTTEN;
    assert!(told["found"][0] >= lost, "{}", ended.stdout);
    assert_eq!(told["ready"], [ROWS, ROWS], "{}", ended.stdout);
}

/// A line's first word, and its numbers.
fn numbers(line: &str) -> (&str, Vec<usize>) {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default();
    let number = |word: &str| word.trim_end_matches(',').parse().ok();
    (first, words.filter_map(number).collect())
}

fn check_tables(jobs: &str, value: impl Fn(&str) -> String) {
    let rows = ROWS.to_string();
    for (sql, expected) in [
        (
            "SELECT count(*) FROM databases WHERE state = 'ready'",
            &*rows,
        ),
        ("SELECT count(*) FROM databases WHERE state <> 'ready'", "0"),
        (
            "SELECT count(*) FROM backup_policies WHERE last_run_at IS NOT NULL",
            &*rows,
        ),
    ] {
        assert_eq!(value(sql), expected, "{sql}");
    }
    for kind in ["create_database", "backup"] {
        let completed = format!(
            "SELECT count(DISTINCT unique_key) FROM {jobs}
             WHERE kind = '{kind}' AND state = 'completed'"
        );
        assert_eq!(value(&completed), rows, "{kind}");
    }
}

/// The first block is the whole example; each of the others is read as well.
fn the_guide_to_pairs_says_the_same_in_both_languages() {
    let path = rowlock_testbed::repository().join("docs/pairs.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let blocks = guide.split("```toml\n").skip(1);
    let read = blocks.map(|rest| {
        let (block, _) = rest.split_once("```").unwrap();
        Config::parse(block, "docs/pairs.md").unwrap()
    });
    let read: Vec<Config> = read.collect();
    let due = "SELECT database_id FROM backup_policies WHERE next_run_at <= now()";
    let [creations, backups] = example::pairs(due);
    let in_rust = [creations.every(MINUTE), backups.every(5 * MINUTE)];
    assert_eq!(read[0].pairs().unwrap(), in_rust);
}
