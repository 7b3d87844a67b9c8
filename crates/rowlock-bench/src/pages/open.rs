//! A page that stays open: it is told when something has changed, and asks for itself anew, as its script does.

use std::time::Duration;

use anyhow::{Result, ensure};
use rowlock::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Size;
use crate::between::Between;
use crate::dashboard::{Client, Served};
use crate::server::Server;
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Bound, Measurement, Progress};

/// Queries a second.
const GOAL: f64 = 2.0;
/// What moves without a word is asked for after so long.
const AT_LEAST: Duration = Duration::from_secs(10);

type Place = (&'static str, &'static str);

/// What it is called, and its path. The last is read for itself: it is seldom that it looks through the store.
pub(super) const PLACES: [Place; 8] = [
    ("overview", "/"),
    ("job_list", "/jobs"),
    ("queues", "/queues"),
    ("workers", "/workers"),
    ("pairs", "/pairs"),
    ("drains", "/drains"),
    ("switches", "/switches"),
    ("health", "/health"),
];

/// What open pages have cost.
pub(super) struct Watched {
    /// Questions in a second, by page.
    rates: Vec<(&'static str, f64)>,
}

/// Counts what the dashboard asks of the server while each of them is open.
pub(super) async fn watch(
    size: &Size,
    server: &Server,
    places: &[Place],
    say: Progress<'_>,
) -> Result<Watched> {
    let between = Between::start(server).await?;
    let served = Served::through(&between.url, server)?;
    let mut rates = Vec::new();
    for &(name, path) in places {
        say(&format!("{path} is open for {:?}", size.open));
        // What opening it costs is not what it costs while it is open.
        let (_, page) = Client::new(&served.address, "").get(path).await?;
        let (before, watch) = (between.asked(), Stopwatch::start());
        stay(&served.address, path, rest(&page), size.open).await?;
        let asked = as_f64(between.asked() - before);
        rates.push((name, asked / watch.elapsed().as_secs_f64()));
    }
    ensure!(between.asked() > 0, "nothing was asked through what counts");
    Ok(Watched { rates })
}

pub(super) fn judged(watched: &[Watched]) -> Measurement {
    let rates = || watched.iter().flat_map(|part| &part.rates);
    let most = rates().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let made = Measurement::new("open_dashboard", "queries/s", PLACES.len()).ours(&[most]);
    let made = rates().fold(made, |made, (name, rate)| made.with(name, *rate));
    made.goal("ours", Bound::AtMost(GOAL))
}

/// How long a page wants to rest between two looks.
fn rest(page: &[u8]) -> Duration {
    let page = String::from_utf8_lossy(page);
    let said = page.split("data-live=\"").skip(1);
    let seconds = said.filter_map(|rest| rest.split('"').next()?.parse().ok());
    Duration::from_secs(seconds.max().unwrap_or(0))
}

async fn stay(address: &str, path: &str, rest: Duration, time: Duration) -> Result<()> {
    let (clock, watch) = (Clock::system(), Stopwatch::start());
    let mut page = Client::new(address, "");
    let mut events = TcpStream::connect(address).await?;
    let request = format!("GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n");
    events.write_all(request.as_bytes()).await?;
    let (mut last, mut told) = (Duration::ZERO, false);
    while watch.elapsed() < time {
        let next = last + if told { rest } else { AT_LEAST };
        let wait = next.min(time).saturating_sub(watch.elapsed());
        let mut said = Vec::new();
        if let Some(bytes) = clock.timeout(wait, events.read_buf(&mut said)).await {
            ensure!(bytes? > 0, "the dashboard has hung up");
            told |= String::from_utf8_lossy(&said).contains("data: ");
        }
        let due = last + if told { rest } else { AT_LEAST };
        if watch.elapsed() >= due && watch.elapsed() < time {
            (last, told) = (watch.elapsed(), false);
            let (status, _) = page.get(path).await?;
            ensure!(status == 200, "{path} was answered {status}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_rests_as_long_as_its_slowest_part_wants() {
        let page = br#"<div id="a" data-live><p data-live="4"><p data-live="15">"#;
        assert_eq!(rest(page), Duration::from_secs(15));
        assert_eq!(rest(b"<div data-live>"), Duration::ZERO);
    }
}
