//! Jobs that were set aside come back while a transaction stays open: the last ones as fast as the first.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use rowlock::run::{Context, Options};
use rowlock::{Clock, Done, Kind, NewJob, Worker};

use super::pinned::Size;
use super::{BATCH, KIND, ours};
use crate::databases::Databases;
use crate::pin::{Pin, Pinned};
use crate::stopwatch::{Stopwatch, as_f64, now};
use crate::{Bound, Measurement, Progress};

pub(super) async fn measure(
    size: &Size,
    databases: &Databases,
    say: Progress<'_>,
) -> Result<Measurement> {
    let [server, _] = databases.servers()?;
    server.fresh().await?;
    let rowlock = server.open().await?;
    let pin = Pinned::new(&server, Pin::Reading).await?;
    say(&format!("{} jobs are set aside", size.aside));
    let (watch, clock) = (Stopwatch::start(), Clock::system());
    for start in (0..size.aside).step_by(BATCH) {
        let wait = size.due.saturating_sub(watch.elapsed());
        // So that all are due at the same time.
        ensure!(wait > Duration::from_secs(60), "staging took too long");
        let job = ours::job()?.delay(wait);
        let batch: Vec<NewJob> = vec![job; BATCH.min(size.aside - start)];
        rowlock.enqueue_many(batch).await?;
    }
    let session = server.session().await?;
    let text = server.put(include_str!("sql/key_bytes.sql"));
    let bytes: i64 = session.client.query_one(&text, &[]).await?.get(1);
    let per_job = as_f64(usize::try_from(bytes)?) / as_f64(size.aside);
    say("they come back");
    clock.sleep(size.due.saturating_sub(watch.elapsed())).await;
    let times = Arc::new(Mutex::new(Vec::with_capacity(size.aside)));
    let begun = Arc::clone(&times);
    let worker = Worker::new(rowlock, ())
        .handle_kind(Kind::new(KIND)?, move |_: Context| {
            let mut begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
            begun.push(now());
            async { Done }
        })
        .options(Options {
            concurrency: ours::CONCURRENCY,
            ..Options::default()
        });
    let tally = worker.run_once().await?;
    ensure!(
        tally.settled == u64::try_from(size.aside)?,
        "{} of {} jobs came back",
        tally.settled,
        size.aside
    );
    pin.still_holds().await?;
    let times = times.lock().unwrap_or_else(PoisonError::into_inner);
    let part = size.aside / 10;
    let rate = |from: usize, to: usize| {
        let time = times[to - 1].saturating_sub(times[from]);
        as_f64(to - from) / time.as_secs_f64().max(1e-9)
    };
    let (first, last) = (rate(0, part), rate(size.aside - part, size.aside));
    Ok(Measurement::new("aside_comes_back", "jobs/s", size.aside)
        .ours(&[last])
        .with("first", first)
        .with("of_first", last / first)
        .with("aside_bytes_per_job", per_job)
        .goal("of_first", Bound::AtLeast(0.7)))
}
