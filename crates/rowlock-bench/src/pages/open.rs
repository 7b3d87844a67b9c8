//! A page that stays open: it is told when something has changed, and asks for itself anew, as its script does.

use std::time::Duration;

use anyhow::{Result, ensure};
use rowlock::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Size;
use crate::dashboard::{Client, Served};
use crate::measurement::median;
use crate::server::Server;
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Bound, Measurement, Progress};

/// Queries a second.
const GOAL: f64 = 2.0;
/// What moves without a word is asked for after so long.
const AT_LEAST: Duration = Duration::from_secs(10);

/// Autovacuum's transactions count as well, when it comes by: the median of parts is without it.
const PARTS: u32 = 5;

/// What it is called, its path, and how long it rests between two looks.
pub(super) type Place = (&'static str, &'static str, Duration);

/// Health comes last: it has a checkup made.
pub(super) const PLACES: [Place; 8] = [
    ("overview", "/", Duration::ZERO),
    ("job_list", "/jobs", Duration::ZERO),
    ("queues", "/queues", Duration::ZERO),
    ("workers", "/workers", Duration::ZERO),
    ("pairs", "/pairs", Duration::ZERO),
    ("drains", "/drains", Duration::ZERO),
    ("switches", "/switches", Duration::ZERO),
    ("health", "/health", Duration::from_secs(15)),
];

/// What the server counts in a second while each of them is open: a question is a transaction of its own.
pub(super) async fn watch(
    size: &Size,
    server: &Server,
    places: &[Place],
    say: Progress<'_>,
) -> Result<Vec<(&'static str, f64)>> {
    let served = Served::start(server)?;
    let mut rates = Vec::new();
    for (name, path, rest) in places {
        say(&format!("{path} is open for {:?}", size.open));
        // What opening it costs is not what it costs while it is open.
        Client::new(&served.address, "").get(path).await?;
        let (_, parts) = tokio::try_join!(
            stay(&served.address, path, *rest, size.open),
            count(server, size.open / PARTS)
        )?;
        // One that rests for long asks in one part and not in the next.
        let rate = match rest.is_zero() {
            true => median(&parts),
            false => parts.iter().sum::<f64>() / f64::from(PARTS),
        };
        rates.push((*name, rate));
    }
    Ok(rates)
}

/// Transactions a second, part by part.
async fn count(server: &Server, time: Duration) -> Result<Vec<f64>> {
    let clock = Clock::system();
    let mut rates = Vec::new();
    for _ in 0..PARTS {
        let (before, watch) = (server.transactions().await?, Stopwatch::start());
        clock.sleep(time).await;
        // The second look itself.
        let ended = server.transactions().await?.saturating_sub(before + 1);
        rates.push(as_f64(ended) / watch.elapsed().as_secs_f64());
    }
    Ok(rates)
}

pub(super) fn judged(rates: &[(&'static str, f64)]) -> Measurement {
    let most = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let made = Measurement::new("open_dashboard", "queries/s", rates.len()).ours(&[most]);
    let made = rates
        .iter()
        .fold(made, |made, (name, rate)| made.with(name, *rate));
    made.goal("ours", Bound::AtMost(GOAL))
}

async fn stay(address: &str, path: &str, rest: Duration, time: Duration) -> Result<()> {
    let (clock, watch) = (Clock::system(), Stopwatch::start());
    let mut page = Client::new(address, "");
    let mut events = TcpStream::connect(address).await?;
    let request = format!("GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n");
    events.write_all(request.as_bytes()).await?;
    let mut last = Duration::ZERO;
    while watch.elapsed() < time {
        let wait = (last + AT_LEAST).min(time).saturating_sub(watch.elapsed());
        let mut said = Vec::new();
        let heard = clock.timeout(wait, events.read_buf(&mut said)).await;
        if let Some(bytes) = heard {
            ensure!(bytes? > 0, "the dashboard has hung up");
            let told = String::from_utf8_lossy(&said).contains("data: ");
            if !told {
                continue;
            }
        }
        if watch.elapsed() >= last + rest && watch.elapsed() < time {
            last = watch.elapsed();
            let (status, _) = page.get(path).await?;
            ensure!(status == 200, "{path} was answered {status}");
        }
    }
    Ok(())
}
