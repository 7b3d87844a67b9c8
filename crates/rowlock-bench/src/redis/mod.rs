//! Draining to Redis: what a drain and workers without a database reach, beside a bare claim, a bare
//! script and workers that pop one by one; under an old snapshot; and what it costs when Redis is away.
//!
//! Rows are in a file of the run's own, with a server also in a schema and in databases of its own there.
//! Redis keeps nothing on disk, on every side.

mod away;
mod bare;
mod broker;
mod counted;
mod pinned;
mod sent;
mod store;
mod taken;

use anyhow::{Context, Result};
use rowlock::engine::postgres::drop_schema;

use self::broker::Broker;
use self::store::Store;
use crate::databases::Databases;
use crate::server::Server;
use crate::{Measurement, Place, Progress};

const KIND: &str = "noop";
/// What every job carries.
const PAYLOAD: &str = r#"{"to":"ada@example.com","subject":"hello"}"#;
/// Slots of a worker, and workers that pop one by one.
const SLOTS: usize = 64;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// How often ours and others take turns.
    pub rounds: usize,
    /// How often two states of ours take turns.
    pub alternations: usize,
    /// Rows waiting before a drain.
    pub backlog: usize,
    /// Jobs waiting in Redis before workers come.
    pub pushed: usize,
    /// The same before workers that pop one by one.
    pub popped: usize,
    /// Rows that have gone through under an old snapshot, and as many without.
    pub under: usize,
    /// Rows of a part whose rate is measured then.
    pub part: usize,
    /// Enqueues that are timed while Redis is there.
    pub before: usize,
    /// Enqueues that are timed while it is away.
    pub away: usize,
}

impl Size {
    /// For figures.
    #[must_use]
    pub fn full() -> Self {
        Self {
            rounds: 3,
            alternations: 5,
            backlog: 200_000,
            pushed: 100_000,
            popped: 30_000,
            under: 1_000_000,
            part: 50_000,
            before: 2_000,
            away: 20_000,
        }
    }

    /// For shape and counts: its times mean nothing.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            rounds: 1,
            alternations: 1,
            backlog: 2_500,
            pushed: 2_500,
            popped: 500,
            under: 2_000,
            part: 500,
            before: 20,
            away: 200,
        }
    }
}

/// Measures with a Redis that is given, or else with one of the run's own; and on a server, if there is
/// one. Nothing stays of it, also when `stop` comes first: the answer is nothing then.
///
/// # Errors
/// When there is no Redis, a store can't be written, or a load didn't handle exactly the jobs it should.
pub async fn run(
    size: Size,
    place: &Place,
    to: Option<&str>,
    server: Option<&str>,
    say: Progress<'_>,
    stop: impl Future<Output = ()>,
) -> Result<Option<Vec<Measurement>>> {
    let broker = match to {
        Some(url) => Broker::given(url).await?,
        None => Broker::start(place).await?,
    };
    say(&format!("Redis {}", broker.version().await?));
    let _stays = broker.stay().await?;
    if !broker.is_own() {
        // A Redis that doesn't tell who is connected keeps them until it is told to forget them.
        let _ = broker.sweep().await;
    }
    let server = server.map(Server::new).transpose()?;
    let databases = server.as_ref().map(Databases::new).transpose()?;
    let bench = Bench {
        size,
        place,
        broker: &broker,
        server: server.as_ref(),
        databases: databases.as_ref(),
        say,
    };
    let measured = tokio::select! {
        measured = bench.measure() => measured.map(Some),
        () = stop => Ok(None),
    };
    // Whatever happened, nothing of it stays.
    if let Some(databases) = &databases {
        databases.drop().await?;
    }
    if let Some(server) = &server {
        let left_over = || format!("the schema {} is left over, drop it", server.schema);
        drop_schema(&server.address).await.with_context(left_over)?;
    }
    let cleared = broker.clear().await;
    // A Redis that was away at the end has its own error.
    let measured = measured?;
    cleared.with_context(|| format!("keys below {} are left over", broker.keys("")))?;
    Ok(measured)
}

/// Removes from a Redis the keys of runs that are no more; says how many.
///
/// # Errors
/// When it can't be reached, or doesn't tell who is connected.
pub async fn clean(url: &str) -> Result<usize> {
    Broker::given(url).await?.sweep().await
}

struct Bench<'a> {
    size: Size,
    place: &'a Place,
    broker: &'a Broker,
    server: Option<&'a Server>,
    databases: Option<&'a Databases>,
    say: Progress<'a>,
}

impl Bench<'_> {
    async fn measure(&self) -> Result<Vec<Measurement>> {
        let (size, broker, say) = (&self.size, self.broker, self.say);
        let file = Store::File(self.place);
        let server = self.server.map(Store::Server);
        let mut all = vec![sent::measure(size, &file, broker, "drain_to_redis", say).await?];
        if let Some(server) = &server {
            let step = "drain_to_redis_postgres";
            all.push(sent::measure(size, server, broker, step, say).await?);
        }
        all.push(taken::measure(size, &file, broker, say).await?);
        if let Some(databases) = self.databases {
            match databases.make().await? {
                true => all.push(pinned::measure(size, databases, broker, say).await?),
                false => say(
                    "drain_under_the_pin is left out: this role can't make databases, \
                     which it needs two of (ALTER ROLE ... CREATEDB)",
                ),
            }
        }
        if broker.is_own() {
            all.push(away::measure(size, &file, broker, "redis_away", say).await?);
            if let Some(server) = &server {
                let step = "redis_away_postgres";
                all.push(away::measure(size, server, broker, step, say).await?);
            }
        } else {
            say("redis_away is left out: a Redis that is given is not killed");
        }
        Ok(all
            .into_iter()
            .map(|made| Measurement {
                bench: "redis",
                ..made
            })
            .collect())
    }
}
