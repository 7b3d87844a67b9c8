//! A row and the job it needs, in one transaction of diesel's; the job's effect and its completion
//! in another: `cargo run -p rowlock-adapters --example diesel`
#![allow(clippy::print_stdout, missing_docs)]

use std::sync::{Mutex, PoisonError};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use rowlock::engine::sqlite::{Address, migrate_up};
use rowlock::{Clock, Cx, Done, Failure, Job, Rowlock, Worker};
use serde::{Deserialize, Serialize};

diesel::table! {
    databases (id) {
        id -> BigInt,
        state -> Text,
    }
}

#[derive(Serialize, Deserialize)]
struct CreateDatabase {
    id: i64,
}

impl Job for CreateDatabase {
    const KIND: &'static str = "create_database";
    const KEY: &'static [&'static str] = &["id"]; // one live job per id
}

struct App {
    connection: Mutex<SqliteConnection>,
}

async fn create(job: CreateDatabase, cx: Cx<App>) -> rowlock::Result {
    let mut connection = cx.connection.lock().unwrap_or_else(PoisonError::into_inner);
    connection.immediate_transaction(|connection| {
        diesel::update(databases::table.find(job.id))
            .set(databases::state.eq("ready"))
            .execute(connection)?;
        cx.complete_in_blocking(connection)?; // the effect and the job's end are one commit
        Ok::<_, Failure>(())
    })?;
    println!("database {} is ready", job.id);
    Ok(Done)
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = "sqlite:app.db";
    migrate_up(&Address::parse(url)?, &Clock::system())?; // or: rowlock migrate up --url sqlite:app.db
    let mut connection = SqliteConnection::establish("app.db")?;
    connection.batch_execute(
        "PRAGMA busy_timeout = 5000;
         CREATE TABLE IF NOT EXISTS databases (id BIGINT PRIMARY KEY NOT NULL, state TEXT NOT NULL)",
    )?;

    let id = 7;
    connection.transaction(|connection| {
        diesel::replace_into(databases::table)
            .values((databases::id.eq(id), databases::state.eq("pending")))
            .execute(connection)?;
        rowlock::enqueue_blocking(connection, &CreateDatabase { id })?; // one commit, or neither
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;

    let app = App {
        connection: Mutex::new(connection),
    };
    Worker::new(Rowlock::open(url)?, app)
        .handle(create)
        .run() // until SIGTERM or Ctrl-C
        .await?;
    Ok(())
}
