//! A row and the job it needs, in one transaction of diesel-async's; the job's effect and its completion
//! in another: `DATABASE_URL=postgres://localhost/app cargo run -p rowlock-adapters --example diesel_async`
#![allow(clippy::print_stdout, missing_docs)]

use std::ops::DerefMut;

use diesel::prelude::{ExpressionMethods, QueryDsl};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use rowlock::engine::postgres::{Address, Postgres, migrate_up};
use rowlock::{Clock, Cx, Done, Failure, Job, Rowlock, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

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
    connection: Mutex<AsyncPgConnection>,
}

async fn create(job: CreateDatabase, cx: Cx<App>) -> rowlock::Result {
    let mut connection = cx.connection.lock().await;
    connection
        .deref_mut()
        .transaction(async |connection| {
            diesel::update(databases::table.find(job.id))
                .set(databases::state.eq("ready"))
                .execute(connection)
                .await?;
            cx.complete_in(connection).await?; // the effect and the job's end are one commit
            Ok::<_, Failure>(())
        })
        .await?;
    println!("database {} is ready", job.id);
    Ok(Done)
}

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
pub async fn main() -> Result<(), Error> {
    let url = std::env::var("DATABASE_URL")?;
    let address = Address::parse(&url)?;
    migrate_up(&address).await?; // or: rowlock migrate up
    let clock = Clock::system();
    let rowlock = Rowlock::with(Postgres::open(address, clock.clone()).await?, clock);
    let mut connection = AsyncPgConnection::establish(&url).await?;
    let table = "CREATE TABLE IF NOT EXISTS databases (id bigint PRIMARY KEY, state text NOT NULL)";
    connection.batch_execute(table).await?;

    let id = 7;
    connection
        .transaction(async |connection| {
            diesel::insert_into(databases::table)
                .values((databases::id.eq(id), databases::state.eq("pending")))
                .execute(connection)
                .await?;
            rowlock::enqueue(connection, &CreateDatabase { id }).await?; // one commit, or neither
            Ok::<_, Error>(())
        })
        .await?;

    let app = App {
        connection: Mutex::new(connection),
    };
    Worker::new(rowlock, app).handle(create).run().await?; // until SIGTERM or Ctrl-C
    Ok(())
}
