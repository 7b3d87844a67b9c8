//! Private PostgreSQL servers. A server is gone when its value or its test process is gone, even when
//! the process was killed.

mod binaries;
mod database;

pub use database::Database;

use crate::session::Session;
use crate::warden::{Warden, unprivileged};
use crate::{port, until};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Fast, since no test cuts the power of this server; otherwise as in production. Logical decoding and
/// prepared transactions are there for the tests that need them.
const SETTINGS: &str = "listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
full_page_writes = off
synchronous_commit = on
shared_buffers = 64MB
max_connections = 300
max_prepared_transactions = 10
wal_level = logical
timezone = 'UTC'
log_timezone = 'UTC'
logging_collector = off";

/// A PostgreSQL server on 127.0.0.1; `postgres` is its superuser, without a password.
#[derive(Debug)]
pub struct Postgres {
    /// All of its URL that comes before the database's name.
    base: String,
    port: u16,
    templates: database::Templates,
    server: Option<Server>,
}

/// What only exists for a server that we have started.
#[derive(Debug)]
struct Server {
    warden: Warden,
    data: PathBuf,
    log: PathBuf,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Waits until every client has gone.
    Smart,
    /// Rolls back what is open and disconnects everybody.
    Fast,
    /// As a crash: the next start recovers.
    Immediate,
}

#[expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't run its server has failed"
)]
impl Postgres {
    /// The server of this test process, started by whoever asks first. `ROWLOCK_TEST_POSTGRES` (a URL
    /// such as [`Postgres::admin_url`] gives) makes it one that runs already.
    ///
    /// # Panics
    /// When PostgreSQL isn't installed or doesn't start.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(|| match std::env::var("ROWLOCK_TEST_POSTGRES") {
            Ok(url) => Self::running(&url),
            Err(_) => Self::start_own(),
        })
    }

    fn running(url: &str) -> Self {
        let (base, port) = url
            .rsplit_once('/')
            .and_then(|(base, _)| Some((base, base.rsplit_once(':')?.1.parse().ok()?)))
            .unwrap_or_else(|| {
                panic!(
                    "ROWLOCK_TEST_POSTGRES={url} isn't postgres://postgres@127.0.0.1:PORT/postgres"
                )
            });
        let postgres = Self {
            base: base.to_owned(),
            port,
            templates: database::Templates::default(),
            server: None,
        };
        postgres.drop_databases_of_the_dead();
        postgres
    }

    /// A further server, for a test that stops it or spoils it.
    ///
    /// # Panics
    /// When PostgreSQL isn't installed or doesn't start.
    #[must_use]
    pub fn start_own() -> Self {
        Self::create("", "")
    }

    /// A further server whose data lies in a new folder below `folder`, such as a small tmpfs. Its log
    /// doesn't. For root, the folder becomes the server's user's own.
    ///
    /// # Panics
    /// When PostgreSQL isn't installed or doesn't start.
    #[must_use]
    pub fn start_own_in(folder: &Path) -> Self {
        if let Some(user) = unprivileged() {
            std::os::unix::fs::chown(folder, Some(user.uid), Some(user.gid))
                .unwrap_or_else(|why| panic!("can't give {} away: {why}", folder.display()));
        }
        Self::create(folder.to_str().expect("a path in UTF-8"), "")
    }

    /// A standby, which follows a server from a copy of it on.
    ///
    /// # Panics
    /// When PostgreSQL isn't installed or doesn't start.
    #[must_use]
    pub fn standby_of(primary: &Self) -> Self {
        Self::create("", &primary.base)
    }

    /// A standby hears nothing more of its primary.
    ///
    /// # Panics
    /// When it doesn't run.
    pub fn follow_nobody(&self) {
        self.set("primary_conninfo = ''");
        let session = self.session();
        until("the standby follows nobody", || {
            let left = session.value("SELECT count(*) FROM pg_stat_wal_receiver");
            (left == "0").then_some(())
        });
    }

    /// Makes a standby the primary, with what it has heard of.
    ///
    /// # Panics
    /// When it isn't one.
    pub fn promote(&self) {
        let promoted = self.server().warden.order("promote");
        promoted.unwrap_or_else(|why| panic!("no promotion: {why}\n{}", self.log()));
    }

    fn create(folder: &str, primary: &str) -> Self {
        let bin = binaries::folder();
        let bin = bin.to_str().expect("a path in UTF-8");
        let warden = Warden::start(include_str!("warden.sh"), &[bin, SETTINGS, folder, primary]);
        let told = |answer: Result<String, String>| {
            answer.unwrap_or_else(|why| panic!("initdb of {bin} failed: {why}"))
        };
        told(warden.answer());
        let data = told(warden.answer()).into();
        let log = told(warden.answer()).into();
        let mut server = Server { warden, data, log };
        let port = server.first_start();
        Self {
            base: format!("postgres://postgres@127.0.0.1:{port}"),
            port,
            templates: database::Templates::default(),
            server: Some(server),
        }
    }

    /// Where a program of PostgreSQL's is, such as `pg_dump`.
    ///
    /// # Panics
    /// When it isn't installed.
    #[must_use]
    pub fn program(name: &str) -> PathBuf {
        binaries::program(name).unwrap_or_else(|| {
            panic!("{name} is missing. Type:  apt-get install -y postgresql-client")
        })
    }

    /// The URL of a database.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("{}/{database}", self.base)
    }

    /// The URL of the superuser's own database.
    #[must_use]
    pub fn admin_url(&self) -> String {
        self.url("postgres")
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A new session of the superuser.
    ///
    /// # Panics
    /// When the server takes no connection.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::open(&self.admin_url())
    }

    fn server(&self) -> &Server {
        self.server
            .as_ref()
            .expect("a server of its own: Postgres::start_own()")
    }

    /// Starts it again, on the same port, with the same data.
    ///
    /// # Panics
    /// When it doesn't start; shows its log.
    pub fn start(&self) {
        let started = self.server().warden.order(&format!("start {}", self.port));
        started.unwrap_or_else(|why| panic!("no start: {why}\n{}", self.log()));
    }

    /// Stops it, and waits until it has stopped.
    ///
    /// # Panics
    /// When it doesn't stop.
    pub fn stop(&self, how: Stop) {
        let how = match how {
            Stop::Smart => "smart",
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        let stopped = self.server().warden.order(&format!("stop {how}"));
        stopped.unwrap_or_else(|why| panic!("no stop: {why}"));
    }

    /// Stops and starts it.
    ///
    /// # Panics
    /// When it doesn't stop or doesn't start.
    pub fn restart(&self, how: Stop) {
        self.stop(how);
        self.start();
    }

    /// Changes settings (lines of postgresql.conf) and loads them: every session that is opened from
    /// now on has them. Some need a restart, as in production.
    ///
    /// # Panics
    /// When the server doesn't run, or doesn't load them.
    pub fn set(&self, settings: &str) {
        let server = self.server();
        let loaded = || {
            let session = Session::try_open(&self.admin_url()).ok()?;
            let rows = session.query("SELECT pg_conf_load_time()").ok()?;
            rows.into_iter().flatten().next().flatten()
        };
        let before = loaded().expect("a server that runs");
        std::fs::OpenOptions::new()
            .append(true)
            .open(server.data.join("postgresql.auto.conf"))
            .and_then(|mut file| writeln!(file, "{settings}"))
            .unwrap_or_else(|why| panic!("can't set {settings}: {why}"));
        let reloaded = server.warden.order("reload");
        reloaded.unwrap_or_else(|why| panic!("no reload: {why}"));
        until("the server loads its settings", || {
            loaded().filter(|now| *now != before)
        });
    }

    /// All that it has logged.
    ///
    /// # Panics
    /// When this isn't a server of its own.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.server().log).unwrap_or_default()
    }

    /// The folder of its data.
    ///
    /// # Panics
    /// When this isn't a server of its own.
    #[must_use]
    pub fn data_folder(&self) -> &Path {
        &self.server().data
    }
}

impl Server {
    /// Starts on a free port, which somebody else may take in the meantime.
    #[expect(clippy::panic, reason = "a test without its server has failed")]
    fn first_start(&mut self) -> u16 {
        let mut refused = String::new();
        for _ in 0..5 {
            let port = port::free();
            match self.warden.order(&format!("start {port}")) {
                Ok(_) => return port,
                Err(why) => refused = why,
            }
        }
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        panic!("PostgreSQL doesn't start: {refused}\n{log}")
    }
}
