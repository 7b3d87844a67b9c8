//! A worker that leads: it derives jobs from rows, and runs them.

use std::sync::Arc;
use std::time::Duration;

use rowlock::run::{Options, Signals, Stopper};
use rowlock::{Context, Kind, Outcome, Worker};
use serde::Deserialize;

use crate::conformance::home_at;
use crate::conformance::pairs::{kind_of, pair_of_rivals};

#[derive(Deserialize)]
struct Row {
    id: i64,
}

/// Leads and works until a signal.
pub async fn lead(url: &str, lease: &str) {
    let home = home_at(url);
    let rowlock = home.open(rowlock::Clock::system());
    let options = Options {
        lease: Duration::from_millis(lease.parse().unwrap()),
        poll: Duration::from_millis(50),
        ..Options::default()
    };
    let handler = {
        let home = Arc::clone(&home);
        move |cx: Context| {
            let home = Arc::clone(&home);
            async move {
                let row: Row = cx.payload.to().unwrap();
                println!("began {}", row.id);
                let sql = format!("UPDATE databases SET state = 'ready' WHERE id = {}", row.id);
                tokio::task::spawn_blocking(move || home.client().execute(&sql))
                    .await
                    .unwrap();
                Outcome::Done
            }
        }
    };
    let worker = Worker::new(rowlock, ())
        .options(options)
        .handle_kind(kind_of("create"), handler)
        .handle_kind(Kind::new("tock").unwrap(), |_: Context| async {
            Outcome::Done
        })
        .pair(pair_of_rivals());
    let stopper = Stopper::default();
    let signals = Signals::listen().unwrap();
    println!("ready");
    tokio::select! {
        tally = worker.run_until(stopper.stop()) => drop(tally.unwrap()),
        never = signals.ask(&stopper) => match never {},
    }
}
