//! Three people with a long report each, again and again; all at once, or one after another by a budget.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use rowlock::run::Stopper;
use rowlock::run::task::Tasks;
use rowlock::{Budget, Clock};
use tokio_postgres::Client;

use crate::server::Server;

/// The workload class that they belong to.
pub(super) const CLASS: &str = "analytics";
/// How many.
pub(super) const PEOPLE: usize = 3;

pub(super) struct Reports {
    /// The server's processes that serve them.
    pub(super) pids: Vec<i32>,
    stopper: Stopper,
    tasks: Tasks,
    failed: Arc<Mutex<Option<String>>>,
}

impl Reports {
    /// Each report takes `time`; they begin a third of it after one another.
    pub(super) async fn start(
        server: &Server,
        time: Duration,
        budget: Option<Budget>,
    ) -> Result<Self> {
        let mut reports = Self {
            pids: Vec::new(),
            stopper: Stopper::default(),
            tasks: Tasks::default(),
            failed: Arc::default(),
        };
        for n in 0..PEOPLE {
            let session = server.session().await?;
            let row = session
                .client
                .query_one("SELECT pg_backend_pid()", &[])
                .await?;
            reports.pids.push(row.get(0));
            let (budget, mut stop) = (budget.clone(), reports.stopper.stop());
            let (first, failed) = (
                time / u32::try_from(PEOPLE)? * u32::try_from(n)?,
                Arc::clone(&reports.failed),
            );
            reports.tasks.start("bench-report", async move {
                let mut session = session;
                Clock::system().sleep(first).await;
                let again = async {
                    loop {
                        let done = match &budget {
                            Some(budget) => in_turn(budget, &mut session.client, time).await,
                            None => at_once(&session.client, time).await,
                        };
                        if let Err(why) = done {
                            return why;
                        }
                    }
                };
                let why = tokio::select! {
                    why = again => why,
                    // Its connection goes with it, and its transaction with that.
                    () = stop.asked() => return,
                };
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(format!("{why:#}"));
            });
        }
        Ok(reports)
    }

    pub(super) fn check(&self) -> Result<()> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        anyhow::ensure!(
            failed.is_none(),
            "a report failed: {}",
            failed.as_deref().unwrap_or_default()
        );
        Ok(())
    }

    pub(super) async fn end(mut self) -> Result<()> {
        self.check()?;
        self.stopper.ask();
        self.tasks.join().await;
        Ok(())
    }
}

/// Looks at all orders, and goes on reading what it saw then.
async fn at_once(client: &Client, time: Duration) -> Result<()> {
    client
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        .await?;
    client.query(include_str!("report.sql"), &[]).await?;
    client.query(PAGES, &[&time.as_secs_f64()]).await?;
    client.batch_execute("COMMIT").await?;
    Ok(())
}

async fn in_turn(budget: &Budget, client: &mut Client, time: Duration) -> Result<()> {
    budget
        .run(CLASS, client, async |tx| {
            tx.query(include_str!("report.sql"), &[]).await?;
            tx.query(PAGES, &[&time.as_secs_f64()]).await?;
            anyhow::Ok(())
        })
        .await
}

/// Its statement holds its snapshot for as long.
const PAGES: &str = "/* class:analytics */ SELECT count(*), pg_sleep($1) FROM public.orders";
