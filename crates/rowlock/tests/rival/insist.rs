//! A producer that goes on whatever the server answers, until a signal. It writes down only what it was
//! told, and says so every few jobs.

use std::time::Duration;

use rowlock::NewJob;
use rowlock::clock::Clock;
use rowlock::error::Error;
use rowlock::run::{Signals, Stopper};
use rowlock::verify::{Answer, Told};

use crate::conformance::world::job;

/// A word after so many answers.
const EVERY: u64 = 20;
/// The server needs its time for more than for what is enqueued.
const PAUSE: Duration = Duration::from_millis(2);

pub async fn insist(url: &str, told: &str) {
    let rowlock = crate::conformance::home_at(url).open(rowlock::Clock::system());
    let told = Told::open(told).unwrap();
    let stopper = Stopper::default();
    let signals = Signals::listen().unwrap();
    let mut stop = stopper.stop();
    let producing = async {
        let mut asked_to_stop = std::pin::pin!(stop.asked());
        for n in 1.. {
            let wanted = some(n);
            let answer = loop {
                match rowlock.enqueue(&wanted).await {
                    Ok(answer) => break answer,
                    Err(Error::Unavailable(_) | Error::Unreachable(_)) => {}
                    Err(why) => panic!("a crash of the server is no reason for this: {why:?}"),
                }
            };
            let now = Clock::system().now();
            told.write(&[Answer::enqueue(now, &wanted, Some(&answer))])
                .unwrap();
            if n % EVERY == 0 {
                println!("told {n}");
            }
            let clock = Clock::system();
            if clock.timeout(PAUSE, &mut asked_to_stop).await.is_some() {
                return;
            }
        }
    };
    tokio::select! {
        () = producing => {}
        never = signals.ask(&stopper) => match never {},
    }
}

/// Each with a key: a second try after a lost answer makes no second job.
fn some(n: u64) -> NewJob {
    let kind = match n % 50 {
        0 => "naps",
        1..5 => "stumbles",
        _ => "quick",
    };
    job(kind).unique(format!("job {n}")).unwrap()
}
