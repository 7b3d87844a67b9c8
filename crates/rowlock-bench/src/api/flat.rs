//! Every look, behind millions of rows and behind a thousand.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use super::Size;
use crate::dashboard::{Client, Served, Turns, compare, fill};
use crate::server::Server;
use crate::{Measurement, Progress};

/// Where the API is.
const ROOT: &str = "/api/v1";

/// Every GET of the document, and the filters of the list.
const LOOKS: [(&str, &str); 27] = [
    ("openapi", "/openapi.json"),
    ("jobs", "/jobs"),
    ("jobs_200", "/jobs?limit=200"),
    ("jobs_newest", "/jobs?order=newest"),
    (
        "jobs_pending",
        "/jobs?state=pending&queue=default&kind=noop",
    ),
    ("jobs_failed", "/jobs?state=failed&order=newest"),
    ("jobs_of_nobody", "/jobs?kind=nobody"),
    ("jobs_by_key", "/jobs?key=nobody&order=newest"),
    ("jobs_by_tag", "/jobs?tag=nobody"),
    ("jobs_running", "/jobs/running"),
    ("job", "/jobs/7"),
    ("stats", "/stats"),
    ("queues", "/queues"),
    ("kinds", "/kinds"),
    ("workers", "/workers"),
    ("switches", "/switches"),
    ("pairs", "/pairs"),
    ("pair", "/pairs/nobody"),
    ("pair_keys", "/pairs/nobody/keys"),
    ("crons", "/crons"),
    ("routes", "/routes"),
    ("budgets", "/budgets"),
    ("pins", "/pins"),
    ("doctor", "/doctor"),
    ("job_missing", "/jobs/999999999"),
    ("stats_new", "/stats"),
    ("queues_new", "/queues"),
];

pub(super) async fn measure(
    size: &Size,
    large: &Server,
    small: &Server,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    for (server, rows) in [(large, size.large), (small, size.small)] {
        fill(server, rows, say).await?;
    }
    let served = [Served::start(large)?, Served::start(small)?];
    let mut clients = [0, 1].map(|at: usize| Client::new(&served[at].address, ROOT));
    everything_is_measured(&mut clients[1]).await?;
    let turns = Turns {
        passes: size.passes,
        asks: size.asks,
        rows: size.large.0 + size.large.1,
    };
    compare(&LOOKS, &mut clients, turns, say).await
}

/// A look that is added is measured too.
async fn everything_is_measured(client: &mut Client) -> Result<()> {
    let (_, body) = client.get("/openapi.json").await?;
    let document: serde_json::Value = serde_json::from_slice(&body)?;
    let paths = document["paths"]
        .as_object()
        .context("a document with paths")?;
    let measured: BTreeSet<&str> = LOOKS
        .iter()
        .map(|(_, path)| path.split('?').next().unwrap_or(path))
        .collect();
    for (path, methods) in paths {
        let path = path.strip_prefix("/api/v1").unwrap_or(path);
        let parts: Vec<&str> = path.split('/').collect();
        let fits = |look: &&&str| {
            let look: Vec<&str> = look.split('/').collect();
            let same =
                |(at, part): (usize, &&str)| part.starts_with('{') || look.get(at) == Some(part);
            look.len() == parts.len() && parts.iter().enumerate().all(same)
        };
        let known = measured.iter().find(fits).is_some();
        let asked = !methods["get"].is_null();
        ensure!(known || !asked, "GET {path} is not measured");
    }
    Ok(())
}
