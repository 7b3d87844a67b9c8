//! A newsletter. Its letters are rows, staged with the issue in one transaction; a drain sends them on to
//! Redis, where workers take them that have no connection to the database:
//! `cargo run -p rowlock-adapters --example newsletter sqlite:app.db redis://127.0.0.1:6379/0`
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rowlock::drain::sinks::redis::Redis;
use rowlock::drain::{Drain, Route};
use rowlock::run::Stopper;
use rowlock::{Clock, Cx, Done, Enqueueable, Job, Rowlock, Worker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Letter {
    to: String,
}

impl Job for Letter {
    const KIND: &'static str = "letter";
    const KEY: &'static [&'static str] = &["to"]; // nobody gets it twice at once
}

#[derive(Default)]
struct Post {
    sent: AtomicUsize,
}

async fn send(letter: Letter, cx: Cx<Arc<Post>>) -> rowlock::Result {
    assert!(letter.to.contains('@'), "no address");
    cx.sent.fetch_add(1, Ordering::Relaxed);
    Ok(Done)
}

/// Stages so many letters, drains them to `redis` and waits until all were sent.
pub async fn publish(url: &str, redis: &str, letters: usize) -> rowlock::error::Result<ExitCode> {
    migrate(url).await?;
    let rowlock = Rowlock::connect(url).await?;
    let route = Route::to(redis)?.kind("letter")?;
    // `rowlock apply` does the same with a [[drain]] of rowlock.toml.
    rowlock
        .routes()
        .declare_route(&route.name, &route.kinds, &[], true)
        .await?;
    let staged: Vec<_> = (0..letters)
        .map(|n| {
            Letter {
                to: format!("reader{n}@example.org"),
            }
            .new_job()
        })
        .collect::<Result<_, _>>()?;
    rowlock.enqueue_many(staged).await?;
    println!("staged {letters} letters");

    let stopper = Stopper::default();
    let post = Arc::new(Post::default());
    let worker = || -> rowlock::error::Result<_> {
        let clock = Clock::system();
        let jobs = Arc::new(Redis::open(redis, clock.clone())?);
        let worker = Worker::from_dispatcher(jobs, clock, Arc::clone(&post)).handle(send);
        Ok(worker.run_until(stopper.stop()))
    };
    let drain = Drain::new(rowlock.clone()).route(route);
    let (drained, one, other, ended) = tokio::join!(
        drain.run_until(stopper.stop()),
        worker()?,
        worker()?,
        all_sent(&rowlock, letters, &stopper),
    );
    ended?;
    let (drained, taken) = (drained?, one?.settled + other?.settled);
    println!(
        "drained {} letters, {} answers came back",
        drained.sent, drained.settled
    );
    println!(
        "sent {} letters, {taken} by two workers",
        post.sent.load(Ordering::Relaxed)
    );
    Ok(ExitCode::SUCCESS)
}

/// The database knows: a letter is done once its answer has come back.
async fn all_sent(
    rowlock: &Rowlock,
    letters: usize,
    stopper: &Stopper,
) -> rowlock::error::Result<()> {
    loop {
        let total = rowlock.operate().stats().await?.total;
        if total.completed >= letters as u64 {
            stopper.ask();
            return Ok(());
        }
        rowlock.clock().sleep(Duration::from_millis(50)).await;
    }
}

async fn migrate(url: &str) -> rowlock::error::Result<()> {
    if url.starts_with("sqlite:") {
        let address = rowlock::engine::sqlite::Address::parse(url)?;
        rowlock::engine::sqlite::migrate_up(&address, &Clock::system())?;
    } else {
        let address = rowlock::engine::postgres::Address::parse(url)?;
        rowlock::engine::postgres::migrate_up(&address).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, redis] = &arguments[..] else {
        eprintln!("write: newsletter sqlite:app.db redis://127.0.0.1:6379/0");
        return ExitCode::from(2);
    };
    publish(url, redis, 1_000).await.unwrap_or_else(|why| {
        eprintln!("{why}");
        ExitCode::FAILURE
    })
}
