//! Keeps to a budget beside other processes.

use std::fs::OpenOptions;
use std::io::Write;

use rowlock::Budget;
use rowlock::error::Error;
use tokio_postgres::{Client, NoTls, Transaction};

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::runtime::Handle::current().spawn(connection);
    client
}

/// Takes a place so often, and writes down when it comes and goes.
pub async fn visit(url: &str, class: &str, log: &str, rounds: usize) {
    let mut client = connect(url).await;
    let mut log = OpenOptions::new().append(true).open(log).unwrap();
    let budget = Budget::default();
    for _ in 0..rounds {
        let work = async |tx: &mut Transaction<'_>| {
            log.write_all(b"+").unwrap();
            tx.query("SELECT pg_sleep(0.005)", &[]).await.unwrap();
            log.write_all(b"-").unwrap();
            Ok::<(), Error>(())
        };
        budget.run(class, &mut client, work).await.unwrap();
    }
}

/// Takes a place and keeps it.
pub async fn hold(url: &str, class: &str) {
    let mut client = connect(url).await;
    let work = async |_: &mut Transaction<'_>| {
        println!("holding");
        std::future::pending::<Result<(), Error>>().await
    };
    Budget::default()
        .run(class, &mut client, work)
        .await
        .unwrap();
}
