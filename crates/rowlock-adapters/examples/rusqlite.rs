//! A row and the job it needs, in one transaction of rusqlite's; the job's effect and its completion
//! in another: `cargo run -p rowlock-adapters --example rusqlite`
#![allow(clippy::print_stdout, missing_docs)]

use std::sync::{Mutex, PoisonError};

use rowlock::engine::sqlite::{Address, migrate_up};
use rowlock::{Clock, Cx, Done, Job, Rowlock, Worker};
use rusqlite::Connection;
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
    connection: Mutex<Connection>,
}

async fn create(job: CreateDatabase, cx: Cx<App>) -> rowlock::Result {
    let mut connection = cx.connection.lock().unwrap_or_else(PoisonError::into_inner);
    let tx = connection.transaction()?;
    tx.execute(
        "UPDATE databases SET state = 'ready' WHERE id = ?1",
        [job.id],
    )?;
    cx.complete_in_blocking(&tx)?; // the effect and the job's end are one commit
    tx.commit()?;
    println!("database {} is ready", job.id);
    Ok(Done)
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = "sqlite:app.db";
    migrate_up(&Address::parse(url)?, &Clock::system())?; // or: rowlock migrate up --url sqlite:app.db
    let mut connection = Connection::open("app.db")?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS databases (id INTEGER PRIMARY KEY, state TEXT)",
    )?;

    let id = 7;
    let tx = connection.transaction()?;
    tx.execute(
        "INSERT OR REPLACE INTO databases (id, state) VALUES (?1, 'pending')",
        [id],
    )?;
    rowlock::enqueue_blocking(&tx, &CreateDatabase { id })?; // one commit, or neither
    tx.commit()?;

    let app = App {
        connection: Mutex::new(connection),
    };
    Worker::new(Rowlock::open(url)?, app)
        .handle(create)
        .run() // until SIGTERM or Ctrl-C
        .await?;
    Ok(())
}
