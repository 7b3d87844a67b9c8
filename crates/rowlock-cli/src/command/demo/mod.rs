//! `rowlock demo crash`: workers are killed and stopped in the middle of jobs, and nothing is lost.
//!
//! Everything happens in a store of its own, a file or a schema that is gone at the end. Two workers are
//! processes of this same binary and write one ran log; we enqueue and write the told log. A fault
//! counts only if it hit a job that had begun and not ended. At the end the checker that `rowlock
//! verify` is looks at both logs and the store.

mod dice;
mod faults;
mod home;
mod produce;
mod tail;
mod workers;

use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rowlock::reconcile;
use rowlock::run::Signals;
use rowlock::verify::{RanLog, ToldLog, check};
use rowlock::{Clock, Rowlock};
use serde_json::json;

use self::dice::Dice;
use self::faults::{Faults, Toll};
use self::home::Home;
use self::produce::Producer;
use super::verify;
use crate::cli::{Crash, Global};
use crate::open::is_postgres;
use crate::{exit, out, show};

/// How long others wait before they take over from a silent worker.
const LEASE: Duration = Duration::from_secs(1);
/// How often to look whether something has happened.
const LOOK: Duration = Duration::from_millis(5);
/// How long nothing at all may happen.
const STUCK: Duration = Duration::from_secs(60);

pub async fn run(how: &Crash, global: &Global, json: bool) -> Result<u8> {
    let seed = match how.seed {
        Some(seed) => seed,
        None => Dice::any_seed()?,
    };
    let mut signals = Signals::listen()?;
    let server = global.url.as_deref().filter(|url| is_postgres(url));
    let home = Home::make(how, LEASE, server).await?;
    // Whatever ends this also ends the workers, and then removes the store.
    let done = tokio::select! {
        done = crash(&home, how, seed, json) => done,
        () = signals.next() => Err(exit::with(exit::FAILED, "stopped; nothing is left behind")),
    };
    home.remove().await?;
    done
}

async fn crash(home: &Home, how: &Crash, seed: u64, json: bool) -> Result<u8> {
    let rowlock = home.open().await?;
    let stops = how.kills / 2;
    let intro = format!(
        "{} jobs, 2 workers, {} faults: {} kills, {} stops for longer than the lease",
        show::count(how.jobs),
        how.kills,
        how.kills - stops,
        stops
    );
    if !json {
        out::line(&intro)?;
    }
    let clock = rowlock.clock().clone();
    let toll = tokio::select! {
        toll = ordeal(home, &rowlock, how, seed) => toll?,
        // Workers live too short to notice each other's deaths: we are the one that lasts.
        () = reconcile::upkeep(rowlock.engine(), clock, LEASE) => Toll::default(),
    };
    judge(home, &rowlock, how, seed, &toll, json).await
}

/// Enqueues, breaks what can be broken, and waits until everything is done.
async fn ordeal(home: &Home, rowlock: &Rowlock, how: &Crash, seed: u64) -> Result<Toll> {
    let bar = bar(how);
    let mut producer = Producer::new(home, rowlock.clone(), how)?;
    producer.most().await?;
    let mut faults = Faults::new(home, rowlock.clone(), Dice::new(seed), how, bar.clone())?;
    faults.all(&mut producer).await?;
    producer.rest().await?;
    bar.set_message("finishing what is left");
    drained(rowlock, rowlock.clock(), &faults).await?;
    let toll = faults.finish().await?;
    bar.finish_and_clear();
    Ok(toll)
}

/// How many jobs are pending or in a worker's hands.
async fn left(rowlock: &Rowlock) -> Result<u64> {
    let total = rowlock.operate().stats().await?.total;
    Ok(total.pending + total.processing)
}

/// Waits until nothing is left.
async fn drained(rowlock: &Rowlock, clock: &Clock, faults: &Faults<'_>) -> Result<()> {
    let mut best = u64::MAX;
    let mut since = clock.elapsed();
    loop {
        let left = left(rowlock).await?;
        if left == 0 {
            return Ok(());
        }
        if left < best {
            (best, since) = (left, clock.elapsed());
        }
        if clock.elapsed().saturating_sub(since) > STUCK {
            let said = faults.last_words();
            let text = format!("{left} jobs are left and nothing happens any more{said}");
            return Err(exit::with(exit::FAILED, text));
        }
        clock.sleep(LOOK * 10).await;
    }
}

async fn judge(
    home: &Home,
    rowlock: &Rowlock,
    how: &Crash,
    seed: u64,
    toll: &Toll,
    json: bool,
) -> Result<u8> {
    let ran = RanLog::read(home.ran())?;
    let told = ToldLog::read(home.told())?;
    let report = check(rowlock.operate(), Some(&told), Some(&ran)).await?;
    let (again, refused) = (ran.run_more_than_once(), ran.refused());
    match json {
        true => out::json(&json!({
            "jobs": how.jobs, "kills": toll.kills, "stops": toll.stops, "lost": report.lost,
            "run_more_than_once": again, "late_refused": refused,
            "late_accepted": toll.late_accepted, "accepted": report.ended, "seed": seed,
            "clean": report.is_clean(),
        }))?,
        false => out::line(&format!(
            "lost {} · run more than once {} · late answers refused {} · accepted outcomes {} of {}   \
             (repeat with --seed {seed})",
            show::count(report.lost),
            show::count(again as u64),
            show::count(refused),
            show::count(report.ended),
            show::count(how.jobs),
        ))?,
    }
    if !report.is_clean() || toll.late_accepted > 0 {
        let broken = report
            .checked
            .iter()
            .filter(|each| !each.findings.is_empty());
        let broken: Vec<_> = broken.cloned().collect();
        verify::say(&broken, json)?;
        if toll.late_accepted > 0 {
            let late = toll.late_accepted;
            out::error(&format!(
                "{late} answers of workers that had been given up were accepted"
            ));
        }
        return Ok(exit::FINDINGS);
    }
    let counted = toll.kills + toll.stops;
    let wrong = if counted < how.kills {
        format!("only {counted} of {} faults hit a running job", how.kills)
    } else if report.ended != how.jobs {
        "not every job has ended".to_owned()
    } else if refused == 0 && toll.stops > 0 {
        "no late answer was refused, so nothing was seen of the fence".to_owned()
    } else {
        return Ok(exit::OK);
    };
    Err(exit::with(exit::FAILED, format!("{wrong} (seed {seed})")))
}

/// A progress bar on stderr, if that is a terminal.
fn bar(how: &Crash) -> ProgressBar {
    let target = ProgressDrawTarget::stderr();
    let bar = ProgressBar::with_draw_target(Some(u64::from(how.kills)), target);
    match ProgressStyle::with_template("{wide_bar} {pos} of {len} faults  {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
