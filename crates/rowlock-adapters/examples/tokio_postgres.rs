//! A row and the job it needs, in one transaction of tokio-postgres's; the job's effect and its completion
//! in another: `DATABASE_URL=postgres://localhost/app cargo run -p rowlock-adapters --example tokio_postgres`
#![allow(clippy::print_stdout, clippy::disallowed_methods, missing_docs)]

use rowlock::engine::postgres::{Address, Postgres, migrate_up};
use rowlock::{Clock, Cx, Done, Job, Rowlock, Worker};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls};

#[derive(Serialize, Deserialize)]
struct CreateDatabase {
    id: i64,
}

impl Job for CreateDatabase {
    const KIND: &'static str = "create_database";
    const KEY: &'static [&'static str] = &["id"]; // one live job per id
}

struct App {
    client: Mutex<Client>,
}

async fn create(job: CreateDatabase, cx: Cx<App>) -> rowlock::Result {
    let mut client = cx.client.lock().await;
    let tx = client.transaction().await?;
    let ready = "UPDATE databases SET state = 'ready' WHERE id = $1";
    tx.execute(ready, &[&job.id]).await?;
    cx.complete_in(&tx).await?; // the effect and the job's end are one commit
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
    let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    let table = "CREATE TABLE IF NOT EXISTS databases (id bigint PRIMARY KEY, state text NOT NULL)";
    client.batch_execute(table).await?;

    let id = 7_i64;
    let tx = client.transaction().await?;
    let pending = "INSERT INTO databases (id, state) VALUES ($1, 'pending')";
    tx.execute(pending, &[&id]).await?;
    rowlock::enqueue(&tx, &CreateDatabase { id }).await?; // one commit, or neither
    tx.commit().await?;

    let app = App {
        client: Mutex::new(client),
    };
    Worker::new(rowlock, app).handle(create).run().await?; // until SIGTERM or Ctrl-C
    Ok(())
}
