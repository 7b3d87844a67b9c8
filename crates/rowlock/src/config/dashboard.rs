//! `[dashboard]`: who may look at the store over HTTP, and who may change it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};

/// `[dashboard]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dashboard {
    /// Where it listens. Beyond loopback it needs tokens.
    pub bind: SocketAddr,
    /// The file with the tokens; none: whoever reaches it may do everything.
    #[serde(deserialize_with = "file")]
    pub token_file: Option<PathBuf>,
    /// Whether nothing may be changed, whoever asks.
    pub read_only: bool,
    /// The names it may be called by, beside those of this machine.
    pub hosts: Vec<String>,
    /// How many changes a second each token may ask for.
    pub writes_per_second: u32,
}

impl Default for Dashboard {
    fn default() -> Self {
        Self {
            bind: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7878),
            token_file: None,
            read_only: false,
            hosts: Vec::new(),
            writes_per_second: 50,
        }
    }
}

impl Dashboard {
    pub(super) fn check(&self) -> Result<()> {
        if !(1..=10_000).contains(&self.writes_per_second) {
            return Err(Error::invalid(
                "[dashboard]: writes_per_second must be from 1 to 10000",
            ));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
        for host in &self.hosts {
            let address = host.parse::<IpAddr>().is_ok();
            if !address && (host.is_empty() || !host.chars().all(plain)) {
                return Err(Error::invalid(format!(
                    "[dashboard]: {host:?} is not a host: write a name or an address, without a port"
                )));
            }
        }
        Ok(())
    }

    /// Paths start at the file's folder.
    pub(super) fn relative_to(&self, folder: &Path) -> Self {
        let mut same = self.clone();
        same.token_file = same.token_file.map(|path| folder.join(path));
        same
    }
}

/// `[metrics]`: who may read the numbers of /metrics.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// The file with the tokens; none: whoever reaches it may read them.
    #[serde(deserialize_with = "file")]
    pub token_file: Option<PathBuf>,
}

impl Metrics {
    /// Paths start at the file's folder.
    pub(super) fn relative_to(&self, folder: &Path) -> Self {
        let token_file = self.token_file.as_ref().map(|path| folder.join(path));
        Self { token_file }
    }
}

/// A path; nothing between the quotes is none.
fn file<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    let path = PathBuf::deserialize(from)?;
    Ok(Some(path).filter(|path| !path.as_os_str().is_empty()))
}
