//! A row and the job it needs, in one transaction of sqlx's: `cargo run -p rowlock-adapters --example sqlx`
#![allow(clippy::print_stdout, missing_docs)]

use rowlock::engine::sqlite::{Address, migrate_up};
use rowlock::{Clock, Cx, Done, Job, MINUTE, Pair, Rowlock, Worker};
use serde::{Deserialize, Serialize};
use sqlx::SqlitePool;

#[derive(Serialize, Deserialize)]
struct CreateDatabase {
    id: i64,
}

impl Job for CreateDatabase {
    const KIND: &'static str = "create_database";
    const KEY: &'static [&'static str] = &["id"]; // one live job per id
}

async fn create(job: CreateDatabase, cx: Cx<App>) -> rowlock::Result {
    cx.cloud.create(job.id).await?; // an error means: try again later
    cx.db.mark_ready(job.id).await?;
    Ok(Done)
}

struct App {
    cloud: Cloud,
    db: Db,
}

struct Cloud;

impl Cloud {
    async fn create(&self, id: i64) -> std::io::Result<()> {
        println!("creating database {id}");
        Ok(())
    }
}

struct Db(SqlitePool);

impl Db {
    async fn mark_ready(&self, id: i64) -> sqlx::Result<()> {
        let ready = "UPDATE databases SET state = 'ready' WHERE id = $1";
        sqlx::query(ready).bind(id).execute(&self.0).await?;
        println!("database {id} is ready");
        Ok(())
    }
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = "sqlite:app.db";
    migrate_up(&Address::parse(url)?, &Clock::system())?; // or: rowlock migrate up --url sqlite:app.db
    let rowlock = Rowlock::open(url)?;
    let pool = SqlitePool::connect(url).await?;
    let table = "DROP TABLE IF EXISTS databases;
                 CREATE TABLE databases (id INTEGER PRIMARY KEY, state TEXT)";
    sqlx::raw_sql(table).execute(&pool).await?;

    let id = 7;
    let mut tx = pool.begin().await?;
    sqlx::query("INSERT INTO databases (id, state) VALUES ($1, 'pending')")
        .bind(id)
        .execute(&mut *tx)
        .await?;
    rowlock::enqueue(&mut tx, &CreateDatabase { id }).await?; // one commit, or neither
    tx.commit().await?;

    let app = App {
        cloud: Cloud,
        db: Db(pool),
    };
    Worker::new(rowlock, app)
        .handle(create)
        .pair(
            Pair::of::<CreateDatabase>("SELECT id FROM databases WHERE state = 'pending'")
                .every(MINUTE),
        )
        .run()
        .await?; // until SIGTERM or Ctrl-C
    Ok(())
}
