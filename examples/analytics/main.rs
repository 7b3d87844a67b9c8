//! Reports over the tables that everybody writes to. Eight analysts ask at once, and the budget lets one report
//! run at a time: whoever waits has no transaction open, so the server can clean up behind the writers.
//! `cargo run -p rowlock-adapters --example analytics postgres://localhost/app`
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use rowlock::engine::postgres::{Address, migrate_up};
use rowlock::guard::{Class, Guard, Policy};
use rowlock::{Budget, Name, Rowlock};
use sqlx::PgPool;

type Failed = Box<dyn std::error::Error>;

/// How many reports run now, and how many did at most.
#[derive(Default)]
struct Running {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// What was sold of each thing.
async fn report(budget: &Budget, pool: &PgPool, running: &Running) -> Result<i64, Failed> {
    budget
        .run("analytics", pool, async |tx| {
            let now = running.now.fetch_add(1, Ordering::SeqCst) + 1;
            running.most.fetch_max(now, Ordering::SeqCst);
            // The comment tells a guard whose it is, also if somebody forgets to ask for a place.
            let sold = "/* class:analytics */ SELECT sum(amount)::bigint FROM orders";
            let sum = sqlx::query_scalar(sold).fetch_one(&mut **tx).await;
            running.now.fetch_sub(1, Ordering::SeqCst);
            Ok(sum?)
        })
        .await
}

/// Fills a table with so many orders and has eight reports made of it.
pub async fn analyse(url: &str, orders: i32) -> Result<ExitCode, Failed> {
    migrate_up(&Address::parse(url)?).await?; // or: rowlock migrate up
    let rowlock = Rowlock::connect(url).await?;
    // Or [budget.analytics] max = 1 in rowlock.toml, and `rowlock apply`.
    let class = Class::new(Name::new("analytics")?, 1)?;
    rowlock.watch().declare_class(&class).await?;

    let pool = PgPool::connect(url).await?;
    let table =
        "CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, amount integer NOT NULL)";
    sqlx::query(table).execute(&pool).await?;
    sqlx::query("TRUNCATE orders").execute(&pool).await?;
    let fill = "INSERT INTO orders (amount) SELECT 5 FROM generate_series(1, $1)";
    sqlx::query(fill).bind(orders).execute(&pool).await?;
    println!("filled {orders} orders");

    let (budget, running) = (Budget::default(), Running::default());
    let ask = || report(&budget, &pool, &running);
    let eight = tokio::try_join!(ask(), ask(), ask(), ask(), ask(), ask(), ask(), ask())?;
    println!("sold for {}, says the first of 8 reports", eight.0);
    println!(
        "{} of them ran at once at most",
        running.most.load(Ordering::SeqCst)
    );
    let pins = Guard::new(&rowlock, Policy::default()).look().await?;
    let left = pins.iter().filter(|seen| seen.judged.class.is_some());
    println!("{} of them still pin the horizon", left.count());
    Ok(ExitCode::SUCCESS)
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url] = &arguments[..] else {
        eprintln!("write: analytics postgres://localhost/app");
        return ExitCode::from(2);
    };
    analyse(url, 100_000).await.unwrap_or_else(|why| {
        eprintln!("{why}");
        ExitCode::FAILURE
    })
}
