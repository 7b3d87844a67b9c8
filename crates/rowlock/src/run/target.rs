//! Where an HTTP handler's jobs go, and where they may go.

use std::net::{IpAddr, SocketAddr};

use hyper::Uri;

use crate::error::{Error, Result};

/// A server's address with the list of those it may turn out to be.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) uri: Uri,
    /// As in the URI, without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
    allow: Vec<Allow>,
}

/// An entry of the list.
#[derive(Debug, PartialEq, Eq)]
enum Allow {
    /// This name, whatever it resolves to.
    Name(String),
    /// Addresses that begin with these bits.
    Net(IpAddr, u8),
}

impl Target {
    /// Reads a URL and its list.
    pub(super) fn parse(url: &str, allow: &[String]) -> Result<Self> {
        // Neither a password nor what a query may hold belongs on a screen.
        if url.contains('@') {
            return Err(Error::invalid(
                "http has a user or a password, which aren't sent: take them out",
            ));
        }
        let shown = url.split('?').next().unwrap_or_default();
        let wrong = |why: &str| Error::invalid(format!("http = {shown:?}: {why}"));
        let uri: Uri = url
            .parse()
            .map_err(|why| wrong(&format!("not a URL: {why}")))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(wrong(&format!(
                    "rowlock {} has no TLS yet: use http:// to a proxy on this machine",
                    env!("CARGO_PKG_VERSION")
                )));
            }
            _ => return Err(wrong("write it like http://127.0.0.1:9000/jobs")),
        }
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong("it has no host"));
        }
        if allow.is_empty() {
            return Err(Error::invalid(format!(
                "http needs a list of where its jobs may go: write allow = [{host:?}], or addresses like \"10.0.0.0/8\""
            )));
        }
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port: match uri.port() {
                Some(port) if port.as_u16() > 0 => port.as_u16(),
                Some(_) => return Err(wrong("its port is 0")),
                None => 80,
            },
            allow: allow
                .iter()
                .map(|text| Allow::parse(text))
                .collect::<Result<_>>()?,
            uri,
        })
    }

    /// Whether a job may go to the address that the host's name stands for.
    pub(super) fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allow.iter().any(|allow| match allow {
            Allow::Name(name) => *name == self.host,
            Allow::Net(net, bits) => within(address, *net, *bits),
        })
    }

    /// Every address of the host, in the resolver's order.
    pub(super) async fn resolve(&self) -> std::io::Result<Vec<SocketAddr>> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, self.port)]);
        }
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await?;
        Ok(found.collect())
    }
}

impl Allow {
    fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!(
                "allow: {text:?} is not a host name, an address or a range like \"10.0.0.0/8\""
            ))
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let bare = address.trim_start_matches('[').trim_end_matches(']');
        let Ok(address) = bare.parse::<IpAddr>() else {
            let letters = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            return match bits.is_none() && !text.is_empty() && text.chars().all(letters) {
                true => Ok(Self::Name(text.to_ascii_lowercase())),
                false => Err(wrong()),
            };
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        match bits.unwrap_or(most) {
            bits if bits <= most => Ok(Self::Net(address, bits)),
            _ => Err(wrong()),
        }
    }
}

fn within(address: IpAddr, net: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (address, net) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            (one.to_bits() ^ other.to_bits()).leading_zeros() >= bits
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            (one.to_bits() ^ other.to_bits()).leading_zeros() >= bits
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str, allow: &[&str]) -> Result<Target> {
        let allow: Vec<_> = allow.iter().map(|text| (*text).to_owned()).collect();
        Target::parse(url, &allow)
    }

    #[test]
    fn an_address_is_allowed_by_itself_its_range_or_its_name() {
        for (url, allow, address, allowed) in [
            ("http://127.0.0.1:9000/", "127.0.0.1", "127.0.0.1", true),
            ("http://127.0.0.1/", "127.0.0.2", "127.0.0.1", false),
            ("http://api/", "10.0.0.0/8", "10.255.0.1", true),
            ("http://api/", "10.0.0.0/8", "11.0.0.1", false),
            ("http://api/", "10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("http://api/", "0.0.0.0/0", "8.8.8.8", true),
            ("http://api/", "0.0.0.0/0", "::1", false),
            ("http://[::1]:80/", "::1", "::1", true),
            ("http://[::1]:80/", "fd00::/8", "fd12::1", true),
            ("http://[::1]:80/", "fd00::/8", "fe80::1", false),
            ("http://API.example/", "api.example", "1.2.3.4", true),
            ("http://api.example/", "example", "1.2.3.4", false),
        ] {
            let target = target(url, &[allow]).unwrap();
            let address = address.parse().unwrap();
            assert_eq!(target.allows(address), allowed, "{url} {allow} {address}");
        }
    }

    #[test]
    fn a_target_that_cannot_work_is_refused_with_the_remedy() {
        for (url, allow, word) in [
            ("https://api/", &["api"][..], "no TLS yet"),
            ("ftp://api/", &["api"], "write it like http://"),
            ("/jobs", &["api"], "write it like http://"),
            ("http://a b/", &["api"], "not a URL"),
            ("http://me:secret@api/", &["api"], "a password"),
            ("https://me:secret@api/", &["api"], "a password"),
            ("http://me:secret@a b/", &["api"], "a password"),
            ("https://api/?key=secret", &["api"], "no TLS yet"),
            ("http://a b/?key=secret", &["api"], "not a URL"),
            ("http://api:0/", &["api"], "port is 0"),
            ("http://api/", &[], "allow = [\"api\"]"),
            ("http://api/", &["10.0.0.0/33"], "10.0.0.0/33"),
            ("http://api/", &["name/8"], "name/8"),
            ("http://api/", &[""], "is not a host name"),
        ] {
            let why = target(url, allow).unwrap_err().to_string();
            assert!(why.contains(word), "{url}: {why}");
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
