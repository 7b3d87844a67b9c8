//! On a server: the rows and the jobs in one database, in schemas of the run's own.

use anyhow::{Context, Result, ensure};
use rowlock::engine::postgres::{Address, Postgres, Schema, drop_schema, migrate_up};
use rowlock::job::Token;
use rowlock::run::task::Tasks;
use rowlock::{Clock, Rowlock};
use tokio_postgres::{Client, NoTls};

use super::{BATCH, IDLE_TICKS, KIND, Rounds, Size};
use crate::stopwatch::{Stopwatch, as_f64};
use crate::{Bound, Measurement, Progress};

pub(super) async fn run(
    size: Size,
    url: &str,
    say: Progress<'_>,
    stop: impl Future<Output = ()>,
) -> Result<Option<Vec<Measurement>>> {
    let schema = format!("rowlock_bench_{:x}", Token::random()?.get());
    let mut address = Address::parse(url)?;
    address.schema = Schema::new(&schema)?;
    let mut tasks = Tasks::default();
    let client = connect(url, &mut tasks).await?;
    let measured = tokio::select! {
        measured = measure(size, &address, &client, say) => measured.map(Some),
        () = stop => Ok(None),
    };
    // Whatever happened, nothing of it stays.
    drop_schema(&address)
        .await
        .with_context(|| format!("the schema {schema} is left over, drop it"))?;
    measured
}

async fn connect(url: &str, tasks: &mut Tasks) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .context("can't reach the server")?;
    tasks.start("bench-connection", async move {
        // Its end is the client's.
        let _ = connection.await;
    });
    Ok(client)
}

async fn measure(
    size: Size,
    address: &Address,
    client: &Client,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    let schema = address.schema.as_str();
    let put = |text: &str| text.replace("bench.", &format!("{schema}."));
    let mut rounds = Rounds::default();
    let mut scans = Vec::new();
    for round in 1..=size.rounds {
        say(&format!(
            "round {round} of {}: {} rows",
            size.rounds, size.rows
        ));
        migrate_up(address).await?;
        fill(client, &put, size.rows).await?;
        let engine = Postgres::open(address.clone(), Clock::system()).await?;
        let rowlock = Rowlock::with(engine, Clock::system());
        rounds.ours(&rowlock, size.rows, &put(super::QUERY)).await?;
        each(client, &put(include_str!("sql/postgres_settled.sql"))).await?;
        let before = index_scans(client, &put(include_str!("sql/postgres_scans.sql"))).await?;
        rounds.idle(&rowlock, &put(super::QUERY)).await?;
        let after = index_scans(client, &put(include_str!("sql/postgres_scans.sql"))).await?;
        scans.push(as_f64(usize::try_from(after - before)?) / as_f64(IDLE_TICKS));
        drop(rowlock);
        drop_schema(address).await?;
        migrate_up(address).await?;
        fill(client, &put, size.rows).await?;
        client
            .batch_execute(&put(include_str!("sql/postgres_plain_table.sql")))
            .await?;
        rounds.plain.push(
            plain(
                client,
                &put(include_str!("sql/postgres_plain.sql")),
                size.rows,
            )
            .await?,
        );
        drop_schema(address).await?;
    }
    let mut all = rounds.measurements("pairs_postgres", size.rows);
    if let Some(idle) = all.pop() {
        let scans = crate::measurement::median(&scans);
        all.push(
            idle.with("index_scans", scans)
                .goal("index_scans", Bound::AtMost(1.0)),
        );
    }
    Ok(all)
}

async fn fill(client: &Client, put: &impl Fn(&str) -> String, rows: usize) -> Result<()> {
    let text = include_str!("sql/postgres_rows.sql").replace("1000000", &rows.to_string());
    each(client, &put(&text)).await?;
    // So that nobody pays for what the other side wrote. Not everybody may ask for it.
    let _ = client.batch_execute("CHECKPOINT").await;
    Ok(())
}

/// Statements one by one: some of them can't share a transaction.
async fn each(client: &Client, text: &str) -> Result<()> {
    for statement in text.split(";\n").filter(|each| !each.trim().is_empty()) {
        client.batch_execute(statement).await?;
    }
    Ok(())
}

/// How often the rows' table was looked into, in whatever way.
async fn index_scans(client: &Client, text: &str) -> Result<i64> {
    // Statistics of other sessions are told when those go idle for a while, or at their end.
    let clock = Clock::system();
    let mut last = -1;
    loop {
        let row = client.query_one(text, &[]).await?;
        let now: i64 = row.get(0);
        if now == last {
            return Ok(now);
        }
        last = now;
        clock.sleep(std::time::Duration::from_millis(1_500)).await;
    }
}

/// Plain statements, as somebody would write them who wants a job for each row and nothing else.
async fn plain(client: &Client, text: &str, rows: usize) -> Result<f64> {
    let insert = client.prepare(text).await?;
    let watch = Stopwatch::start();
    let (mut last, mut all) = (i64::MIN, 0);
    loop {
        let batch = i64::try_from(BATCH)?;
        let row = client.query_one(&insert, &[&KIND, &last, &batch]).await?;
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
