//! `rowlock dev`: a store and a worker with demo kinds, to try things out.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use rowlock::job::Backoff;
use rowlock::run::{Builtin, Runner, Signals};
use rowlock::{Kind, reconcile};

use super::apply::check;
use super::work::{Declared, block, declare, scheduled, serve};
use crate::cli::Dev;
use crate::http::Http;
use crate::open::{Access, Setup};
use crate::{exit, out};

/// Where it listens when nobody says so.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7878);

pub async fn run(setup: &Setup, how: &Dev) -> Result<u8> {
    let configured = setup.config.runners()?;
    let crons = setup.config.crons()?;
    let (rowlock, created) = setup.open_quietly(Access::Write).await?;
    let pairs = setup.pairs()?;
    if setup.file.is_some() {
        check(&rowlock, &pairs).await?;
        rowlock.operate().apply(&setup.config.kinds()?).await?;
        rowlock.schedule().declare_pairs(&pairs, true).await?;
        reconcile::declare_crons(&*rowlock.schedule(), &crons, true).await?;
    }
    let mut handlers = demo()?;
    handlers.retain(|(kind, _)| configured.iter().all(|(other, _)| other.name != kind.name));
    handlers.extend(configured);
    declare(&rowlock, &handlers).await?;
    let options = setup.config.options();
    let http = listen(how).await?;
    let signals = Signals::listen()?;
    let scheduled = scheduled(setup, &rowlock).await?;
    block(
        setup,
        created,
        &handlers,
        &options,
        scheduled,
        http.as_ref(),
    );
    out::note(
        "Try:  rowlock enqueue echo '{\"hello\":\"world\"}'        (Ctrl-C stops, twice at once)",
    );
    let declared = Declared {
        handlers,
        pairs,
        crons,
    };
    serve(rowlock, declared, options, http, signals).await?;
    Ok(exit::OK)
}

/// A port that was asked for must be had; the usual one may be taken by another `dev`.
async fn listen(how: &Dev) -> Result<Option<Http>> {
    if let Some(address) = how.listen {
        return Http::bind(address).await.map(Some);
    }
    let bound = Http::bind(LISTEN).await;
    if let Err(why) = &bound {
        out::warn(&format!(
            "{why:#}: going on without /metrics, /livez and /readyz, or choose another port with \
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
