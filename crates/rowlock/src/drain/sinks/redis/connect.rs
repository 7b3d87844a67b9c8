//! Connections to Redis: driven by a thread of their own, made again when they are lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, Pipeline, ProtocolVersion};
use redis::{RedisError, RedisResult};
use tokio::sync::Mutex;

use super::address::Address;
use super::error::{ends_the_connection, map, too_old};
use crate::error::Result;
use crate::io::Io;

/// How long a connection may take, and an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The oldest version that has all commands.
const OLDEST: (u32, u32) = (6, 2);

/// A connection that any number of callers share.
#[derive(Debug)]
pub(crate) struct Link {
    address: Address,
    io: Io,
    current: Mutex<Option<(u64, MultiplexedConnection)>>,
    connections: AtomicU64,
}

impl Link {
    /// Nothing is connected yet.
    pub(crate) fn new(address: Address, io: Io) -> Self {
        Self {
            address,
            io,
            current: Mutex::new(None),
            connections: AtomicU64::new(0),
        }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn io(&self) -> &Io {
        &self.io
    }

    /// One command, and its answer within [`PATIENCE`].
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd, doing: &str) -> Result<T> {
        let (number, mut connection) = self.connection().await?;
        let answer = command.query_async(&mut connection).await;
        self.checked(answer, number, doing).await
    }

    /// The same for commands that wait at the server.
    pub(super) async fn ask_for_long<T: FromRedisValue>(
        &self,
        commands: &Pipeline,
        wait: Duration,
        doing: &str,
    ) -> Result<T> {
        let (number, mut connection) = self.connection().await?;
        connection.set_response_timeout(wait + PATIENCE);
        let answer = commands.query_async(&mut connection).await;
        self.checked(answer, number, doing).await
    }

    /// A script by its hash; the text is sent to a server that doesn't know it. The command without
    /// its first two words.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        script: &redis::Script,
        code: &str,
        arguments: impl Fn(&mut Cmd),
        doing: &str,
    ) -> Result<T> {
        let (number, mut connection) = self.connection().await?;
        let mut command = redis::cmd("EVALSHA");
        command.arg(script.get_hash());
        arguments(&mut command);
        let mut answer: RedisResult<T> = command.query_async(&mut connection).await;
        if answer.as_ref().is_err_and(is_unknown_script) {
            let mut command = redis::cmd("EVAL");
            command.arg(code);
            arguments(&mut command);
            answer = command.query_async(&mut connection).await;
        }
        self.checked(answer, number, doing).await
    }

    async fn connection(&self) -> Result<(u64, MultiplexedConnection)> {
        let mut current = self.current.lock().await;
        if let Some((number, connection)) = &*current {
            return Ok((*number, connection.clone()));
        }
        let connection = connect(&self.address, &self.io).await?;
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        *current = Some((number, connection.clone()));
        Ok((number, connection))
    }

    async fn checked<T>(&self, answer: RedisResult<T>, number: u64, doing: &str) -> Result<T> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(why) => {
                if ends_the_connection(&why) {
                    let mut current = self.current.lock().await;
                    // Somebody else may have made a new one meanwhile.
                    if current
                        .as_ref()
                        .is_some_and(|(current, _)| *current == number)
                    {
                        *current = None;
                    }
                }
                Err(map(&why, &self.address, doing))
            }
        }
    }
}

fn is_unknown_script(why: &RedisError) -> bool {
    why.code() == Some("NOSCRIPT")
}

/// A connection to a server that has all commands.
async fn connect(address: &Address, io: &Io) -> Result<MultiplexedConnection> {
    let to = address.clone();
    let opened = io
        .run("rowlock-redis-connect", move |_| async move {
            open(&to, ProtocolVersion::RESP2, &config()).await
        })
        .await?;
    let (connection, info) = opened.map_err(|why| map(&why, address, "connect"))?;
    let version = version(&info);
    match is_old(version) {
        true => Err(too_old(address, version)),
        false => Ok(connection),
    }
}

/// Nothing is waited for without an end.
pub(super) fn config() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE))
}

/// A connection that is driven by the runtime of whoever awaits this, and what the server says about
/// itself.
pub(super) async fn open(
    address: &Address,
    protocol: ProtocolVersion,
    config: &AsyncConnectionConfig,
) -> RedisResult<(MultiplexedConnection, String)> {
    let client = Client::open(address.info(protocol))?;
    let mut connection = client
        .get_multiplexed_async_connection_with_config(config)
        .await?;
    let info = redis::cmd("INFO")
        .arg("server")
        .query_async(&mut connection)
        .await?;
    Ok((connection, info))
}

/// The version in the answer to INFO.
pub(super) fn version(info: &str) -> &str {
    field(info, "redis_version").unwrap_or("unknown")
}

/// A line of the answer to INFO.
pub(super) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value.trim())
}

/// One that can't be read is new enough: it is something else that speaks the same language.
fn is_old(version: &str) -> bool {
    let mut parts = version.split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < OLDEST,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for old in ["2.8.24", "5.0.14", "6.0.16"] {
            assert!(is_old(old), "{old}");
        }
        for new in [
            "6.2.0",
            "6.10.1",
            "7.0.15",
            "10.0.0",
            "255.255.255",
            "unknown",
        ] {
            assert!(!is_old(new), "{new}");
        }
        assert_eq!(
            version("# Server\r\nredis_version:7.0.15\r\nos:Linux\r\n"),
            "7.0.15"
        );
    }
}
