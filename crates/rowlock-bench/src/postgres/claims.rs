//! Claims one after the other, each settled before the next.

use std::time::Duration;

use anyhow::{Result, ensure};
use rowlock::Rowlock;
use rowlock::claim::{Claim, WorkerId};
use rowlock::job::{Name, Token};
use rowlock::settle::{Settlement, Verdict};

use super::{KIND, ours};
use crate::stopwatch::Stopwatch;

/// Jobs in a claim.
pub(super) const SIZE: usize = 100;

/// How long each of so many claims takes, in ms.
pub(super) async fn times(rowlock: &Rowlock, claims: usize) -> Result<Vec<f64>> {
    ours::bulk(rowlock, claims * SIZE, false).await?;
    let engine = rowlock.engine();
    let worker = WorkerId::random("bench")?;
    engine.join(&worker, Duration::from_secs(60)).await?;
    let mut times = Vec::with_capacity(claims);
    for _ in 0..claims {
        let claim = Claim {
            worker: worker.clone(),
            token: Token::random()?,
            kinds: vec![Name::new(KIND)?],
            queues: Vec::new(),
            order: Default::default(),
            limit: SIZE,
            caps: Default::default(),
            suspect: false,
            thorough: false,
            route: None,
        };
        let watch = Stopwatch::start();
        let jobs = engine.claim(claim).await?.jobs;
        times.push(watch.elapsed().as_secs_f64() * 1_000.0);
        ensure!(jobs.len() == SIZE, "{} jobs were claimed", jobs.len());
        let done = jobs.iter().map(|job| Settlement {
            id: job.id,
            token: job.token,
            verdict: Verdict::Done,
            started_at: None,
        });
        engine.settle(done.collect()).await?;
    }
    engine.leave(&worker).await?;
    Ok(times)
}
