//! A worker for all that a store can have: plain jobs, jobs with keys, jobs of crons, and those of a pair's rows.

use std::sync::Arc;
use std::time::Duration;

use rowlock::run::{Options, Signals, Stopper};
use rowlock::{Context, Kind, Outcome, Worker};
use serde::Deserialize;
use tokio_postgres::NoTls;

use crate::conformance::home_at;
use crate::conformance::pairs::{kind_of, pair_of_rivals};

#[derive(Deserialize)]
struct Row {
    id: i64,
}

/// Works until a signal.
pub async fn serve(url: &str, lease: &str) {
    let rowlock = home_at(url).open(rowlock::Clock::system());
    let options = Options {
        lease: Duration::from_millis(lease.parse().unwrap()),
        concurrency: 4,
        ..Options::default()
    };
    // One connection for all rows: while others take all there are, no second one is to be had.
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::runtime::Handle::current().spawn(connection);
    let client = Arc::new(client);
    let create = move |cx: Context| {
        let client = Arc::clone(&client);
        async move {
            let row: Row = cx.payload.to().unwrap();
            let sql = "UPDATE databases SET state = 'ready' WHERE id = $1";
            client.execute(sql, &[&row.id]).await.unwrap();
            Outcome::Done
        }
    };
    let mut worker = Worker::new(rowlock, ())
        .options(options)
        .handle_kind(kind_of("create"), create)
        .pair(pair_of_rivals());
    let plain = ["quick", "fresh"].map(|kind| Kind::new(kind).unwrap());
    for kind in plain.into_iter().chain(["keyed", "tock"].map(kind_of)) {
        worker = worker.handle_kind(kind, |_: Context| async { Outcome::Done });
    }
    let stopper = Stopper::default();
    let signals = Signals::listen().unwrap();
    println!("ready");
    tokio::select! {
        tally = worker.run_until(stopper.stop()) => drop(tally.unwrap()),
        never = signals.ask(&stopper) => match never {},
    }
}
