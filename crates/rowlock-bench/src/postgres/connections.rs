//! The same loop on several connections at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, anyhow, ensure};
use rowlock::run::task::Tasks;
use tokio::sync::Mutex;

use super::PAYLOAD;
use crate::server::{Server, Session};
use crate::stopwatch::Stopwatch;

/// How many rows were handled, and how long it took: each connection runs `work` with its number until that
/// ends, and says how many it has handled.
pub(super) async fn at_once<F, W>(
    server: &Server,
    connections: usize,
    settings: &str,
    work: W,
) -> Result<(usize, Stopwatch)>
where
    W: Fn(usize, Arc<Session>) -> F,
    F: Future<Output = Result<usize>> + Send + 'static,
{
    let mut sessions = Vec::new();
    for _ in 0..connections {
        let session = server.session().await?;
        session.client.batch_execute(settings).await?;
        sessions.push(Arc::new(session));
    }
    let handled = Arc::new(AtomicUsize::new(0));
    let failed = Arc::new(Mutex::new(None));
    let mut tasks = Tasks::default();
    let watch = Stopwatch::start();
    for (n, session) in sessions.into_iter().enumerate() {
        let (handled, failed) = (Arc::clone(&handled), Arc::clone(&failed));
        let working = work(n, session);
        tasks.start("bench-connection", async move {
            match working.await {
                Ok(some) => _ = handled.fetch_add(some, Ordering::Relaxed),
                Err(why) => *failed.lock().await = Some(why),
            }
        });
    }
    tasks.join().await;
    let why = failed.lock().await.take();
    match why {
        Some(why) => Err(anyhow!(why)),
        None => Ok((handled.load(Ordering::Relaxed), watch)),
    }
}

/// The share of one of so many connections.
pub(super) fn share(all: usize, connections: usize, n: usize) -> usize {
    all / connections + usize::from(n < all % connections)
}

/// Whether a table has exactly the rows that were written.
pub(super) async fn ensure_rows(server: &Server, table: &str, rows: usize) -> Result<()> {
    let session = server.session().await?;
    let text = server.put(&format!("SELECT count(*) FROM bench.{table}"));
    let count: i64 = session.client.query_one(&text, &[]).await?.get(0);
    ensure!(
        usize::try_from(count)? == rows,
        "{count} of {rows} rows are there"
    );
    Ok(())
}

/// A prepared statement that stores one row and takes its payload, each in a transaction of its own.
pub(super) async fn insert_each(
    server: &Server,
    connections: usize,
    jobs: usize,
    text: &str,
    table: &str,
) -> Result<f64> {
    let (stored, watch) = at_once(server, connections, "", |n, session| {
        let (text, share) = (text.to_owned(), share(jobs, connections, n));
        async move {
            let insert = session.client.prepare(&text).await?;
            for _ in 0..share {
                session.client.execute(&insert, &[&PAYLOAD]).await?;
            }
            Ok(share)
        }
    })
    .await?;
    let rate = watch.rate(stored);
    ensure_rows(server, table, jobs).await?;
    Ok(rate)
}
