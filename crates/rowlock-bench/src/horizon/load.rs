//! Jobs at an even rate, each of which changes a row of the application's own table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rowlock::run::task::Tasks;
use rowlock::run::{Context, Options, Stopper};
use rowlock::{Clock, Kind, NewJob, Outcome, Payload, Rowlock, Worker};
use tokio::sync::Mutex;

use crate::server::{Server, Session};
use crate::stopwatch::{Stopwatch, as_f64};

const KIND: &str = "order";
/// Rows of that table.
const ROWS: u64 = 10_000;
/// Sessions of the application's, one job each at a time.
const SESSIONS: u64 = 4;
/// Every so many jobs one makes a table for a while, as reports do: the catalogue has dead rows too.
const TABLE_EVERY: u64 = 25;
/// Jobs come in batches, so many a second.
const BATCHES: usize = 50;
/// For what comes last.
const LAST: Duration = Duration::from_secs(120);

/// The application: a worker, and whoever enqueues.
pub(super) struct Load {
    pub(super) rowlock: Rowlock,
    stopper: Arc<Stopper>,
    tasks: Tasks,
    stored: Arc<AtomicU64>,
    failed: Arc<std::sync::Mutex<Option<String>>>,
}

impl Load {
    /// In a fresh schema, with a fresh table.
    pub(super) async fn start(server: &Server, rate: usize) -> Result<Self> {
        server.fresh().await?;
        server.each(include_str!("orders.sql")).await?;
        let rowlock = server.open().await?;
        let kind = Kind::new(KIND)?;
        rowlock.operate().apply(std::slice::from_ref(&kind)).await?;
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            sessions.push(Mutex::new(server.session().await?));
        }
        let sessions = Arc::new(sessions);
        let handler = move |cx: Context| {
            let sessions = Arc::clone(&sessions);
            async move { change(&sessions, cx.id.0.unsigned_abs()).await }
        };
        let options = Options {
            concurrency: usize::try_from(SESSIONS)? * 2,
            ..Options::default()
        };
        let worker = Worker::new(rowlock.clone(), ())
            .options(options)
            .handle_kind(kind, handler);
        let mut load = Self {
            rowlock,
            stopper: Arc::default(),
            tasks: Tasks::default(),
            stored: Arc::default(),
            failed: Arc::default(),
        };
        let (work, failed) = (
            worker.run_until(load.stopper.stop()),
            Arc::clone(&load.failed),
        );
        load.tasks.start("bench-worker", async move {
            if let Err(why) = work.await {
                note(&failed, &why.to_string());
            }
        });
        let produce = produce(
            load.rowlock.clone(),
            rate,
            Arc::clone(&load.stored),
            load.stopper.stop(),
        );
        let failed = Arc::clone(&load.failed);
        load.tasks.start("bench-producer", async move {
            if let Err(why) = produce.await {
                note(&failed, &format!("{why:#}"));
            }
        });
        Ok(load)
    }

    /// Whether all still goes on.
    pub(super) fn check(&self) -> Result<()> {
        let failed = self.failed.lock().map_or(None, |failed| failed.clone());
        ensure!(
            failed.is_none(),
            "the load ended: {}",
            failed.unwrap_or_default()
        );
        Ok(())
    }

    /// Lets nobody enqueue any more, waits for the last job, and says how many were done.
    pub(super) async fn end(mut self) -> Result<usize> {
        self.check()?;
        // The worker goes on until it has nothing to do: another one takes what is left.
        self.stopper.ask();
        self.tasks.join().await;
        let stored = self.stored.load(Ordering::Acquire);
        let rest = Worker::new(self.rowlock.clone(), ())
            .handle_kind(Kind::new(KIND)?, |_: Context| async { Outcome::Done });
        let ended = Clock::system().timeout(LAST, rest.run_once()).await;
        ended.context("jobs were left behind")??;
        let counts = self.rowlock.operate().stats().await?.total;
        ensure!(
            counts.completed == stored && counts.failed == 0,
            "{stored} jobs were stored: {counts:?}"
        );
        Ok(usize::try_from(stored)?)
    }
}

fn note(failed: &std::sync::Mutex<Option<String>>, why: &str) {
    if let Ok(mut failed) = failed.lock() {
        failed.get_or_insert(why.to_owned());
    }
}

async fn change(sessions: &[Mutex<Session>], job: u64) -> Outcome {
    let at = usize::try_from(job % SESSIONS).unwrap_or(0);
    let session = sessions[at].lock().await;
    let row = i32::try_from(job % ROWS).unwrap_or(0);
    let changed = session
        .client
        .execute(include_str!("order.sql"), &[&row])
        .await;
    let made = match job.is_multiple_of(TABLE_EVERY) {
        true => {
            session
                .client
                .batch_execute(include_str!("catalogue.sql"))
                .await
        }
        false => Ok(()),
    };
    match changed.and(made.map(|()| 1)) {
        Ok(_) => Outcome::Done,
        Err(why) => Outcome::Retry {
            error: why.to_string(),
            after: None,
        },
    }
}

async fn produce(
    rowlock: Rowlock,
    rate: usize,
    stored: Arc<AtomicU64>,
    mut stop: rowlock::run::Stop,
) -> Result<()> {
    let (watch, clock) = (Stopwatch::start(), Clock::system());
    let batch = (rate / BATCHES).max(1);
    let job = NewJob::new(KIND)?.payload(Payload::parse("{}")?);
    let mut made = 0;
    loop {
        let due = watch.elapsed().as_secs_f64() * as_f64(rate);
        if as_f64(made + batch) > due {
            tokio::select! {
                () = clock.sleep(Duration::from_secs(1) / u32::try_from(BATCHES)?) => continue,
                () = stop.asked() => return Ok(()),
            }
        }
        rowlock.enqueue_many(vec![job.clone(); batch]).await?;
        made += batch;
        stored.fetch_add(u64::try_from(batch)?, Ordering::AcqRel);
    }
}
