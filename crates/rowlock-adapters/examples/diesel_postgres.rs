//! A row and the job it needs, in one transaction of diesel's; the job's effect and its completion
//! in another: `DATABASE_URL=postgres://localhost/app cargo run -p rowlock-adapters --example diesel_postgres`
#![allow(clippy::print_stdout, missing_docs)]

use std::sync::{Mutex, PoisonError};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use rowlock::engine::postgres::{Address, Postgres, migrate_up};
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
    connection: Mutex<PgConnection>,
}

async fn create(job: CreateDatabase, cx: Cx<App>) -> rowlock::Result {
    let mut connection = cx.connection.lock().unwrap_or_else(PoisonError::into_inner);
    connection.transaction(|connection| {
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
    let url = std::env::var("DATABASE_URL")?;
    let address = Address::parse(&url)?;
    migrate_up(&address).await?; // or: rowlock migrate up
    let clock = Clock::system();
    let rowlock = Rowlock::with(Postgres::open(address, clock.clone()).await?, clock);
    let mut connection = PgConnection::establish(&url)?;
    let table = "CREATE TABLE IF NOT EXISTS databases (id bigint PRIMARY KEY, state text NOT NULL)";
    connection.batch_execute(table)?;

    let id = 7;
    connection.transaction(|connection| {
        diesel::insert_into(databases::table)
            .values((databases::id.eq(id), databases::state.eq("pending")))
            .execute(connection)?;
        rowlock::enqueue_blocking(connection, &CreateDatabase { id })?; // one commit, or neither
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;

    let app = App {
        connection: Mutex::new(connection),
    };
    Worker::new(rowlock, app).handle(create).run().await?; // until SIGTERM or Ctrl-C
    Ok(())
}
