//! Opens a file. One that isn't there, or is empty, is made for a verb that writes.

use anyhow::Result;
use rowlock::engine::sqlite::{self, Address, Owner, Sqlite, Synchronous};
use rowlock::{Clock, Rowlock};

use super::{Access, Setup};
use crate::{exit, out, show};

pub fn open(setup: &Setup, address: &Address, access: Access) -> Result<(Rowlock, bool)> {
    let clock = Clock::system();
    let mut created = false;
    let path = show::path(&address.path);
    match owner(setup, address, access)? {
        Owner::Rowlock => {}
        Owner::Foreign => {
            return Err(exit::with(
                exit::SCHEMA,
                format!(
                    "{path} has another application's tables and none of rowlock's: {} adds ours \
                     beside them, or choose another file with --url",
                    setup.command("migrate up"),
                ),
            ));
        }
        Owner::Nobody if access == Access::Read => {
            return Err(exit::with(
                exit::SCHEMA,
                format!(
                    "{path} is empty: {} adds the tables",
                    setup.command("migrate up"),
                ),
            ));
        }
        // Two processes may do so at once: the lock decides who was first.
        Owner::Nobody => created = !sqlite::migrate_up(address, &clock)?.is_empty(),
    }
    if access == Access::Write {
        warn_of_loss(address);
    }
    let version = sqlite::schema_version(address)?;
    if version.stored < version.latest {
        return Err(exit::with(
            exit::SCHEMA,
            format!(
                "{path} has schema {}, this rowlock needs {}: {} brings it up to date",
                version.stored,
                version.latest,
                setup.command("migrate up"),
            ),
        ));
    }
    let engine =
        Sqlite::open(address.clone(), clock.clone())?.keep_errors(setup.config.limits.errors_kept);
    Ok((Rowlock::with(engine, clock), created))
}

pub fn owner(setup: &Setup, address: &Address, access: Access) -> Result<Owner> {
    // First: it knows of a log that was left behind.
    let owner = sqlite::owner(address)?;
    if access == Access::Read && !address.path.exists() {
        return Err(exit::with(
            exit::UNREACHABLE,
            format!(
                "{} doesn't exist: check --url, or make it with {}",
                show::path(&address.path),
                setup.command("migrate up"),
            ),
        ));
    }
    Ok(owner)
}

fn warn_of_loss(address: &Address) {
    if address.synchronous == Synchronous::Normal {
        out::warn(
            "synchronous=normal: a power cut can lose the last jobs that were already answered \
             as queued, and the last results; the file stays whole",
        );
    }
}
