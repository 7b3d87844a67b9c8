//! Pairs: ticks over rows that all need a job, that all have one, and that need none; against plain
//! INSERT ... SELECTs of the same columns in the same batches.

mod postgres;
mod sqlite;

use anyhow::{Result, ensure};
use rowlock::engine::Ticked;
use rowlock::reconcile::tick_by_hand;
use rowlock::{Kind, Name, Pair, Rowlock};

use crate::measurement::median;
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Bound, Measurement, Place, Progress};

/// What the rows ask for: those that are pending, by an index that has them in order.
const QUERY: &str = include_str!("sql/query.sql");
const KIND: &str = "create_database";
/// Rows of one statement, on both sides.
const BATCH: usize = 10_000;
/// Ticks with nothing to do, measured together.
const IDLE_TICKS: usize = 20;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// How often ours and the limit take turns.
    pub rounds: usize,
    /// Rows of the user's table.
    pub rows: usize,
}

impl Size {
    /// For figures.
    #[must_use]
    pub fn full() -> Self {
        Self {
            rounds: 3,
            rows: 1_000_000,
        }
    }

    /// For shape and counts: its times mean nothing.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            rounds: 1,
            rows: 25_000,
        }
    }
}

/// Measures a server if there is one, otherwise a file. Nothing stays of it, also when `stop` comes
/// first: the answer is nothing then.
///
/// # Errors
/// When a store can't be written, or a tick didn't find exactly the rows it should.
pub async fn run(
    size: Size,
    place: &Place,
    server: Option<&str>,
    say: Progress<'_>,
    stop: impl Future<Output = ()>,
) -> Result<Option<Vec<Measurement>>> {
    match server {
        Some(url) => postgres::run(size, url, say, stop).await,
        None => tokio::select! {
            measured = sqlite::run(size, place, say) => measured.map(Some),
            () = stop => Ok(None),
        },
    }
}

fn pair(query: &str) -> Result<Pair> {
    Ok(Pair::new(Name::new(KIND)?, vec![Name::new("id")?], query).batch(BATCH))
}

async fn declare(rowlock: &Rowlock, query: &str) -> Result<()> {
    let mut kind = Kind::new(KIND)?;
    kind.key = vec![Name::new("id")?];
    rowlock.engine().add_kinds(&[kind]).await?;
    let declared = rowlock
        .schedule()
        .declare_pairs(&[pair(query)?], true)
        .await?;
    ensure!(declared.len() == 1, "the pair was not declared");
    Ok(())
}

/// One tick: what it did, and its seconds.
async fn tick(rowlock: &Rowlock, query: &str) -> Result<(Ticked, f64)> {
    let pair = pair(query)?;
    let watch = Stopwatch::start();
    let ticked = tick_by_hand(rowlock, &pair, false, |_| {}).await?;
    Ok((ticked, watch.elapsed().as_secs_f64()))
}

/// The seconds of each tick of a round, and of the plain statements beside it.
#[derive(Debug, Default)]
struct Rounds {
    first: Vec<f64>,
    live: Vec<f64>,
    idle: Vec<f64>,
    plain: Vec<f64>,
}

impl Rounds {
    /// A round of ours: the first tick, and one over the same rows.
    async fn ours(&mut self, rowlock: &Rowlock, rows: usize, query: &str) -> Result<()> {
        declare(rowlock, query).await?;
        let (ticked, seconds) = tick(rowlock, query).await?;
        ensure!(
            ticked.enqueued == rows as u64,
            "a row got no job: {ticked:?}"
        );
        self.first.push(seconds);
        let (ticked, seconds) = tick(rowlock, query).await?;
        ensure!(
            ticked.live == rows as u64 && ticked.enqueued == 0,
            "a row got a second job: {ticked:?}"
        );
        self.live.push(seconds);
        Ok(())
    }

    async fn idle(&mut self, rowlock: &Rowlock, query: &str) -> Result<()> {
        // The first one pays for connections and plans.
        tick(rowlock, query).await?;
        let watch = Stopwatch::start();
        for _ in 0..IDLE_TICKS {
            let (ticked, _) = tick(rowlock, query).await?;
            ensure!(ticked.found == 0, "there was something to do: {ticked:?}");
        }
        self.idle
            .push(watch.elapsed().as_secs_f64() / as_f64(IDLE_TICKS) * 1_000.0);
        Ok(())
    }

    fn measurements(&self, bench: &'static str, rows: usize) -> Vec<Measurement> {
        let rates = |seconds: &[f64]| -> Vec<f64> {
            seconds.iter().map(|each| as_f64(rows) / each).collect()
        };
        let of_first = median(&self.live) / median(&self.first);
        let first = Measurement::new("first_tick", "rows/s", rows)
            .ours(&rates(&self.first))
            .limit(&rates(&self.plain))
            .goal("of_limit", Bound::AtLeast(0.5));
        let live = Measurement::new("tick_over_live_jobs", "rows/s", rows)
            .ours(&rates(&self.live))
            .with("of_first_seconds", of_first)
            .goal("of_first_seconds", Bound::AtMost(0.2));
        let idle = Measurement::new("tick_with_nothing_to_do", "ms", 0).ours(&self.idle);
        [first, live, idle]
            .into_iter()
            .map(|made| Measurement { bench, ..made })
            .collect()
    }
}
