//! A private PgBouncer: between two transactions, a client's connection is somebody else's.

use crate::postgres::Postgres;
use crate::warden::Warden;
use crate::{port, until};
use std::path::{Path, PathBuf};

/// A PgBouncer in transaction mode in front of a server. It is gone when this value or the test
/// process is gone.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    _warden: Warden,
}

#[expect(
    clippy::panic,
    reason = "a test that can't run its PgBouncer has failed"
)]
impl PgBouncer {
    /// Starts one that keeps a few connections for each database.
    ///
    /// # Panics
    /// When it isn't installed or doesn't start.
    #[must_use]
    pub fn start(server: &Postgres) -> Self {
        Self::start_with(server, 10)
    }

    /// Starts one that keeps so many connections for each database: with a single one, every client is
    /// given what the others left behind.
    ///
    /// # Panics
    /// When it isn't installed or doesn't start.
    #[must_use]
    pub fn start_with(server: &Postgres, connections: u32) -> Self {
        let settings = format!(
            "[databases]
* = host=127.0.0.1 port={} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 500
ignore_startup_parameters = extra_float_digits",
            server.port()
        );
        let mut said = String::new();
        for _ in 0..5 {
            let warden = Warden::start(include_str!("warden.sh"), &[&program(), &settings]);
            let log = warden.answer().map(PathBuf::from);
            let log = log.unwrap_or_else(|why| panic!("no PgBouncer: {why}"));
            let port = port::free();
            if let Err(why) = warden.order(&format!("start {port}")) {
                panic!("no PgBouncer: {why}");
            }
            said = until("PgBouncer is up", || {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                let decided = said.contains("process up") || said.contains("FATAL");
                decided.then_some(said)
            });
            if !said.contains("FATAL") {
                return Self {
                    port,
                    _warden: warden,
                };
            }
        }
        panic!("PgBouncer doesn't start:\n{said}")
    }

    /// The URL of a database of the server behind it.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

#[expect(clippy::panic, reason = "a test without PgBouncer has failed")]
fn program() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // The PATH of ordinary users often lacks the second.
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join("pgbouncer"))
        .find(|file: &PathBuf| Path::is_file(file))
        .map(|file| file.to_string_lossy().into_owned())
        .unwrap_or_else(|| panic!("PgBouncer is missing. Type:  apt-get install -y pgbouncer"))
}
