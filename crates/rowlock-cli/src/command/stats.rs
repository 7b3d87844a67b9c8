//! `rowlock stats`: how many jobs stand where.

use std::time::Duration;

use anyhow::Result;
use rowlock::engine::Counts;

use crate::open::{Access, Setup};
use crate::show::{self, Table};
use crate::{exit, out};

const HEADING: [&str; 10] = [
    "QUEUE",
    "PENDING",
    "SCHEDULED",
    "RETRYING",
    "HELD",
    "PROCESSING",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "OLDEST",
];

pub async fn run(setup: &Setup, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Read).await?;
    let stats = rowlock.operate().stats().await?;
    if json {
        out::json(&stats)?;
        return Ok(exit::OK);
    }
    let mut table = Table::new(&HEADING, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (queue, counts) in &stats.queues {
        table.row(row(queue.as_str(), counts));
    }
    if stats.queues.len() != 1 {
        table.row(row("(all)", &stats.total));
    }
    out::lines(&table.lines())?;
    Ok(exit::OK)
}

fn row(queue: &str, counts: &Counts) -> Vec<String> {
    let mut cells = vec![queue.to_owned()];
    let numbers = [
        counts.pending,
        counts.scheduled,
        counts.retrying,
        counts.held,
        counts.processing,
        counts.completed,
        counts.failed,
        counts.cancelled,
    ];
    cells.extend(numbers.map(show::count));
    cells.push(oldest(counts));
    cells
}

/// How long the job that is due longest has been waiting.
pub fn oldest(counts: &Counts) -> String {
    let waited = counts.oldest_pending_seconds;
    let waited = waited.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
    waited.map_or_else(|| "-".to_owned(), show::span)
}
