//! A row and the job it needs, in one transaction of sqlx's; the job's effect and its completion
//! in another: `DATABASE_URL=postgres://localhost/app cargo run -p rowlock-adapters --example sqlx_postgres`
#![allow(clippy::print_stdout, missing_docs)]

use rowlock::engine::postgres::{Address, Postgres, migrate_up};
use rowlock::{Clock, Cx, Done, Job, Rowlock, Worker};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

#[derive(Serialize, Deserialize)]
struct CreateDatabase {
    id: i64,
}

impl Job for CreateDatabase {
    const KIND: &'static str = "create_database";
    const KEY: &'static [&'static str] = &["id"]; // one live job per id
}

struct App {
    pool: PgPool,
}

async fn create(job: CreateDatabase, cx: Cx<App>) -> rowlock::Result {
    let mut tx = cx.pool.begin().await?;
    sqlx::query("UPDATE databases SET state = 'ready' WHERE id = $1")
        .bind(job.id)
        .execute(&mut *tx)
        .await?;
    cx.complete_in(&mut tx).await?; // the effect and the job's end are one commit
    tx.commit().await?;
    println!("database {} is ready", job.id);
    Ok(Done)
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL")?;
    let address = Address::parse(&url)?;
    migrate_up(&address).await?; // or: rowlock migrate up
    let clock = Clock::system();
    let rowlock = Rowlock::with(Postgres::open(address, clock.clone()).await?, clock);
    let pool = PgPool::connect(&url).await?;
    let table = "CREATE TABLE IF NOT EXISTS databases (id bigint PRIMARY KEY, state text NOT NULL)";
    sqlx::raw_sql(table).execute(&pool).await?;

    let id = 7;
    let mut tx = pool.begin().await?;
    sqlx::query("INSERT INTO databases (id, state) VALUES ($1, 'pending')")
        .bind(id)
        .execute(&mut *tx)
        .await?;
    rowlock::enqueue(&mut tx, &CreateDatabase { id }).await?; // one commit, or neither
    tx.commit().await?;

    let app = App { pool };
    Worker::new(rowlock, app).handle(create).run().await?; // until SIGTERM or Ctrl-C
    Ok(())
}
