//! The example of reports under a budget, run as a program; and budgets on a connection of sqlx's.

use std::process::{Command, ExitCode};
use std::time::Duration;

use libtest_mimic::Trial;
use rowlock::guard::Class;
use rowlock::{Budget, Error, Name, Rowlock};
use rowlock_testbed::{Postgres, Process};
use sqlx::{Connection, PgConnection, PgPool};

use crate::plain;

// Its own `main` only reads the arguments, which are others here.
#[allow(dead_code)]
#[path = "../../../../examples/analytics/main.rs"]
mod example;

pub fn trials() -> Vec<Trial> {
    vec![
        plain("postgres::reports_run_one_at_a_time", run),
        plain(
            "postgres::a_connection_and_a_pool_of_sqlx_share_a_budget",
            a_connection_and_a_pool_of_sqlx_share_a_budget,
        ),
    ]
}

/// `example analytics URL`: is the example.
pub fn act(url: Option<&str>) -> ExitCode {
    let analysed = crate::runtime().block_on(example::analyse(url.unwrap_or_default(), 1_000));
    analysed.unwrap_or_else(|why| {
        eprintln!("{why}");
        ExitCode::FAILURE
    })
}

fn run() {
    let database = Postgres::shared().database_from(None);
    let mut command = Command::new(std::env::current_exe().unwrap());
    let ended = Process::run(command.args(["example", "analytics", database.url()]), "");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let told = [
        "filled 1000 orders",
        "sold for 5000, says the first of 8 reports",
        "1 of them ran at once at most",
        "0 of them still pin the horizon",
    ];
    assert_eq!(lines, told);
}

fn a_connection_and_a_pool_of_sqlx_share_a_budget() {
    crate::runtime().block_on(async {
        let database = Postgres::shared().database_from(None);
        let url = database.url();
        let address = rowlock::engine::postgres::Address::parse(url).unwrap();
        rowlock::engine::postgres::migrate_up(&address)
            .await
            .unwrap();
        let rowlock = Rowlock::connect(url).await.unwrap();
        let class = Class::new(Name::new("analytics").unwrap(), 1).unwrap();
        rowlock.watch().declare_class(&class).await.unwrap();
        let pool = PgPool::connect(url).await.unwrap();
        let mut connection = PgConnection::connect(url).await.unwrap();
        let hasty = Budget::default().wait(Duration::ZERO);
        // Another process, as it were.
        let other = Budget::default().wait(Duration::ZERO);
        let write = "CREATE TABLE report (n integer)";
        let worked = hasty.run("analytics", &mut connection, async |tx| {
            sqlx::query(write).execute(&mut **tx).await.unwrap();
            let nothing = other.run("analytics", &pool, async |_| Ok::<(), Error>(()));
            assert!(nothing.await.unwrap_err().is_transient());
            Ok::<(), Error>(())
        });
        worked.await.unwrap();
        let kept = other.run("analytics", &pool, async |tx| {
            let count = "SELECT count(*) FROM report";
            let rows: i64 = sqlx::query_scalar(count)
                .fetch_one(&mut **tx)
                .await
                .unwrap();
            Ok::<i64, Error>(rows)
        });
        assert_eq!(kept.await.unwrap(), 0);
        pool.close().await;
        connection.close().await.unwrap();
    });
}
