//! Long reports beside a busy queue: what pins the horizon, what it costs the application's own tables, and what
//! a budget and the guard's remedies change about it.
//!
//! 500 jobs a second, each of which changes a row. First three reports overlap, so that one is always open; then
//! the same with a budget of one, where the horizon moves whenever one has ended. Then a prepared transaction and
//! an abandoned replication slot, each before and after its remedy. The application's table is vacuumed at every
//! look, so what is counted as dead is what can't be removed.

mod load;
mod reports;
mod watch;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rowlock::guard::{Class, What};
use rowlock::{Budget, Name};

use self::load::Load;
use self::reports::{CLASS, Reports};
use self::watch::{Moment, Watch};
use crate::databases::Databases;
use crate::measurement::percentile;
use crate::recorder::{self, Times};
use crate::server::Server;
use crate::stopwatch::as_f64;
use crate::{Bound, Measurement, Progress};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Jobs a second.
    pub rate: usize,
    /// How long a report takes.
    pub report: Duration,
    /// How long reports are watched.
    pub reports: Duration,
    /// How long a prepared transaction or a slot is watched, and as long again without it.
    pub pinned: Duration,
    /// How often is looked.
    pub every: Duration,
}

impl Size {
    /// For figures: some twelve minutes.
    #[must_use]
    pub fn full() -> Self {
        Self {
            rate: 500,
            report: Duration::from_secs(60),
            reports: Duration::from_secs(240),
            pinned: Duration::from_secs(60),
            every: Duration::from_secs(2),
        }
    }

    /// For shape and counts: its times mean nothing.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            rate: 100,
            report: Duration::from_secs(1),
            reports: Duration::from_secs(4),
            pinned: Duration::from_secs(1),
            every: Duration::from_millis(200),
        }
    }
}

/// Measures in databases of its own, which are gone at the end, also when `stop` comes first: the answer is nothing
/// then.
///
/// # Errors
/// When the server can't be used, a job was not done, or the guard did not name who pins the horizon.
pub async fn run(
    size: Size,
    url: &str,
    say: Progress<'_>,
    stop: impl Future<Output = ()>,
) -> Result<Option<Vec<Measurement>>> {
    let server = Server::new(url)?;
    needs(&server).await?;
    let databases = Databases::new(&server)?;
    ensure!(
        databases.make().await?,
        "this role can't make databases, which it needs two of (ALTER ROLE ... CREATEDB)"
    );
    let [first, second] = databases.servers()?;
    let times = recorder::install()?;
    let measured = tokio::select! {
        measured = measure(&size, [&first, &second], &times, say) => measured.map(Some),
        () = stop => Ok(None),
    };
    // Whatever happened, nothing of it stays: neither could the databases go with them.
    let forgotten = async {
        let session = first.session().await?;
        let _ = session.client.batch_execute(&rolled_back(&first)).await;
        let _ = session.client.batch_execute(&dropped(&first)).await;
        anyhow::Ok(())
    };
    let _ = forgotten.await;
    databases.drop().await?;
    measured
}

async fn needs(server: &Server) -> Result<()> {
    let session = server.session().await?;
    let row = session
        .client
        .query_one(include_str!("needs.sql"), &[])
        .await?;
    ensure!(
        row.get::<_, bool>(0) && row.get::<_, bool>(1),
        "this server can't prepare transactions or has no logical slots: set max_prepared_transactions = 10 and \
         wal_level = logical in postgresql.conf, and restart it"
    );
    Ok(())
}

async fn measure(
    size: &Size,
    [first, second]: [&Server; 2],
    times: &Times,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    say("three reports at once");
    let free = reports(size, first, times, false, say).await?;
    say("three reports, and a budget of one");
    let budget = reports(size, second, times, true, say).await?;
    let budget = compare(budget, &free);
    say("a prepared transaction, and then none");
    let prepared = pinned(size, first, times, say, &PREPARED).await?;
    say("an abandoned slot, and then none");
    let slot = pinned(size, first, times, say, &SLOT).await?;
    Ok(vec![free, budget, prepared, slot])
}

async fn reports(
    size: &Size,
    server: &Server,
    times: &Times,
    budgeted: bool,
    say: Progress<'_>,
) -> Result<Measurement> {
    let load = Load::start(server, size.rate).await?;
    let class = Class::new(Name::new(CLASS)?, if budgeted { 1 } else { 3 })?;
    load.rowlock.watch().declare_class(&class).await?;
    let budget = budgeted.then(|| {
        let patience = size.reports + size.report * 4;
        Budget::default()
            .schema(server.address.schema.clone())
            .wait(patience)
    });
    let reports = Reports::start(server, size.report, budget).await?;
    let mut watch = Watch::new(server, &load, times).await?;
    watch.run(&load, size.reports, size.every, say).await?;
    for pid in &reports.pids {
        watch.ensure_session(*pid, CLASS)?;
    }
    let (seen, pids) = (std::mem::take(&mut watch.seen), reports.pids.len());
    reports.end().await?;
    let jobs = load.end().await?;
    let step = if budgeted {
        "one_report_at_a_time"
    } else {
        "three_reports_at_once"
    };
    // Before the first of them has run, nothing is as it will be.
    let steady: Vec<Moment> = seen
        .iter()
        .filter(|each| each.at > size.report.as_secs_f64())
        .cloned()
        .collect();
    ensure!(!steady.is_empty(), "it was too short to see anything");
    let made = figures(step, jobs, &steady).with("named_by_guard", as_f64(pids));
    Ok(series(made, &seen))
}

/// What a budget changes: the horizon moves, and what is dead goes.
fn compare(budget: Measurement, free: &Measurement) -> Measurement {
    let of = |figure: &str| {
        let (with, without) = (budget.figure(figure), free.figure(figure));
        with.unwrap_or(f64::NAN) / without.unwrap_or(f64::NAN).max(1e-9)
    };
    let (age, dead) = (of("horizon_age_min"), of("dead_orders_min"));
    budget
        .with("age_of_without", age)
        .goal("age_of_without", Bound::AtMost(0.5))
        .with("dead_of_without", dead)
        .goal("dead_of_without", Bound::AtMost(0.5))
        .goal("backlog_max", Bound::AtMost(1_000.0))
}

/// Something that only people end.
struct Held {
    step: &'static str,
    what: What,
    begin: fn(&Server) -> String,
    remedy: fn(&Server) -> String,
    /// The rows that it keeps.
    keeps: Value,
}

const PREPARED: Held = Held {
    step: "prepared_transaction",
    what: What::Prepared,
    begin: |server| {
        format!(
            "BEGIN; INSERT INTO public.orders VALUES (-1, 0); PREPARE TRANSACTION '{}'",
            server.schema
        )
    },
    remedy: rolled_back,
    keeps: |each| each.dead,
};

const SLOT: Held = Held {
    step: "abandoned_slot",
    what: What::Slot,
    begin: |server| {
        format!(
            // It goes with its session, however that ends.
            "SELECT pg_create_logical_replication_slot('{}', 'pgoutput', true)",
            server.schema
        )
    },
    remedy: dropped,
    // A logical slot keeps rows of the catalogue only.
    keeps: |each| each.catalogue,
};

fn rolled_back(server: &Server) -> String {
    format!("ROLLBACK PREPARED '{}'", server.schema)
}

fn dropped(server: &Server) -> String {
    format!("SELECT pg_drop_replication_slot('{}')", server.schema)
}

/// Watches it, ends it as `rowlock guard` and `rowlock doctor` advise, and watches on.
async fn pinned(
    size: &Size,
    server: &Server,
    times: &Times,
    say: Progress<'_>,
    held: &Held,
) -> Result<Measurement> {
    let load = Load::start(server, size.rate).await?;
    let session = server.session().await?;
    let begun = session.client.batch_execute(&(held.begin)(server)).await;
    begun.with_context(|| format!("can't begin: {}", held.step))?;
    let mut watch = Watch::new(server, &load, times).await?;
    watch.run(&load, size.pinned, size.every, say).await?;
    watch.ensure_named(held.what, &server.schema)?;
    let ended = session.client.batch_execute(&(held.remedy)(server)).await;
    ended.context("the remedy failed")?;
    say("the remedy");
    let before = watch.seen.len();
    watch.run(&load, size.pinned, size.every, say).await?;
    let seen = std::mem::take(&mut watch.seen);
    let jobs = load.end().await?;
    let kept = |of: &[Moment]| of.last().map_or(f64::NAN, held.keeps);
    let (then, now) = (kept(&seen[..before]), kept(&seen));
    let made = figures(held.step, jobs, &seen)
        .with("dead_before_remedy", then)
        .with("dead_after_remedy", now)
        .with("after_of_before", now / then.max(1.0))
        .goal("after_of_before", Bound::AtMost(0.1))
        .with("remedy_at", seen[before.saturating_sub(1)].at)
        .with("log_kept_before", seen[before.saturating_sub(1)].log);
    let mut made = series(made, &seen);
    made.runs
        .insert("kept_dead_rows", seen.iter().map(held.keeps).collect());
    Ok(made)
}

/// One of what is seen.
type Value = fn(&Moment) -> f64;

fn figures(step: &'static str, jobs: usize, seen: &[Moment]) -> Measurement {
    let all: Vec<f64> = seen
        .iter()
        .flat_map(|each| each.claims.iter().copied())
        .collect();
    let of = |value: Value, fold: fn(f64, f64) -> f64, from: f64| {
        seen.iter().map(value).fold(from, fold)
    };
    let mut made = Measurement::new(step, "ms", jobs)
        .ours(&[percentile(&all, 0.99)])
        .with("claim_p50", percentile(&all, 0.5))
        .with(
            "horizon_age_min",
            of(|each| each.age, f64::min, f64::INFINITY),
        )
        .with("horizon_age_max", of(|each| each.age, f64::max, 0.0))
        .with(
            "horizon_transactions_max",
            of(|each| each.behind, f64::max, 0.0),
        )
        .with(
            "dead_orders_min",
            of(|each| each.dead, f64::min, f64::INFINITY),
        )
        .with("dead_orders_max", of(|each| each.dead, f64::max, 0.0))
        .with("dead_ours_max", of(|each| each.ours, f64::max, 0.0))
        .with("backlog_max", of(|each| each.backlog, f64::max, 0.0));
    made.bench = "horizon";
    made
}

fn series(mut made: Measurement, seen: &[Moment]) -> Measurement {
    let all: [(&'static str, Value); 8] = [
        ("seconds", |each| each.at),
        ("horizon_age", |each| each.age),
        ("horizon_transactions", |each| each.behind),
        ("dead_orders", |each| each.dead),
        ("dead_ours", |each| each.ours),
        ("dead_catalogue", |each| each.catalogue),
        ("backlog", |each| each.backlog),
        ("claim_p99_ms", |each| percentile(&each.claims, 0.99)),
    ];
    for (name, value) in all {
        made.runs.insert(name, seen.iter().map(value).collect());
    }
    made
}
