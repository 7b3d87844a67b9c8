//! `rowlock dashboard` in a process of its own, behind many rows and behind few, and how long its answers take.

mod client;
mod compare;
mod served;

pub(crate) use client::Client;
pub(crate) use compare::{Turns, compare};
pub(crate) use served::Served;

use anyhow::Result;

use crate::server::Server;

/// A schema with so many finished and so many pending jobs.
pub(crate) async fn fill(
    server: &Server,
    (finished, pending): (usize, usize),
    say: crate::Progress<'_>,
) -> Result<()> {
    say(&format!(
        "writing {finished} finished and {pending} pending jobs"
    ));
    server.fresh().await?;
    let text = include_str!("sql/filled.sql");
    let text = text.replace("5000000", &finished.to_string());
    server
        .each(&text.replace("1000000", &pending.to_string()))
        .await?;
    server.checkpoint().await
}
