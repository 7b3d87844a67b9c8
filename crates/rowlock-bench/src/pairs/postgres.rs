//! On a server: the rows and the jobs in one database, in schemas of the run's own.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rowlock::Clock;
use rowlock::engine::postgres::{drop_schema, migrate_up};

use super::{BATCH, IDLE_TICKS, KIND, Rounds, Size};
use crate::server::Server;
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Bound, Measurement, Progress};

/// How long sessions may take to end, and how often they are looked for.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

pub(super) async fn run(
    size: Size,
    url: &str,
    say: Progress<'_>,
    stop: impl Future<Output = ()>,
) -> Result<Option<Vec<Measurement>>> {
    let server = Server::new(url)?;
    let measured = tokio::select! {
        measured = server.measure(size, say) => measured.map(Some),
        () = stop => Ok(None),
    };
    // Whatever happened, nothing of it stays.
    let left_over = || format!("the schema {} is left over, drop it", server.schema);
    drop_schema(&server.address).await.with_context(left_over)?;
    measured
}

impl Server {
    async fn measure(&self, size: Size, say: Progress<'_>) -> Result<Vec<Measurement>> {
        let mut rounds = Rounds::default();
        let mut scans = Vec::new();
        let query = self.put(super::QUERY);
        for round in 1..=size.rounds {
            say(&format!(
                "round {round} of {}: {} rows",
                size.rounds, size.rows
            ));
            self.fill(size.rows).await?;
            rounds.ours(&self.open().await?, size.rows, &query).await?;
            self.each(include_str!("sql/postgres_settled.sql")).await?;
            let before = self.scans().await?;
            rounds.idle(&self.open().await?, &query).await?;
            let looks = usize::try_from(self.scans().await? - before)?;
            scans.push(as_f64(looks) / as_f64(IDLE_TICKS + 1));
            drop_schema(&self.address).await?;
            self.fill(size.rows).await?;
            self.each(include_str!("sql/postgres_plain_table.sql"))
                .await?;
            rounds.plain.push(self.plain(size.rows).await?);
            drop_schema(&self.address).await?;
        }
        let mut all = rounds.measurements("pairs_postgres", size.rows);
        if let Some(idle) = all.pop() {
            let scans = crate::measurement::median(&scans);
            let idle = idle.with("index_scans", scans);
            all.push(idle.goal("index_scans", Bound::AtMost(1.0)));
        }
        Ok(all)
    }

    async fn fill(&self, rows: usize) -> Result<()> {
        migrate_up(&self.address).await?;
        let text = include_str!("sql/postgres_rows.sql").replace("1000000", &rows.to_string());
        self.each(&text).await?;
        self.checkpoint().await
    }

    /// How often the rows' table was looked into, in whatever way.
    async fn scans(&self) -> Result<i64> {
        let session = self.session().await?;
        let others = include_str!("sql/postgres_others.sql");
        let clock = Clock::system();
        // A session tells what it did at its end, and before that whenever it likes.
        let ended = clock.timeout(PATIENCE, async {
            loop {
                let row = session.client.query_one(others, &[&self.schema]).await?;
                if row.get::<_, i64>(0) == 0 {
                    return anyhow::Ok(());
                }
                clock.sleep(LOOK).await;
            }
        });
        ended
            .await
            .context("sessions of the run's own stay open")??;
        let text = self.put(include_str!("sql/postgres_scans.sql"));
        Ok(session.client.query_one(&text, &[]).await?.get(0))
    }

    /// Plain statements, as somebody would write them who wants a job for each row and nothing else.
    async fn plain(&self, rows: usize) -> Result<f64> {
        let session = self.session().await?;
        let text = self.put(include_str!("sql/postgres_plain.sql"));
        let insert = session.client.prepare(&text).await?;
        let watch = Stopwatch::start();
        let (mut last, mut all) = (i64::MIN, 0);
        loop {
            let batch = i64::try_from(BATCH)?;
            let row = session
                .client
                .query_one(&insert, &[&KIND, &last, &batch])
                .await?;
            let (made, reached): (i64, Option<i64>) = (row.get(0), row.get(1));
            all += usize::try_from(made)?;
            last = match reached {
                Some(reached) if made == batch => reached,
                _ => break,
            };
        }
        ensure!(all == rows, "{all} of {rows} rows were taken");
        Ok(watch.elapsed().as_secs_f64())
    }
}
