//! `rowlock dev`: a store and a worker with demo kinds, to try things out.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use rowlock::job::Backoff;
use rowlock::run::{Builtin, Runner};
use rowlock::{Kind, reconcile};

use super::apply::check;
use super::drain;
use super::work::{
    Beside, Declared, From, block, declare, scheduler_line, serve, store_line, worker_line,
};
use crate::cli::Dev;
use crate::http::Http;
use crate::open::{Access, Setup};
use crate::web::{self, Door, Tokens};
use crate::{exit, out};

pub async fn run(setup: &Setup, how: &Dev) -> Result<u8> {
    let bind = how.listen.unwrap_or(setup.config.dashboard().bind);
    let door = Door::new(setup, bind, false)?;
    let tokens = Tokens::of_metrics(&setup.config.metrics())?;
    let configured = setup.config.runners()?;
    let crons = setup.config.crons()?;
    let (rowlock, created) = setup.open_quietly(Access::Write).await?;
    let (pairs, routes) = (setup.pairs()?, setup.routes()?);
    if setup.file.is_some() {
        check(&rowlock, &pairs).await?;
        drain::check(setup, &rowlock, &routes).await?;
        rowlock.operate().apply(&setup.config.kinds()?).await?;
        rowlock.schedule().declare_pairs(&pairs, true).await?;
        reconcile::declare_crons(&*rowlock.schedule(), &crons, true).await?;
        for route in &routes {
            let (name, kinds, queues) = (&route.name, &route.kinds, &route.queues);
            let store = rowlock.routes();
            store.declare_route(name, kinds, queues, true).await?;
        }
    }
    let mut handlers = demo()?;
    handlers.retain(|(kind, _)| configured.iter().all(|(other, _)| other.name != kind.name));
    handlers.extend(configured);
    declare(&rowlock, &handlers).await?;
    let options = setup.config.options();
    let served = web::site(setup, &rowlock, door)?;
    let http = listen(bind, how.listen.is_some()).await?;
    let http = http.map(|http| http.numbers_for(tokens).with(served));
    let mut beside = Beside::with(http)?;
    let mut lines = vec![store_line(setup, created), worker_line(&handlers, &options)];
    lines.extend(scheduler_line(setup, &rowlock).await?);
    lines.extend(routes.iter().map(drain::line));
    lines.extend(drain::elsewhere(&routes, &handlers));
    block(&lines, beside.http.as_ref());
    if !routes.is_empty() {
        let drained = drain::drain(&rowlock, routes, pairs.clone());
        beside.drain = Some(drained.options(drain::options(setup, None)));
    }
    out::note(
        "Try:  rowlock enqueue echo '{\"hello\":\"world\"}'        (Ctrl-C stops, twice at once)",
    );
    let declared = Declared {
        handlers,
        pairs,
        crons,
    };
    serve(From::Store(rowlock), declared, options, beside).await?;
    Ok(exit::OK)
}

/// A port that was asked for must be had; the usual one may be taken by another `dev`.
async fn listen(bind: SocketAddr, wanted: bool) -> Result<Option<Http>> {
    let bound = Http::bind(bind).await;
    if wanted {
        return bound.map(Some);
    }
    if let Err(why) = &bound {
        out::warn(&format!(
            "{why:#}: going on without the dashboard, the API, /metrics, /livez and /readyz, or choose another port with \
             --listen"
        ));
    }
    Ok(bound.ok())
}

/// Kinds that need no configuration.
fn demo() -> Result<Vec<(Kind, Runner)>> {
    let mut kinds = Vec::new();
    for builtin in [Builtin::Echo, Builtin::Sleep, Builtin::Flaky] {
        let mut kind = Kind::new(builtin.as_str())?;
        if builtin == Builtin::Flaky {
            // Nobody waits half a minute to see a retry.
            kind.backoff = Backoff::Fixed {
                base: Duration::from_secs(1),
                jitter: 0.0,
            };
        }
        kinds.push((kind, Runner::Builtin(builtin)));
    }
    Ok(kinds)
}
