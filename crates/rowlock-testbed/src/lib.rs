//! Real processes, servers and files for Rowlock's own tests.
//!
//! A test waits for an observed event (a line, an exit, an answer) with a deadline that can only fail
//! it; it never sleeps and hopes.

mod deadline;
mod pgbouncer;
mod port;
mod postgres;
mod process;
mod proxy;
mod redis;
mod session;
mod sidekiq;
mod terminal;
mod warden;

pub use self::deadline::until;
pub use self::pgbouncer::PgBouncer;
pub use self::port::{ClosedPort, free as free_port};
pub use self::postgres::{Database, Postgres, Stop};
pub use self::process::{Finished, Process};
pub use self::proxy::Proxy;
pub use self::redis::Redis;
pub use self::session::{Answer, Rows, Session};
pub use self::sidekiq::{Sidekiq, SidekiqRun};
pub use self::terminal::Terminal;
pub use ::postgres as postgres_client;
pub use tempfile::TempDir;

use std::path::PathBuf;

/// A folder that is gone at the end of the test.
///
/// # Panics
/// When the system's temporary folder can't be written.
#[must_use]
pub fn folder() -> TempDir {
    #[expect(clippy::expect_used, reason = "a test without its folder has failed")]
    tempfile::Builder::new()
        .prefix("rowlock-")
        .tempdir()
        .expect("a temporary folder")
}

/// The root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.join("../..").canonicalize().unwrap_or(here)
}
