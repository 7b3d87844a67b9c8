//! A worker with handlers that misbehave.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use rowlock::drain::sinks::redis::Redis;
use rowlock::job::Backoff;
use rowlock::run::{Options, Signals, Stopper};
use rowlock::verify::Ran;
use rowlock::{Context, Kind, Outcome, Rowlock, Worker};

/// Works until a signal, with the handlers that `kinds` names.
pub async fn work(url: &str, lease: &str, slots: &str, kinds: &str, ran: Option<&str>) {
    let rowlock = match url.starts_with("redis:") {
        true => None,
        false => Some(crate::conformance::home_at(url).open(rowlock::Clock::system())),
    };
    let options = Options {
        lease: Duration::from_millis(lease.parse().unwrap()),
        concurrency: slots.parse().unwrap(),
        grace: Duration::from_secs(60),
        ran: ran.map(|path| Ran::open(path).unwrap()),
        ..Options::default()
    };
    let worker = match &rowlock {
        Some(rowlock) => Worker::new(rowlock.clone(), ()),
        None => {
            let clock = rowlock::Clock::system();
            let redis = Redis::open(url, clock.clone()).unwrap();
            Worker::from_dispatcher(Arc::new(redis), clock, ())
        }
    };
    let mut worker = worker.options(options);
    for name in kinds.split(',') {
        let mut kind = Kind::new(name).unwrap();
        kind.backoff = Backoff::Fixed {
            base: Duration::ZERO,
            jitter: 0.0,
        };
        let rowlock = rowlock.clone();
        let keys = std::env::var("ROWLOCK_TEST_KEYS").ok();
        worker = worker.handle_kind(kind, move |cx: Context| {
            let (rowlock, keys) = (rowlock.clone(), keys.clone());
            async move {
                if let Some(path) = keys {
                    note_key(&path, &cx);
                }
                // A line for each of thousands would be most of the work.
                if cx.kind.as_str() != "quick" {
                    println!("began {} {}", cx.kind, cx.id);
                }
                run(&cx, rowlock.as_ref()).await
            }
        });
    }
    let stopper = Stopper::default();
    let signals = Signals::listen().unwrap();
    println!("ready");
    let tally = tokio::select! {
        tally = worker.run_until(stopper.stop()) => tally.unwrap(),
        never = signals.ask(&stopper) => match never {},
    };
    println!("settled {} lost {}", tally.settled, tally.lost);
}

/// One line for each run, in one write: several processes share the file.
fn note_key(path: &str, cx: &Context) {
    let (name, key) = (cx.unique_key.as_deref(), cx.idempotency_key().unwrap());
    let line = format!("{}\t{}\t{key}\n", name.unwrap_or_default(), cx.id);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.create(true).append(true).open(path).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

async fn run(cx: &Context, rowlock: Option<&Rowlock>) -> Outcome {
    match cx.kind.as_str() {
        "poison" => {
            if !cx.suspect
                && let Some(rowlock) = rowlock
            {
                holds_ahead(rowlock, 500).await;
            }
            std::process::abort()
        }
        "stumbles" if cx.attempt == 1 => Outcome::Retry {
            error: "the first time".to_owned(),
            after: None,
        },
        "panics" => panic!("no good"),
        "waits" => {
            let _told = Told;
            std::future::pending().await
        }
        // Neither of the two is polite: they block the only thread there is.
        "blocks" => sleep("9.6"),
        "naps" => sleep("0.2"),
        _ => Outcome::Done,
    }
}

/// Waits until this process holds so many jobs beside the one that asks.
async fn holds_ahead(rowlock: &Rowlock, jobs: u64) {
    let mut wakeups = rowlock.engine().wakeups();
    loop {
        wakeups.mark();
        let workers = rowlock.operate().workers().await.unwrap();
        if let Some(worker) = workers.iter().find(|worker| worker.holds > jobs) {
            println!("holds {}", worker.holds);
            return;
        }
        // Nobody need ring: the next claim of this very process is what it waits for.
        let soon = Duration::from_millis(1);
        rowlock.clock().timeout(soon, wakeups.next()).await;
    }
}

/// Says when a handler was dropped before its end.
struct Told;

impl Drop for Told {
    fn drop(&mut self) {
        println!("dropped");
    }
}

fn sleep(seconds: &str) -> Outcome {
    crate::faults::pass(seconds);
    Outcome::Done
}
