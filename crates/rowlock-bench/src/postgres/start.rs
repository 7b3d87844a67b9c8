//! How soon a job starts: from the return of its enqueue, after the commit, to its handler's entry. Producer
//! and worker share nothing but the server.

use std::time::Duration;

use anyhow::{Context, Result};
use rowlock::Clock;

use super::Size;
use crate::server::Server;
use crate::starts::{in_process, measurement};
use crate::{Bound, Measurement, Progress};

/// Longer than any round takes.
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) async fn measure(
    size: &Size,
    server: &Server,
    say: Progress<'_>,
) -> Result<Measurement> {
    let mut rounds = Vec::new();
    for round in 1..=size.rounds {
        say(&format!("start, round {round} of {}", size.rounds));
        server.fresh().await?;
        let (producer, consumer) = (server.open().await?, server.open().await?);
        let measuring = in_process(&producer, consumer, size.starts);
        let measured = Clock::system().timeout(PATIENCE, measuring).await;
        rounds.push(measured.context("the jobs don't all start")??);
    }
    Ok(measurement("start", size.starts, &rounds).goal("ours", Bound::AtMost(1.0)))
}
