//! Opens a store in a PostgreSQL database. Nothing is made here: `migrate up` is a decision of its own.

use anyhow::Result;
use rowlock::engine::postgres::{Address, Postgres, schema_version};
use rowlock::{Clock, Error, Rowlock};

use super::Setup;
use crate::exit;

pub async fn open(setup: &Setup, address: &Address) -> Result<Rowlock> {
    let clock = Clock::system();
    match Postgres::open(address.clone(), clock.clone()).await {
        Ok(engine) => {
            let engine = engine.keep_errors(setup.config.limits.errors_kept);
            Ok(Rowlock::with(engine, clock))
        }
        Err(why @ Error::Schema(_)) => Err(outdated(setup, address, why).await),
        Err(why) => Err(why.into()),
    }
}

/// The same complaint with the command that mends it, for this very store.
async fn outdated(setup: &Setup, address: &Address, why: Error) -> anyhow::Error {
    let version = match schema_version(address).await {
        Ok(version) if version.stored < version.latest => version,
        _ => return why.into(),
    };
    let has = match version.stored {
        0 => "no rowlock tables".to_owned(),
        old => format!("schema {old}"),
    };
    let up = setup.command("migrate up");
    exit::with(
        exit::SCHEMA,
        format!(
            "{address} has {has}, this rowlock needs schema {}: {up} brings it up to date",
            version.latest
        ),
    )
}
