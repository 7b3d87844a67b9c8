//! The Redis of a run: one of its own, gone with it, or one that is given; always below a prefix of its
//! own.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd};
use rowlock::Clock;
use rowlock::drain::Route;
use rowlock::drain::sinks::redis::Address;
use rowlock::job::Token;

use super::KIND;
use crate::{Place, run};

/// How long a server may take to come up, and to answer; and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);
/// Below the ports that systems give to outgoing connections: one of those could take the port while
/// the server is down.
const PORTS: std::ops::Range<u16> = 12_000..32_000;
/// It ends with its parent's pipe, however the parent ends.
const WARDEN: &str = r#""$@" & read -r _; kill -9 $!; wait"#;

pub(super) struct Broker {
    /// Without a prefix.
    url: String,
    prefix: String,
    client: Client,
    own: Option<Own>,
}

/// A server of the run's own.
struct Own {
    home: PathBuf,
    port: u16,
    password: String,
    running: Mutex<Option<Child>>,
}

impl Broker {
    /// Starts a server.
    pub(super) async fn start(place: &Place) -> Result<Self> {
        ensure!(
            is_installed(),
            "there is no redis-server in PATH: install it (apt-get install redis-server, brew install \
             redis), or name a Redis that runs with --to redis://127.0.0.1:6379/0"
        );
        let home = place.file("redis");
        std::fs::create_dir(&home).with_context(|| format!("can't make {}", home.display()))?;
        let mut refused = None;
        for _ in 0..5 {
            let own = Own {
                home: home.clone(),
                port: free_port()?,
                password: format!("{:x}", Token::random()?.get()),
                running: Mutex::default(),
            };
            own.start()?;
            let broker = Self::at(own.url(), Some(own))?;
            match broker.is_up().await {
                Ok(()) => return Ok(broker),
                // Somebody else may have taken the port.
                Err(why) => refused = Some(why),
            }
        }
        let log = std::fs::read_to_string(home.join("log")).unwrap_or_default();
        match refused {
            Some(why) => Err(why.context(format!("redis-server doesn't start: {log}"))),
            None => bail!("redis-server doesn't start: {log}"),
        }
    }

    /// One that runs.
    pub(super) async fn given(url: &str) -> Result<Self> {
        let address = Address::parse(url)?;
        ensure!(!address.is_sidekiqs(), "--to is a URL of redis://...");
        let place = url.split_once('?').map_or(url, |(place, _)| place);
        let broker = Self::at(place.to_owned(), None)?;
        let up = broker.ask::<String>(&redis::cmd("PING")).await;
        up.with_context(|| format!("can't reach {address}"))?;
        Ok(broker)
    }

    /// A connection that shows others that the run lives.
    pub(super) async fn stay(&self) -> Result<MultiplexedConnection> {
        let mut connection = self.connection().await?;
        let mut name = redis::cmd("CLIENT");
        name.arg("SETNAME").arg(run::name()?);
        name.query_async::<()>(&mut connection).await?;
        Ok(connection)
    }

    /// Removes the keys of runs that are no more; says how many.
    pub(super) async fn sweep(&self) -> Result<usize> {
        let mut connection = self.connection().await?;
        let clients: String = redis::cmd("CLIENT")
            .arg("LIST")
            .query_async(&mut connection)
            .await?;
        let lives = |run: &str| clients.contains(&format!(" name={run} "));
        let found = scan(&mut connection, &format!("rowlock:{{{}*", run::PREFIX)).await?;
        let left: Vec<&String> = found
            .iter()
            .filter(|key| run_of(key).is_some_and(|run| !lives(run)))
            .collect();
        let mut removed = 0;
        for keys in left.chunks(1_000) {
            let mut unlink = redis::cmd("UNLINK");
            removed += unlink
                .arg(keys)
                .query_async::<usize>(&mut connection)
                .await?;
        }
        Ok(removed)
    }

    fn at(url: String, own: Option<Own>) -> Result<Self> {
        Ok(Self {
            client: Client::open(url.as_str()).context("can't read the URL of the Redis")?,
            prefix: run::name()?.to_owned(),
            url,
            own,
        })
    }

    pub(super) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// For the drain and the workers of a part of the run.
    pub(super) fn url(&self, part: &str) -> String {
        format!("{}?prefix={}{part}", self.url, self.prefix)
    }

    /// What the keys of a part begin with.
    pub(super) fn keys(&self, part: &str) -> String {
        format!("rowlock:{{{}{part}}}", self.prefix)
    }

    /// The route of a part: Redis takes as many as come.
    pub(super) fn route(&self, part: &str) -> Result<Route> {
        let mut route = Route::to(self.url(part))?.kind(KIND)?;
        route.ahead = Route::MOST_AHEAD;
        Ok(route)
    }

    /// A connection of its own.
    pub(super) async fn connection(&self) -> Result<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let connecting = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        connecting.await.context("can't connect to Redis")
    }

    pub(super) async fn ask<T: redis::FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        let mut connection = self.connection().await?;
        Ok(command.query_async(&mut connection).await?)
    }

    pub(super) async fn version(&self) -> Result<String> {
        let info: String = self.ask(redis::cmd("INFO").arg("server")).await?;
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("redis_version:"));
        Ok(line.unwrap_or("of an unknown version").trim().to_owned())
    }

    /// How many jobs were ever sent to a part.
    pub(super) async fn pushed(&self, connection: &mut MultiplexedConnection) -> Result<usize> {
        let mut command = redis::cmd("GET");
        command.arg(format!("{}:pushed", self.keys("")));
        let pushed: Option<usize> = command.query_async(connection).await?;
        Ok(pushed.unwrap_or(0))
    }

    /// Removes every key of the run.
    pub(super) async fn clear(&self) -> Result<()> {
        let mut connection = self.connection().await?;
        let pattern = format!("rowlock:{{{}*", self.prefix);
        // What was on its way when somebody stopped the run may still arrive.
        while clear_once(&mut connection, &pattern).await? > 0 {
            Clock::system().sleep(LOOK).await;
        }
        Ok(())
    }

    /// Kills the server, as a power cut would.
    pub(super) fn kill(&self) {
        if let Some(own) = &self.own {
            own.kill();
        }
    }

    /// It comes back at the same place, without anything.
    pub(super) async fn restart(&self) -> Result<()> {
        if let Some(own) = &self.own {
            own.start()?;
        }
        self.is_up().await
    }

    async fn is_up(&self) -> Result<()> {
        let clock = Clock::system();
        let began = clock.elapsed();
        loop {
            match self.ask::<String>(&redis::cmd("PING")).await {
                Ok(_) => return Ok(()),
                // A stranger at this port doesn't know the password.
                Err(why) if format!("{why:#}").contains("WRONGPASS") => return Err(why),
                Err(why) if clock.elapsed().saturating_sub(began) > PATIENCE => return Err(why),
                Err(_) => clock.sleep(LOOK).await,
            }
        }
    }
}

/// The run that a key is called after: `rowlock:{rowlock_bench_tTIME_RANDOM...`.
fn run_of(key: &str) -> Option<&str> {
    let name = key.strip_prefix("rowlock:{")?;
    let rest = name.strip_prefix(run::PREFIX)?;
    let is_hex = |c: char| c.is_ascii_hexdigit();
    let (time, rest) = rest.split_once('_')?;
    let random = rest.find(|c| !is_hex(c)).unwrap_or(rest.len());
    let fits = !time.is_empty() && time.chars().all(is_hex) && random > 0;
    fits.then(|| &name[..run::PREFIX.len() + time.len() + 1 + random])
}

async fn scan(connection: &mut MultiplexedConnection, pattern: &str) -> Result<Vec<String>> {
    let (mut cursor, mut all) = (0_u64, Vec::new());
    loop {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(pattern);
        scan.arg("COUNT").arg(1_000);
        let (next, found): (u64, Vec<String>) = scan.query_async(connection).await?;
        all.extend(found);
        if next == 0 {
            return Ok(all);
        }
        cursor = next;
    }
}

async fn clear_once(connection: &mut MultiplexedConnection, pattern: &str) -> Result<usize> {
    let mut removed = 0;
    for keys in scan(connection, pattern).await?.chunks(1_000) {
        let mut unlink = redis::cmd("UNLINK");
        removed += unlink.arg(keys).query_async::<usize>(connection).await?;
    }
    Ok(removed)
}

impl Own {
    fn url(&self) -> String {
        format!("redis://:{}@127.0.0.1:{}/0", self.password, self.port)
    }

    fn start(&self) -> Result<()> {
        let log = std::fs::File::create(self.home.join("log"))?;
        let process = Command::new("sh")
            .args(["-c", WARDEN, "warden", "redis-server"])
            .args(["--bind", "127.0.0.1", "--port", &self.port.to_string()])
            .args(["--requirepass", &self.password])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(&self.home)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C ends the run, and the run ends this.
            .process_group(0)
            .spawn()
            .context("can't start redis-server")?;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(process);
        Ok(())
    }

    fn kill(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut process) = running.take() {
            drop(process.stdin.take());
            // It waits for the server.
            let _ = process.wait();
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join("redis-server").is_file())
}

fn free_port() -> Result<u16> {
    for _ in 0..100 {
        let random = Token::random()?.get().unsigned_abs() % PORTS.len() as u64;
        let port = PORTS.start + u16::try_from(random)?;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("there is no free port")
}
