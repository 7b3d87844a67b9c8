//! Where the server is, and the few connections that a process keeps to it.

use std::fmt;
use std::time::Duration;

use deadpool::managed::{self, Metrics, Object, QueueMode, RecycleError, RecycleResult};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls};

use super::ask::PATIENCE;
use super::cancel::door;
use super::error::{away, map, unreachable};
use super::link::Link;
use super::row::get;
use super::sessions::Sessions;
use super::statements::{call, sql};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::io::Io;
use crate::log;

/// The schema that everything of ours is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema(String);

impl Default for Schema {
    fn default() -> Self {
        Self("rowlock".to_owned())
    }
}

impl Schema {
    /// A schema's name: lower case letters, digits and `_`, so that it needs no quotes anywhere.
    ///
    /// # Errors
    /// [`Error::Invalid`] that shows the rule.
    pub fn new(name: &str) -> Result<Self> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        if !starts_well || name.len() > 48 || !name.chars().all(fits) || name.starts_with("pg_") {
            return Err(Error::invalid(format!(
                "{name:?} can't be the schema: use 1 to 48 of a-z 0-9 _, start with a letter or _, \
                 and not with pg_"
            )));
        }
        Ok(Self(name.to_owned()))
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A text that speaks of `rowlock`, speaking of this schema.
    pub(super) fn put(&self, text: &str) -> String {
        if self.0 == "rowlock" {
            return text.to_owned();
        }
        text.replace("rowlock.", &format!("{}.", self.0))
            .replace("\"rowlock\"", &format!("\"{}\"", self.0))
            .replace("'rowlock'", &format!("'{}'", self.0))
    }
}

/// Where the store is: `postgres://USER@HOST/DATABASE` and a schema. It shows no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    config: Config,
    /// Whether its queries are the user's, who may count on the search_path of the role.
    foreign: bool,
    /// The schema.
    pub schema: Schema,
    /// How many connections a process keeps at most.
    pub connections: usize,
    /// Whether to wait for notifications.
    pub notify: bool,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.config.get_ports();
        let port = |n: usize| ports.get(n).or(ports.first()).filter(|port| **port != 5432);
        let shown = |(n, at)| match port(n) {
            Some(port) => format!("{}:{port}", host(at)),
            None => host(at),
        };
        let hosts = self.config.get_hosts().iter().enumerate().map(shown);
        let hosts: Vec<String> = hosts.collect();
        let database = self.config.get_dbname().unwrap_or("");
        write!(f, "postgres://{}/{database}", hosts.join(","))?;
        match self.schema == Schema::default() {
            true => Ok(()),
            false => write!(f, " schema {}", self.schema.0),
        }
    }
}

fn host(host: &tokio_postgres::config::Host) -> String {
    match host {
        tokio_postgres::config::Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
    }
}

impl Address {
    /// How many connections a process keeps unless it is told otherwise.
    pub const CONNECTIONS: usize = 4;

    /// Reads a URL.
    ///
    /// # Errors
    /// [`Error::Invalid`] that shows the form; it doesn't repeat the URL, which may hold a password.
    pub fn parse(url: &str) -> Result<Self> {
        let bad = |why: String| {
            Error::invalid(format!(
                "the PostgreSQL URL can't be read: {why}. Write postgres://USER@HOST:5432/DATABASE"
            ))
        };
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(bad("it doesn't begin with postgres://".to_owned()));
        }
        let mut config: Config = url.parse().map_err(|why: tokio_postgres::Error| {
            let cause = std::error::Error::source(&why).map(ToString::to_string);
            bad(cause.unwrap_or_else(|| why.to_string()))
        })?;
        // Whatever comes before it is the end of a password, and would be shown as a host's name.
        if config.get_hosts().iter().any(|at| host(at).contains('@')) {
            return Err(bad("an @ in a password is written %40".to_owned()));
        }
        if matches!(config.get_ssl_mode(), SslMode::Require) {
            return Err(bad(
                "sslmode=require needs TLS, which this build doesn't have".to_owned(),
            ));
        }
        if config.get_application_name().is_none() {
            config.application_name("rowlock");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(10));
        }
        // A server that vanished without a word is noticed within a lease.
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_secs(10));
        }
        config.keepalives_idle(Duration::from_secs(10));
        Ok(Self {
            config,
            foreign: false,
            schema: Schema::default(),
            connections: Self::CONNECTIONS,
            notify: true,
        })
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The same server for queries of the user's: they find tables as the role does.
    pub(super) fn for_queries(&self) -> Self {
        let mut address = self.clone();
        address.foreign = true;
        address
    }

    /// The same server, another schema.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }

    /// The same store without waiting for notifications.
    #[must_use]
    pub fn without_notify(mut self) -> Self {
        self.notify = false;
        self
    }
}

/// Makes and keeps connections.
#[derive(Debug)]
pub(super) struct Maker {
    address: Address,
    io: Io,
    sessions: Sessions,
}

impl managed::Manager for Maker {
    type Type = Link;
    type Error = Error;

    async fn create(&self) -> Result<Link> {
        let client = connect(&self.address, &self.io).await?;
        let asked = client
            .query_typed(&sql!("isolation").text(&Schema::default()), &[])
            .await;
        let rows = asked.map_err(|why| map(&why, "isolation"))?;
        let fits: bool = rows.first().map_or(Ok(false), |row| get(row, 0))?;
        let pid: i32 = rows.first().map_or(Ok(0), |row| get(row, 1))?;
        #[cfg(feature = "test-hooks")]
        let fits = fits || crate::hooks::switched_off("call.isolation");
        self.check_ids(&client).await;
        Ok(Link::new(
            client,
            !fits,
            self.sessions.add(pid),
            (self.io.clone(), door(self.address.config())),
        ))
    }

    async fn recycle(&self, client: &mut Link, _: &Metrics) -> RecycleResult<Error> {
        match client.is_closed() || client.is_asking() {
            true => Err(RecycleError::message("closed, or busy")),
            false => Ok(()),
        }
    }
}

impl Maker {
    /// Sequences don't travel with every kind of copy, and a connection that takes the place of a lost one may lead to
    /// one: before anything else it sees that new ids are ahead of stored ones. A role without the right leaves that to
    /// the workers.
    async fn check_ids(&self, client: &Client) {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("connect.check_ids") {
            return;
        }
        if !self.sessions.take_lost() {
            return;
        }
        let text = call("check_ids", 0, &self.address.schema);
        let checked = Clock::system()
            .timeout(PATIENCE, client.query_typed(&text, &[]))
            .await;
        // A role without the right, or a database without our schema, answers the same each time.
        let is_final = |why: &tokio_postgres::Error| {
            let code = why.code().map_or("", |code| code.code());
            ["42501", "42883", "3F000"].contains(&code)
        };
        let asked = match &checked {
            Some(Ok(_)) => true,
            Some(Err(why)) => is_final(why),
            None => false,
        };
        if !asked {
            log::debug!("the ids could not be checked after a reconnection");
            self.sessions.set_lost();
        }
    }
}

/// What our statements count on. An operator or a function that others have put into a schema of the search_path may fit
/// the types of a statement better than the server's own, and would run with our rights.
const SETTINGS: &str = "-c search_path=pg_catalog,pg_temp -c quote_all_identifiers=off -c standard_conforming_strings=on";

/// A connection with these settings. A pooler refuses them: then there is one without.
pub(super) async fn connect_with_settings(
    address: &Address,
) -> std::result::Result<(Client, Connected), tokio_postgres::Error> {
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("connect.settings") {
        return address.config.connect(NoTls).await;
    }
    if address.foreign {
        return address.config.connect(NoTls).await;
    }
    let mut config = address.config.clone();
    let options = format!("{} {SETTINGS}", config.get_options().unwrap_or_default());
    match config.options(&options).connect(NoTls).await {
        Err(why) if is_refused_setting(&why) => address.config.connect(NoTls).await,
        other => other,
    }
}

type Connected =
    tokio_postgres::Connection<tokio_postgres::Socket, tokio_postgres::tls::NoTlsStream>;

fn is_refused_setting(why: &tokio_postgres::Error) -> bool {
    why.as_db_error()
        .is_some_and(|error| error.message().contains("unsupported startup parameter"))
}

/// A connection whose other end is driven by the engine's own thread.
pub(super) async fn connect(address: &Address, io: &Io) -> Result<Client> {
    let address = address.clone();
    let shown = address.to_string();
    io.run("rowlock-connect", move |tasks| async move {
        let (client, connection) = connect_with_settings(&address)
            .await
            .map_err(|why| unreachable(&why, &shown))?;
        tasks.start("rowlock-connection", async move {
            if let Err(why) = connection.await {
                log::debug!(%why, "a connection to the database has ended");
            }
        });
        Ok(client)
    })
    .await?
}

/// Sees whether the server takes connections, by one that is given up at once.
///
/// # Errors
/// [`Error::Unavailable`] while it starts, stops, is full or can't be reached at all: that may pass.
/// [`Error::Unreachable`] when the address, the login or the database has to be mended.
pub async fn ping(address: &Address) -> Result<()> {
    let io = Io::start("rowlock-postgres")?;
    let (config, shown) = (address.config.clone(), address.to_string());
    io.run("rowlock-connect", move |_| async move {
        let connected = config.connect(NoTls).await;
        connected.map(drop).map_err(|why| away(&why, &shown))
    })
    .await?
}

pub(super) type Pool = managed::Pool<Maker>;
pub(super) type Connection = Object<Maker>;

pub(super) fn pool(
    address: &Address,
    io: &Io,
    connections: usize,
    sessions: &Sessions,
) -> Result<Pool> {
    let maker = Maker {
        address: address.clone(),
        io: io.clone(),
        sessions: sessions.clone(),
    };
    Pool::builder(maker)
        .max_size(connections.max(1))
        // The one that was used last: its process has everything at hand.
        .queue_mode(QueueMode::Lifo)
        .build()
        .map_err(|why| Error::Bug(why.to_string()))
}

/// A connection from the pool. Nobody waits for one longer than `patience`.
pub(super) async fn take(pool: &Pool, patience: Duration) -> Result<Connection> {
    let taken = Clock::system().timeout(patience, pool.get()).await;
    match taken {
        Some(Ok(connection)) => Ok(connection),
        Some(Err(managed::PoolError::Backend(why))) => Err(why),
        Some(Err(why)) => Err(Error::Unavailable(format!("no connection: {why}"))),
        None => Err(Error::Unavailable(format!(
            "the database gave no connection within {} s",
            patience.as_secs()
        ))),
    }
}

/// Runs what has no answer, such as a migration.
pub(super) async fn batch(client: &Client, text: &str, doing: &str) -> Result<()> {
    client
        .batch_execute(text)
        .await
        .map_err(|why| map(&why, doing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_no_password_in_any_form() {
        let address = Address::parse("postgres://ada:hunter2@db.example/app").unwrap();
        for shown in [format!("{address}"), format!("{address:?}")] {
            assert!(!shown.contains("hunter2"), "{shown}");
            assert!(shown.contains("db.example"), "{shown}");
        }
        for bad in [
            "postgres://ada:hunter2@db.example/app?nonsense=1",
            "postgres://ada:p@hunter2@db.example/app",
            "postgres://ada:hunter2@db.example:port/app",
            "postgres:ada:hunter2@db.example/app",
        ] {
            let bad = Address::parse(bad).unwrap_err();
            assert!(!bad.to_string().contains("hunter2"), "{bad}");
        }
    }

    #[test]
    fn a_hostile_schema_is_refused() {
        for bad in [
            "",
            "a b",
            "A",
            "x;drop",
            "pg_x",
            "a\"",
            "1a",
            "ü",
            &"x".repeat(49),
        ] {
            assert!(Schema::new(bad).is_err(), "{bad}");
        }
        assert_eq!(
            Schema::new("rowlock_demo_1").unwrap().as_str(),
            "rowlock_demo_1"
        );
    }
}
