//! Where the rows are: a file, or a schema on a server; each load begins with a new one.

use anyhow::Result;
use rowlock::drain::Route;
use rowlock::engine::postgres::{self, drop_schema};
use rowlock::engine::sqlite;
use rowlock::{Clock, NewJob, Payload, Rowlock};

use super::{KIND, PAYLOAD};
use crate::Place;
use crate::server::Server;

/// Jobs in one call of a bulk enqueue.
const BATCH: usize = 1_000;

pub(super) enum Store<'a> {
    File(&'a Place),
    Server(&'a Server),
}

impl Store<'_> {
    /// A new store, in the place of the one before, with so many due jobs that go by a route.
    pub(super) async fn staged(&self, route: &Route, jobs: usize) -> Result<Rowlock> {
        let rowlock = match self {
            Self::File(place) => {
                let path = place.file("rows.db");
                place.remove(&path);
                let url = format!("sqlite:{}", path.display());
                sqlite::migrate_up(&sqlite::Address::parse(&url)?, &Clock::system())?;
                Rowlock::open(&url)?
            }
            Self::Server(server) => {
                drop_schema(&server.address).await?;
                postgres::migrate_up(&server.address).await?;
                server.open().await?
            }
        };
        declare(&rowlock, route).await?;
        stage(&rowlock, jobs).await?;
        if let Self::Server(server) = self {
            server.checkpoint().await?;
        }
        Ok(rowlock)
    }
}

/// What goes by a route, and the row that holds what it has sent.
pub(super) async fn declare(rowlock: &Rowlock, route: &Route) -> Result<()> {
    let routes = rowlock.routes();
    routes
        .declare_route(&route.name, &route.kinds, &route.queues, true)
        .await?;
    let lease = rowlock::drain::Options::default().lease;
    routes.keep_route(&route.holder(), lease).await?;
    Ok(())
}

pub(super) fn job() -> Result<NewJob> {
    Ok(NewJob::new(KIND)?.payload(Payload::parse(PAYLOAD)?))
}

pub(super) async fn stage(rowlock: &Rowlock, jobs: usize) -> Result<()> {
    let job = job()?;
    for start in (0..jobs).step_by(BATCH) {
        let batch = vec![job.clone(); BATCH.min(jobs - start)];
        rowlock.enqueue_many(batch).await?;
    }
    Ok(())
}
