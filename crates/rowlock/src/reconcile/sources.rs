//! Where pairs' rows are: beside the jobs, or in databases that this process was told of.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Pair;
use crate::engine::{Lead, Source};
use crate::error::{Error, Result};
use crate::job::Name;

/// The databases that pairs read. The table of pairs keeps no address with a password, so a pair of
/// another database is run only by processes that declare it themselves.
#[derive(Clone)]
pub struct Sources {
    here: Arc<dyn Source>,
    /// By pair, with the address as the table of pairs shows it.
    elsewhere: BTreeMap<Name, (String, Arc<dyn Source>)>,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.elsewhere.keys()).finish()
    }
}

impl Sources {
    /// Those of `pairs`; nothing is connected yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an address of no engine.
    pub fn new(lead: &dyn Lead, pairs: &[Pair]) -> Result<Self> {
        let mut elsewhere = BTreeMap::new();
        for pair in pairs {
            if let Some(url) = &pair.source {
                let source = open(url).map_err(|why| {
                    Error::invalid(format!("pair {}: its source: {why}", pair.name))
                })?;
                elsewhere.insert(pair.name.clone(), (shown(url), source));
            }
        }
        Ok(Self {
            here: lead.source(),
            elsewhere,
        })
    }

    /// The pair's; nothing when this process doesn't know its address.
    #[must_use]
    pub fn of(&self, pair: &Pair) -> Option<&Arc<dyn Source>> {
        match pair.source {
            None => Some(&self.here),
            // A process that was told of another address than the table has is behind: it doesn't lead.
            Some(ref url) => {
                let (known, source) = self.elsewhere.get(&pair.name)?;
                (*known == shown(url)).then_some(source)
            }
        }
    }
}

fn open(url: &str) -> Result<Arc<dyn Source>> {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    match scheme {
        #[cfg(feature = "sqlite")]
        "sqlite" => crate::engine::sqlite::source(url),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => crate::engine::postgres::source(url),
        // The address may have a password in it: no more than its scheme is repeated.
        _ => Err(Error::invalid(format!(
            "{scheme:?} is not a database this build knows: write sqlite:PATH or postgres://..."
        ))),
    }
}

/// An address without what only its owner may know: where a database is, and in doubt not even that.
pub(crate) fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once(':') else {
        return HIDDEN.to_owned();
    };
    match scheme {
        "sqlite" => {
            let path = rest.split(['?', '#']).next().unwrap_or_default();
            format!("{scheme}:{path}")
        }
        "postgres" | "postgresql" => match rest.strip_prefix("//").and_then(place) {
            Some(place) => format!("{scheme}://{place}"),
            None => format!("{scheme}:"),
        },
        _ => HIDDEN.to_owned(),
    }
}

/// What is shown of an address that can't be told from a password.
const HIDDEN: &str = "hidden";

/// Hosts, ports and path. A password may have any sign in it, an @ too; a host has none.
fn place(rest: &str) -> Option<&str> {
    let place = match rest.rsplit_once('@') {
        // The @ may be part of a setting that is a password.
        Some((user, _))
            if user
                .split_once('?')
                .is_some_and(|(_, set)| set.contains('=')) =>
        {
            return None;
        }
        Some((_, place)) => place,
        None => rest,
    };
    let place = place.split(['?', '#']).next().unwrap_or_default();
    let (hosts, path) = place.split_once('/').unwrap_or((place, ""));
    let sign = |c: char| c.is_alphanumeric() || "-_.%".contains(c);
    let is_host = |host: &str| {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !host.ends_with(']') => (name, port),
            _ => (host, ""),
        };
        let inner = name.strip_prefix('[').and_then(|six| six.strip_suffix(']'));
        let named = inner.map_or(name.chars().all(sign), |six| {
            six.chars().all(|c| sign(c) || c == ':')
        });
        named && port.bytes().all(|digit| digit.is_ascii_digit())
    };
    (hosts.split(',').all(is_host) && path.chars().all(sign)).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (url, seen) in [
            (
                "postgres://u:hunter2@db:5432/app?x=y",
                "postgres://db:5432/app",
            ),
            ("postgres://u:hun#ter2@host/db", "postgres://host/db"),
            ("postgres://u:hun?ter2@host/db", "postgres://host/db"),
            ("postgres://u:hun/ter2@host/db", "postgres://host/db"),
            ("postgres://u:p@ss@h/db?password=x", "postgres://h/db"),
            ("postgres://h/db?password=x", "postgres://h/db"),
            ("postgresql://a:1,[::1]:2/db", "postgresql://a:1,[::1]:2/db"),
            ("postgres://%2Frun%2Fpg/db", "postgres://%2Frun%2Fpg/db"),
            ("postgres://h/db?password=x@y", "postgres:"),
            ("postgres://u:p@h/db?password=x@y", "postgres:"),
            ("postgres://u:hunter2/db", "postgres:"),
            ("postgres:u:hunter2", "postgres:"),
            ("host=db user=u password=hunter2", "hidden"),
            ("host=db user=u password=hun:ter2", "hidden"),
            ("password=postgres://u", "hidden"),
            ("mysql://u:hunter2@h/db", "hidden"),
            ("sqlite:a/b.db?synchronous=normal", "sqlite:a/b.db"),
            ("sqlite:///a@b.db", "sqlite:///a@b.db"),
        ] {
            assert_eq!(shown(url), seen, "{url}");
        }
    }
}
