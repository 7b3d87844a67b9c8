//! What Redis itself can do with bodies and results of the same sizes: one client with one script, and
//! workers that pop one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redis::aio::MultiplexedConnection;
use rowlock::Clock;
use rowlock::run::task::Tasks;
use tokio::sync::Notify;

use super::SLOTS;
use super::broker::Broker;
use crate::stopwatch::Stopwatch;

const PATIENCE: Duration = Duration::from_secs(300);
/// Bodies in one call that fills the list.
const BATCH: usize = 1_000;

/// What lies in Redis of each job.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    pub(super) body: String,
    pub(super) result: String,
}

/// Bodies that wait.
struct Lists {
    bodies: String,
    results: String,
}

impl Lists {
    async fn filled(
        broker: &Broker,
        connection: &mut MultiplexedConnection,
        shape: &Shape,
        jobs: usize,
    ) -> Result<Self> {
        let lists = Self {
            bodies: format!("{}:bare", broker.keys("")),
            results: format!("{}:bare_results", broker.keys("")),
        };
        for start in (0..jobs).step_by(BATCH) {
            let mut push = redis::cmd("RPUSH");
            push.arg(&lists.bodies);
            for _ in 0..BATCH.min(jobs - start) {
                push.arg(&shape.body);
            }
            push.exec_async(connection).await?;
        }
        Ok(lists)
    }

    async fn all_are_there(
        &self,
        connection: &mut MultiplexedConnection,
        jobs: usize,
    ) -> Result<()> {
        let mut count = redis::cmd("LLEN");
        count.arg(&self.results);
        let there: usize = count.query_async(connection).await?;
        ensure!(there == jobs, "{there} of {jobs} results are there");
        Ok(())
    }
}

/// One client, one script: the results of so many and the next so many bodies in one call.
pub(super) async fn scripted(
    broker: &Broker,
    shape: &Shape,
    jobs: usize,
    at_once: usize,
) -> Result<f64> {
    let mut connection = broker.connection().await?;
    let lists = Lists::filled(broker, &mut connection, shape, jobs).await?;
    let script = redis::Script::new(include_str!("bare.lua"));
    let watch = Stopwatch::start();
    let mut taken = 0;
    loop {
        let mut call = script.key(&lists.bodies);
        call.key(&lists.results).arg(at_once);
        for _ in 0..taken {
            call.arg(&shape.result);
        }
        let bodies: Option<Vec<Vec<u8>>> = call.invoke_async(&mut connection).await?;
        let Some(bodies) = bodies else { break };
        taken = bodies.len();
    }
    let rate = watch.rate(jobs);
    lists.all_are_there(&mut connection, jobs).await?;
    broker.clear().await?;
    Ok(rate)
}

/// As many connections as a worker has slots; each pops a body and pushes its result.
pub(super) async fn one_by_one(broker: &Broker, shape: &Shape, jobs: usize) -> Result<f64> {
    let mut connection = broker.connection().await?;
    let lists = Arc::new(Lists::filled(broker, &mut connection, shape, jobs).await?);
    let mut connections = Vec::new();
    for _ in 0..SLOTS {
        connections.push(broker.connection().await?);
    }
    let (done, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let mut tasks = Tasks::default();
    let watch = Stopwatch::start();
    for mut own in connections {
        let (lists, shape) = (Arc::clone(&lists), shape.clone());
        let (done, over) = (Arc::clone(&done), Arc::clone(&over));
        tasks.start("popper", async move {
            while pop(&mut own, &lists, &shape).await.is_ok() {
                if done.fetch_add(1, Ordering::Relaxed) + 1 == jobs {
                    over.notify_one();
                }
            }
        });
    }
    let ended = Clock::system().timeout(PATIENCE, over.notified()).await;
    ended.context("the bodies are not all popped")?;
    let rate = watch.rate(jobs);
    drop(tasks);
    lists.all_are_there(&mut connection, jobs).await?;
    broker.clear().await?;
    Ok(rate)
}

async fn pop(own: &mut MultiplexedConnection, lists: &Lists, shape: &Shape) -> Result<()> {
    let mut pop = redis::cmd("BRPOP");
    let (_, _): (String, Vec<u8>) = pop.arg(&lists.bodies).arg(0).query_async(own).await?;
    let mut push = redis::cmd("LPUSH");
    push.arg(&lists.results).arg(&shape.result);
    Ok(push.exec_async(own).await?)
}
