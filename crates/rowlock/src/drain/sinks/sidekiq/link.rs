//! The connection to the Redis of a Sidekiq.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use tokio::sync::Mutex;

use crate::error::{Error, Result};
use crate::job::Name;

/// No call waits for longer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Link {
    client: Client,
    prefix: String,
    open: Mutex<Option<MultiplexedConnection>>,
}

impl Link {
    /// `sidekiq+redis://[user:password@]host[:port][/database][?prefix=namespace]`; nothing is connected
    /// yet.
    pub(super) fn to(url: &str) -> Result<Self> {
        let rest = url.strip_prefix("sidekiq+").unwrap_or(url);
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let prefix = match query.split_once('=') {
            None if query.is_empty() => String::new(),
            Some(("prefix", name)) => format!("{}:", Name::new(name)?),
            _ => {
                return Err(Error::invalid(
                    "only ?prefix=NAME may follow the address of a Sidekiq",
                ));
            }
        };
        // The URL may have a password in it: it isn't repeated.
        let client = Client::open(address).map_err(|why| {
            Error::invalid(format!(
                "the sink's address can't be read ({why}): write \
                 sidekiq+redis://HOST:PORT/DATABASE"
            ))
        })?;
        Ok(Self {
            client,
            prefix,
            open: Mutex::new(None),
        })
    }

    /// The name of a key, in Sidekiq's namespace if it has one.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Does something over the connection; after an error that it may be to blame for, the next call
    /// gets a new one.
    pub(super) async fn run<T>(
        &self,
        work: impl AsyncFnOnce(MultiplexedConnection) -> RedisResult<T>,
    ) -> Result<T> {
        let to = self.connection().await?;
        match work(to).await {
            Ok(answer) => Ok(answer),
            Err(why) => {
                if why.is_io_error() || why.is_connection_dropped() || why.is_timeout() {
                    *self.open.lock().await = None;
                }
                Err(told(&why))
            }
        }
    }

    async fn connection(&self) -> Result<MultiplexedConnection> {
        let mut open = self.open.lock().await;
        if let Some(connection) = &*open {
            return Ok(connection.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let made = self
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let made = made.await.map_err(|why| told(&why))?;
        Ok(open.insert(made).clone())
    }
}

fn told(why: &RedisError) -> Error {
    Error::Unavailable(why.to_string())
}
