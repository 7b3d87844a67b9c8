//! What keeps other sites' pages out of a browser's hands on this port.
//!
//! A page of another site can make a browser send requests here, also by a name of its own that leads
//! to 127.0.0.1. So the name we were called by must be one of ours, and whatever changes something must
//! come from our own pages or from no page at all, in a form that a page can't send unasked.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};

use super::problem::Problem;
use super::taken_out;

/// The names that we may be called by.
#[derive(Debug, Clone)]
pub struct Hosts {
    names: Vec<String>,
    own: IpAddr,
}

impl Hosts {
    pub fn new(names: &[String], bind: SocketAddr) -> Self {
        let names = names.iter().map(|name| name.to_ascii_lowercase());
        Self {
            names: names.collect(),
            own: bind.ip(),
        }
    }

    fn has(&self, host: &str) -> bool {
        let host = without_port(host).to_ascii_lowercase();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>()
            && (address.is_loopback() || address == self.own && !address.is_unspecified())
        {
            return true;
        }
        host == "localhost" || self.names.iter().any(|name| *name == host || *name == bare)
    }

    /// Whether we were called by a name of ours.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let given: Vec<_> = headers.get_all(HOST).iter().collect();
        let said = match given[..] {
            [one] => one.to_str().ok(),
            _ => None,
        };
        let named = uri.authority().map(|authority| authority.as_str());
        let ours =
            said.is_some_and(|host| self.has(host)) && named.is_none_or(|host| self.has(host));
        match ours || taken_out("web.host") {
            true => Ok(()),
            false => Err(Problem::forbidden(
                "host",
                "this was not called by a name of its own",
                "call it by localhost or 127.0.0.1, or name the host in hosts of [dashboard]",
            )),
        }
    }
}

/// Whether a change comes from our own pages, or from no page.
pub fn same_site(headers: &HeaderMap) -> Result<(), Problem> {
    let foreign = || {
        Err(Problem::forbidden(
            "origin",
            "a page of another site asks for this change",
            "ask from the dashboard's own pages, or with a program",
        ))
    };
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let by_fetch = matches!(text("sec-fetch-site"), None | Some("same-origin" | "none"));
    if !by_fetch && !taken_out("web.fetch_site") {
        return foreign();
    }
    let host = text(HOST.as_str()).unwrap_or_default();
    let by_origin = match text(ORIGIN.as_str()) {
        None => true,
        Some(origin) => origin
            .split_once("://")
            .is_some_and(|(scheme, place)| is_http(scheme) && place.eq_ignore_ascii_case(host)),
    };
    match by_origin || taken_out("web.origin") {
        true => Ok(()),
        false => foreign(),
    }
}

fn is_http(scheme: &str) -> bool {
    matches!(scheme, "http" | "https")
}

/// Whether a body is what a page of another site can't send without asking first.
pub fn is_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind
        .and_then(|kind| kind.split(';').next())
        .unwrap_or_default();
    match kind.trim().eq_ignore_ascii_case("application/json") || taken_out("web.content_type") {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content_type",
            "a change is asked for in JSON",
            "send Content-Type: application/json, also without a body",
        )),
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') =>
        {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn hosts() -> Hosts {
        let bind = "10.0.0.5:80".parse().unwrap();
        Hosts::new(&["Jobs.example.com".to_owned()], bind)
    }

    #[test]
    fn only_names_of_our_own_are_answered_to() {
        for ours in [
            "localhost",
            "localhost:7878",
            "LOCALHOST:1",
            "127.0.0.1:7878",
            "127.9.9.9",
            "[::1]:7878",
            "[::1]",
            "jobs.example.com",
            "jobs.example.com:443",
            "10.0.0.5:80",
        ] {
            assert!(hosts().has(ours), "{ours}");
        }
        for other in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "0.0.0.0:80",
            "10.0.0.6",
            "jobs.example.com.evil",
            "evil.example:127.0.0.1",
            "[::]",
        ] {
            assert!(!hosts().has(other), "{other}");
        }
    }

    #[test]
    fn a_change_from_another_site_is_refused() {
        let with = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("localhost:7878"));
            for (name, value) in pairs {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            same_site(&headers)
        };
        for ours in [
            &[][..],
            &[("origin", "http://localhost:7878")],
            &[
                ("origin", "http://localhost:7878"),
                ("sec-fetch-site", "same-origin"),
            ],
            &[("sec-fetch-site", "none")],
        ] {
            assert!(with(ours).is_ok(), "{ours:?}");
        }
        for other in [
            &[("origin", "http://evil.example")][..],
            &[("origin", "null")],
            &[("origin", "http://localhost:1")],
            &[("origin", "file://localhost:7878")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "?")],
        ] {
            assert!(with(other).is_err(), "{other:?}");
        }
    }
}
