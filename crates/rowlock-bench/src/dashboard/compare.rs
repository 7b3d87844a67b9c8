//! The same looks behind many rows, behind few, and behind few once more, taking turns.

use anyhow::{Result, ensure};

use super::Client;
use crate::measurement::{median, percentile};
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Bound, Measurement, Progress};

/// How much longer a look may take.
const GOAL: f64 = 2.0;
/// What is quicker than this counts as this: below it the machine decides, in milliseconds.
const FLOOR: f64 = 1.0;

/// Steps that end so don't take an answer that is kept.
const NEW: &str = "_new";

/// How often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turns {
    /// How often all looks are taken, each time with a percentile of its own.
    pub(crate) passes: usize,
    /// How often each look is taken in such a pass.
    pub(crate) asks: usize,
    /// Jobs of the large store.
    pub(crate) rows: usize,
}

/// Times each look, in milliseconds. A look is its step and its path.
pub(crate) async fn compare(
    looks: &[(&'static str, &str)],
    clients: &mut [Client; 2],
    turns: Turns,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    // The first answers read what nobody has read since it was written.
    times(looks, clients, 2).await?;
    // Behind many, behind few, and behind few once more.
    let mut p95: Vec<[Vec<f64>; 3]> = vec![Default::default(); looks.len()];
    for pass in 1..=turns.passes {
        say(&format!("every look, pass {pass} of {}", turns.passes));
        let looked = times(looks, clients, turns.asks).await?;
        for (kept, looked) in p95.iter_mut().zip(looked) {
            for (kept, times) in kept.iter_mut().zip(looked) {
                kept.push(percentile(&times, 0.95));
            }
        }
    }
    let both = looks.iter().zip(&p95);
    Ok(both
        .map(|((step, _), p95)| judged(step, turns, p95))
        .collect())
}

fn judged(step: &'static str, turns: Turns, [large, small, again]: &[Vec<f64>; 3]) -> Measurement {
    let [with, without, second] = [large, small, again].map(|runs| median(runs).max(FLOOR));
    let a_a = (without / second).min(second / without);
    let mut made = Measurement::new(step, "ms p95", turns.asks).ours(large);
    made.runs.insert("without", small.clone());
    made.runs.insert("without_again", again.clone());
    made.noisy = a_a < 1.0 / GOAL;
    made.with("rows", as_f64(turns.rows))
        .with("without", median(small))
        .with("a_a", a_a)
        .with("of_without", with / without)
        .goal("of_without", Bound::AtMost(GOAL))
}

/// How long each look took. The states take turns with every request, so that whatever else the machine does is
/// shared by all.
async fn times(
    looks: &[(&'static str, &str)],
    [large, small]: &mut [Client; 2],
    asks: usize,
) -> Result<Vec<[Vec<f64>; 3]>> {
    let mut all: Vec<[Vec<f64>; 3]> = vec![Default::default(); looks.len()];
    for _ in 0..asks {
        for (look, [with, without, again]) in looks.iter().zip(&mut all) {
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
