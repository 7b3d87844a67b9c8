//! Where a Redis is, and which keys there are ours.

use std::fmt;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};

use crate::error::{Error, Result};
use crate::job::Name;

/// A Redis, a database of it and a prefix there. Shown without its user and password.
#[derive(Clone)]
pub struct Address {
    info: ConnectionInfo,
    prefix: Name,
    /// Whose keys Sidekiq chooses, below a namespace if there is one.
    sidekiq: Option<Option<Name>>,
    shown: String,
}

/// The prefix unless the URL names one.
const PREFIX: &str = "jobs";

impl Address {
    /// Reads `redis://[USER:PASSWORD@]HOST[:PORT][/DB][?prefix=NAME]`, also with `sidekiq+` before it.
    ///
    /// # Errors
    /// [`Error::Invalid`], without a word of the URL that may be secret.
    pub fn parse(url: &str) -> Result<Self> {
        let plain = url.strip_prefix("sidekiq+").unwrap_or(url);
        if plain.starts_with("rediss://") {
            return Err(Error::invalid(
                "TLS to Redis (rediss://) is not there yet: use redis:// within a network you trust, \
                 or through a tunnel such as stunnel",
            ));
        }
        if !plain.starts_with("redis://") {
            return Err(malformed("it has to begin with redis://"));
        }
        let (place, query) = plain.split_once('?').unwrap_or((plain, ""));
        let info = place.into_connection_info().map_err(|_| {
            malformed("a user or password with special characters is written percent-encoded")
        })?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err(malformed("only TCP is supported"));
        };
        let named = prefix(query)?;
        let prefix = named.clone().map_or_else(|| Name::new(PREFIX), Ok)?;
        let db = info.redis_settings().db();
        // An IPv6 address has its brackets in a URL only.
        let host = match host.contains(':') {
            true => format!("[{host}]"),
            false => host.clone(),
        };
        let mut shown = format!("redis://{host}:{port}/{db}");
        if let Some(prefix) = &named {
            shown.push_str(&format!("?prefix={prefix}"));
        }
        Ok(Self {
            info,
            prefix,
            sidekiq: (plain.len() < url.len()).then_some(named),
            shown,
        })
    }

    /// What the keys of this address begin with. In braces, so that a cluster keeps them together.
    #[must_use]
    pub fn keys(&self) -> String {
        format!("rowlock:{{{}}}", self.prefix)
    }

    /// The prefix as the URL names it.
    #[must_use]
    pub fn prefix(&self) -> &Name {
        &self.prefix
    }

    /// Whether the URL begins with `sidekiq+`.
    #[must_use]
    pub fn is_sidekiqs(&self) -> bool {
        self.sidekiq.is_some()
    }

    /// The namespace of a Sidekiq, if it has one.
    #[must_use]
    pub fn namespace(&self) -> Option<&Name> {
        self.sidekiq.as_ref()?.as_ref()
    }

    /// For the driver.
    pub(super) fn info(&self, protocol: redis::ProtocolVersion) -> ConnectionInfo {
        let settings: RedisConnectionInfo = self.info.redis_settings().clone();
        let settings = settings
            .set_protocol(protocol)
            .set_lib_name("rowlock", env!("CARGO_PKG_VERSION"));
        let tcp = self.info.tcp_settings().clone().set_nodelay(true);
        self.info
            .clone()
            .set_redis_settings(settings)
            .set_tcp_settings(tcp)
    }
}

fn prefix(query: &str) -> Result<Option<Name>> {
    let mut prefix = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("prefix", name)) => prefix = Some(Name::new(name)?),
            // What follows a question mark may be the rest of a password.
            _ => return Err(malformed("the only setting after the ? is prefix=NAME")),
        }
    }
    Ok(prefix)
}

fn malformed(why: &str) -> Error {
    Error::invalid(format!(
        "this is not the URL of a Redis, as in redis://USER:PASSWORD@HOST:6379/0?prefix=NAME: {why}"
    ))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.shown).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let url = "redis://worker:s%40cret@localhost:6380/3?prefix=mail";
        let address = Address::parse(url).unwrap();
        assert_eq!(address.to_string(), "redis://localhost:6380/3?prefix=mail");
        assert!(!format!("{address:?}").contains("cret"));
        assert_eq!(address.keys(), "rowlock:{mail}");
        assert_eq!(address.info.redis_settings().password(), Some("s@cret"));
        assert_eq!(address.info.redis_settings().username(), Some("worker"));
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let address = Address::parse("redis://[::1]").unwrap();
        assert_eq!(address.to_string(), "redis://[::1]:6379/0");
        assert_eq!(address.keys(), "rowlock:{jobs}");
        let address = Address::parse("sidekiq+redis://127.0.0.1:7000/1").unwrap();
        assert_eq!(address.to_string(), "redis://127.0.0.1:7000/1");
        assert!(address.is_sidekiqs() && address.namespace().is_none());
        let address = Address::parse("sidekiq+redis://127.0.0.1?prefix=jobs").unwrap();
        assert_eq!(address.namespace().unwrap().as_str(), "jobs");
    }

    #[test]
    fn a_url_that_is_none_is_refused_without_repeating_it() {
        for url in [
            "rediss://:secret@localhost",
            "redis://:secret@localhost?insecure=true",
            "redis://:secret@localhost?prefix=",
            "redis://:secret@localhost?prefix=a{b}",
            "redis://:secret@localhost/nine",
            "redis://:secret@localhost:port",
            "http://:secret@localhost",
            "redis://",
            "secret",
        ] {
            let why = Address::parse(url).unwrap_err().to_string();
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
