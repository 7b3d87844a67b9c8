//! Every look, behind millions of rows and behind a thousand.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use super::Size;
use super::client::Client;
use super::served::Served;
use crate::measurement::{median, percentile};
use crate::server::Server;
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Bound, Measurement, Progress};

/// How much longer a look may take.
const GOAL: f64 = 2.0;
/// What is quicker than this counts as this: below it the machine decides, in milliseconds.
const FLOOR: f64 = 1.0;

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
/// Steps that end so don't take an answer that is kept.
const NEW: &str = "_new";

pub(super) async fn measure(
    size: &Size,
    large: &Server,
    small: &Server,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    for (server, (finished, pending)) in [(large, size.large), (small, size.small)] {
        say(&format!(
            "writing {finished} finished and {pending} pending jobs"
        ));
        server.fresh().await?;
        let text = include_str!("sql/filled.sql");
        let text = text.replace("5000000", &finished.to_string());
        server
            .each(&text.replace("1000000", &pending.to_string()))
            .await?;
        server.checkpoint().await?;
    }
    let served = [Served::start(large)?, Served::start(small)?];
    let mut clients = [
        Client::new(&served[0].address),
        Client::new(&served[1].address),
    ];
    everything_is_measured(&mut clients[1]).await?;
    // The first answers read what nobody has read since it was written.
    times(&mut clients, 2).await?;
    // Behind many, behind few, and behind few once more.
    let mut p95: Vec<[Vec<f64>; 3]> = vec![Default::default(); LOOKS.len()];
    for pass in 1..=size.passes {
        say(&format!("every look, pass {pass} of {}", size.passes));
        for (kept, looked) in p95.iter_mut().zip(times(&mut clients, size.asks).await?) {
            for (kept, times) in kept.iter_mut().zip(looked) {
                kept.push(percentile(&times, 0.95));
            }
        }
    }
    let rows = size.large.0 + size.large.1;
    let measurement =
        |((step, _), [large, small, again]): (&(&'static str, &str), &[Vec<f64>; 3])| {
            let [with, without, second] = [large, small, again].map(|runs| median(runs).max(FLOOR));
            let a_a = (without / second).min(second / without);
            let mut made = Measurement::new(step, "ms p95", size.asks).ours(large);
            made.runs.insert("without", small.clone());
            made.runs.insert("without_again", again.clone());
            made.noisy = a_a < 1.0 / GOAL;
            made.with("rows", as_f64(rows))
                .with("without", median(small))
                .with("a_a", a_a)
                .with("of_without", with / without)
                .goal("of_without", Bound::AtMost(GOAL))
        };
    Ok(LOOKS.iter().zip(&p95).map(measurement).collect())
}

/// How long each look took, in milliseconds. The states take turns with every request, so that whatever else the
/// machine does is shared by all.
async fn times([large, small]: &mut [Client; 2], asks: usize) -> Result<Vec<[Vec<f64>; 3]>> {
    let mut all: Vec<[Vec<f64>; 3]> = vec![Default::default(); LOOKS.len()];
    for _ in 0..asks {
        for (look, [with, without, again]) in LOOKS.iter().zip(&mut all) {
            with.push(time(large, look).await?);
            without.push(time(small, look).await?);
            again.push(time(small, look).await?);
        }
    }
    Ok(all)
}

async fn time(client: &mut Client, (step, path): &(&str, &str)) -> Result<f64> {
    let lines = match step.ends_with(NEW) {
        true => "Cache-Control: no-cache\r\n",
        false => "",
    };
    let watch = Stopwatch::start();
    let (status, body) = client.get_with(path, lines).await?;
    let time = watch.elapsed().as_secs_f64() * 1_000.0;
    let body = String::from_utf8_lossy(&body);
    ensure!(
        matches!(status, 200 | 404),
        "{path} was answered {status}: {body}"
    );
    Ok(time)
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
