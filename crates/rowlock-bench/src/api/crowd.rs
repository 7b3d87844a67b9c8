//! Jobs run while the API is asked all the time, and while nobody asks.

use anyhow::{Result, ensure};
use rowlock::run::{Builtin, Options, Runner};
use rowlock::{Clock, Kind, NewJob, Rowlock, Worker};

use super::{KIND, Size};
use crate::dashboard::{Client, Served};
use crate::measurement::median;
use crate::server::Server;
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Bound, Measurement, Progress};

/// How much of its speed a worker keeps.
const GOAL: f64 = 0.8;
/// What a screen and its programs look at.
const LOOKS: [&str; 8] = [
    "/stats",
    "/queues",
    "/workers",
    "/jobs?order=newest&limit=20",
    "/jobs/running",
    "/switches",
    "/jobs?state=failed&order=newest",
    "/kinds",
];
/// As many jobs in one call of an enqueue.
const BATCH: usize = 1_000;

pub(super) async fn measure(
    size: &Size,
    server: &Server,
    say: Progress<'_>,
) -> Result<Measurement> {
    let mut runs: [Vec<f64>; 3] = Default::default();
    let (mut answered, mut pace) = (0, Vec::new());
    for round in 1..=size.rounds {
        say(&format!(
            "{} jobs and requests, round {round} of {}",
            size.backlog, size.rounds
        ));
        // Asked, left alone, and left alone once more.
        for (state, rates) in runs.iter_mut().enumerate() {
            server.fresh().await?;
            let rowlock = server.open().await?;
            fill(&rowlock, size.backlog).await?;
            server.checkpoint().await?;
            let work = drain(&rowlock, size.backlog);
            let rate = match state {
                0 => {
                    let served = Served::start(server)?;
                    let watch = Stopwatch::start();
                    let mut asked = 0;
                    let rate = tokio::select! {
                        rate = work => rate?,
                        failed = ask(&served.address, size, &mut asked) => return Err(failed),
                    };
                    pace.push(watch.rate(asked));
                    answered += asked;
                    rate
                }
                _ => work.await?,
            };
            rates.push(rate);
        }
    }
    let [asked, alone, again] = &runs;
    Ok(Measurement::new("jobs_while_asked", "jobs/s", size.backlog)
        .ours(asked)
        .with("requests", as_f64(answered))
        .with("requests_per_second", median(&pace))
        .without(alone, again, GOAL)
        .goal(
            "requests_per_second",
            Bound::AtLeast(f64::from(size.requests) * 0.9),
        ))
}

async fn fill(rowlock: &Rowlock, jobs: usize) -> Result<()> {
    rowlock.operate().apply(&[Kind::new(KIND)?]).await?;
    let job = NewJob::new(KIND)?;
    for start in (0..jobs).step_by(BATCH) {
        let batch = BATCH.min(jobs - start);
        rowlock.enqueue_many(vec![job.clone(); batch]).await?;
    }
    Ok(())
}

async fn drain(rowlock: &Rowlock, jobs: usize) -> Result<f64> {
    let worker = Worker::new(rowlock.clone(), ())
        .handle_kind(Kind::new(KIND)?, Runner::Builtin(Builtin::Noop))
        .options(Options {
            concurrency: 64,
            ..Options::default()
        });
    let watch = Stopwatch::start();
    let tally = worker.run_once().await?;
    let rate = watch.rate(jobs);
    ensure!(
        tally.settled == u64::try_from(jobs)?,
        "{} of {jobs} jobs were settled",
        tally.settled
    );
    Ok(rate)
}

/// Asks at an even pace until it is dropped; an answer that isn't one is its end. Eight clients ask at once, so
/// that one slow answer doesn't slow the pace.
async fn ask(address: &str, size: &Size, asked: &mut usize) -> anyhow::Error {
    let (pause, clock) = (size.pause(), Clock::system());
    let watch = Stopwatch::start();
    let mut clients = LOOKS.map(|path| (Client::new(address, "/api/v1"), path));
    for turn in 1_u32.. {
        let [a, b, c, d, e, f, g, h] = &mut clients;
        let done = tokio::try_join!(
            look(a),
            look(b),
            look(c),
            look(d),
            look(e),
            look(f),
            look(g),
            look(h)
        );
        if let Err(why) = done {
            return why;
        }
        *asked += LOOKS.len();
        // Late ones are made up for.
        let due = pause * 8 * turn;
        clock.sleep(due.saturating_sub(watch.elapsed())).await;
    }
    anyhow::anyhow!("there are no more numbers")
}

async fn look((client, path): &mut (Client, &str)) -> Result<()> {
    let (status, body) = client.get(path).await?;
    let body = String::from_utf8_lossy(&body);
    ensure!(status == 200, "{path} was answered {status}: {body}");
    Ok(())
}
