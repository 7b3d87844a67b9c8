//! `rowlock dev`: a store and a worker with demo kinds, to try things out.

use std::time::Duration;

use anyhow::Result;
use rowlock::Kind;
use rowlock::job::Backoff;
use rowlock::run::{Builtin, Runner};

use super::work::{block, declare, serve};
use crate::open::{Access, Setup};
use crate::{exit, out};

pub async fn run(setup: &Setup) -> Result<u8> {
    let configured = setup.config.runners()?;
    let (rowlock, created) = setup.open_quietly(Access::Write)?;
    if setup.file.is_some() {
        rowlock.operate().apply(&setup.config.kinds()?).await?;
    }
    let mut handlers = demo()?;
    handlers.retain(|(kind, _)| configured.iter().all(|(other, _)| other.name != kind.name));
    handlers.extend(configured);
    declare(&rowlock, &handlers).await?;
    let options = setup.config.options();
    block(setup, created, &handlers, &options);
    out::note(
        "Try:  rowlock enqueue echo '{\"hello\":\"world\"}'        (Ctrl-C stops, twice at once)",
    );
    serve(rowlock, handlers, options).await?;
    Ok(exit::OK)
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
