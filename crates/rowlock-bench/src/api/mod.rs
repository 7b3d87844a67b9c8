//! The API of `rowlock dashboard`: whether it stays fast behind millions of rows, and lets jobs run.
//!
//! In schemas of the run's own, in the database that is named. The server is this binary again, in a process
//! of its own.

mod crowd;
mod flat;

use std::time::Duration;

use anyhow::{Context, Result};
use rowlock::engine::postgres::drop_schema;

use crate::server::Server;
use crate::{Measurement, Progress};

const KIND: &str = "noop";

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Finished and pending jobs of the large store, and of the small one.
    pub large: (usize, usize),
    /// See there.
    pub small: (usize, usize),
    /// How often the two take turns, and how often each route is asked in a turn.
    pub passes: usize,
    /// See there.
    pub asks: usize,
    /// How often jobs run with and without requests.
    pub rounds: usize,
    /// Jobs waiting before a round.
    pub backlog: usize,
    /// Requests a second meanwhile.
    pub requests: u32,
}

impl Size {
    /// For figures.
    #[must_use]
    pub fn full() -> Self {
        Self {
            large: (5_000_000, 1_000_000),
            small: (833, 167),
            passes: 5,
            asks: 60,
            rounds: 3,
            backlog: 100_000,
            requests: 200,
        }
    }

    /// For shape and counts: its times mean nothing.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            large: (2_000, 500),
            small: (50, 10),
            passes: 1,
            asks: 2,
            rounds: 1,
            backlog: 1_000,
            requests: 50,
        }
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(1) / self.requests.max(1)
    }
}

/// Measures on a server. Nothing stays of it, also when `stop` comes first: the answer is nothing then.
///
/// # Errors
/// When the server can't be used, or a request was answered with an error.
pub async fn run(
    size: Size,
    url: &str,
    say: Progress<'_>,
    stop: impl Future<Output = ()>,
) -> Result<Option<Vec<Measurement>>> {
    let (large, small) = (Server::new(url)?, Server::new(url)?);
    let measured = tokio::select! {
        measured = measure(&size, &large, &small, say) => measured.map(Some),
        () = stop => Ok(None),
    };
    // Whatever happened, nothing of it stays.
    for server in [large, small] {
        let left_over = || format!("the schema {} is left over, drop it", server.schema);
        drop_schema(&server.address).await.with_context(left_over)?;
    }
    measured
}

async fn measure(
    size: &Size,
    large: &Server,
    small: &Server,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    let mut all = flat::measure(size, large, small, say).await?;
    drop_schema(&large.address).await?;
    all.push(crowd::measure(size, small, say).await?);
    let named = |made| Measurement {
        bench: "api",
        ..made
    };
    Ok(all.into_iter().map(named).collect())
}
