//! A row and the job it needs, in one transaction of SeaORM's; the job's effect and its completion
//! in another: `DATABASE_URL=postgres://localhost/app cargo run -p rowlock-adapters --example sea_orm`
#![allow(clippy::print_stdout, missing_docs)]

use rowlock::engine::postgres::{Address, Postgres, migrate_up};
use rowlock::{Clock, Cx, Done, Job, Rowlock, Worker};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, Statement, TransactionTrait};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct CreateDatabase {
    id: i64,
}

impl Job for CreateDatabase {
    const KIND: &'static str = "create_database";
    const KEY: &'static [&'static str] = &["id"]; // one live job per id
}

struct App {
    db: DatabaseConnection,
}

async fn create(job: CreateDatabase, cx: Cx<App>) -> rowlock::Result {
    let tx = cx.db.begin().await?;
    let ready = "UPDATE databases SET state = 'ready' WHERE id = $1";
    tx.execute_raw(with_id(&tx, ready, job.id)).await?;
    cx.complete_in(&tx).await?; // the effect and the job's end are one commit
    tx.commit().await?;
    println!("database {} is ready", job.id);
    Ok(Done)
}

fn with_id(on: &impl ConnectionTrait, sql: &str, id: i64) -> Statement {
    Statement::from_sql_and_values(on.get_database_backend(), sql, [id.into()])
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL")?;
    let address = Address::parse(&url)?;
    migrate_up(&address).await?; // or: rowlock migrate up
    let clock = Clock::system();
    let rowlock = Rowlock::with(Postgres::open(address, clock.clone()).await?, clock);
    let db = Database::connect(&url).await?;
    let table = "CREATE TABLE IF NOT EXISTS databases (id bigint PRIMARY KEY, state text NOT NULL)";
    db.execute_unprepared(table).await?;

    let id = 7;
    let tx = db.begin().await?;
    let pending = "INSERT INTO databases (id, state) VALUES ($1, 'pending')";
    tx.execute_raw(with_id(&tx, pending, id)).await?;
    rowlock::enqueue(&tx, &CreateDatabase { id }).await?; // one commit, or neither
    tx.commit().await?;

    let app = App { db };
    Worker::new(rowlock, app).handle(create).run().await?; // until SIGTERM or Ctrl-C
    Ok(())
}
