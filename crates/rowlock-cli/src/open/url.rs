//! URLs: which store one means, and how it is shown without its password.

use std::path::Path;

use anyhow::Result;
use rowlock::drain::sinks::redis;
use rowlock::engine::{postgres, sqlite};

use crate::{exit, show};

/// Where the jobs are.
#[derive(Debug, Clone)]
pub enum Store {
    Sqlite(sqlite::Address),
    Postgres(Box<postgres::Address>),
}

impl Store {
    /// The same store as seen from `folder`.
    pub fn relative_to(self, folder: &Path) -> Self {
        match self {
            Self::Sqlite(address) => Self::Sqlite(address.relative_to(folder)),
            server => server,
        }
    }

    /// What people call it.
    pub fn shown(&self) -> String {
        match self {
            Self::Sqlite(address) => show::path(&address.path),
            Self::Postgres(address) => address.to_string(),
        }
    }

    /// The schema's version that this build works with.
    pub fn latest(&self) -> u32 {
        match self {
            Self::Sqlite(_) => sqlite::LATEST,
            Self::Postgres(_) => postgres::LATEST,
        }
    }
}

/// Whether a URL means a server.
pub fn is_postgres(url: &str) -> bool {
    matches!(url.split_once(':'), Some(("postgres" | "postgresql", _)))
}

/// Reads a URL. It may have a password in it: of one that is refused only the scheme is repeated.
pub fn parse(url: &str) -> Result<Store> {
    const FORMS: &str = "write sqlite:PATH or postgres://USER@HOST/DATABASE";
    match url.split_once(':') {
        Some(("sqlite", _)) => Ok(Store::Sqlite(sqlite::Address::parse(url)?)),
        _ if is_postgres(url) => Ok(Store::Postgres(Box::new(postgres::Address::parse(url)?))),
        Some((scheme, _)) if scheme.len() > 1 => Err(exit::with(
            exit::USAGE,
            format!(
                "{}: is not a store that rowlock {} knows: {FORMS}",
                show::excerpt(scheme, 20),
                env!("CARGO_PKG_VERSION")
            ),
        )),
        _ if url.contains(['=', '@']) => Err(exit::with(
            exit::USAGE,
            format!("this is not the address of a store: {FORMS}"),
        )),
        _ => Err(exit::with(
            exit::USAGE,
            format!("{url:?} is not the address of a store: {FORMS}"),
        )),
    }
}

/// The URL with the word PASSWORD where one is.
pub fn without_password(url: &str) -> String {
    if !is_postgres(url) {
        return url.to_owned();
    }
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let (login, place) = match rest.split_once('@') {
        Some((login, place)) => (Some(login), place),
        None => (None, rest),
    };
    let login = login.map(|login| match login.split_once(':') {
        Some((user, _)) => format!("{user}:PASSWORD@"),
        None => format!("{login}@"),
    });
    let (place, settings) = match place.split_once('?') {
        Some((place, settings)) => (place, Some(settings)),
        None => (place, None),
    };
    let settings = settings.map(|settings| {
        let shown = settings.split('&').map(|each| match each.split_once('=') {
            Some(("password", _)) => "password=PASSWORD",
            _ => each,
        });
        format!("?{}", shown.collect::<Vec<_>>().join("&"))
    });
    let (login, settings) = (login.unwrap_or_default(), settings.unwrap_or_default());
    format!("{scheme}://{login}{place}{settings}")
}

/// Whether a text is a URL with a password in it, before the host or among its settings.
pub fn has_password(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if scheme.is_empty() || !scheme.chars().all(is_scheme) {
        return false;
    }
    let (place, settings) = rest.split_once('?').unwrap_or((rest, ""));
    let login = place.rsplit_once('@').map_or("", |(login, _)| login);
    let before_host = matches!(login.split_once(':'), Some((_, password)) if !password.is_empty());
    let among_settings = settings.split('&').any(
        |each| matches!(each.split_once('='), Some(("password", password)) if !password.is_empty()),
    );
    before_host || among_settings
}

/// The URL of a sink without its login.
pub fn sink(url: &str) -> String {
    let scheme = match url.starts_with("sidekiq+") {
        true => "sidekiq+",
        false => "",
    };
    match redis::Address::parse(url) {
        Ok(address) => format!("{scheme}{address}"),
        // Where a password ends can't be told.
        Err(_) => format!("{scheme}redis://..."),
    }
}

/// As a shell needs it.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@".contains(c);
    match text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", show::text(text).replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_password() {
        for (url, shown) in [
            ("sqlite:app.db", "sqlite:app.db"),
            ("postgres://db/app", "postgres://db/app"),
            ("postgres://ada@db/app", "postgres://ada@db/app"),
            (
                "postgres://ada:s3cret@db:1/app",
                "postgres://ada:PASSWORD@db:1/app",
            ),
            (
                "postgresql://ada:s3/:?cret@db/app",
                "postgresql://ada:PASSWORD@db/app",
            ),
            (
                "postgres://db/app?user=ada&password=s3cret&connect_timeout=3",
                "postgres://db/app?user=ada&password=PASSWORD&connect_timeout=3",
            ),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn a_sink_is_shown_without_its_login() {
        for (url, shown) in [
            ("redis://:s3cret@cache/0", "redis://cache:6379/0"),
            (
                "sidekiq+redis://ada:s3cret@cache:7000/1?prefix=shop",
                "sidekiq+redis://cache:7000/1?prefix=shop",
            ),
            ("redis://:s3?cret@cache/0", "redis://..."),
            ("redis:s3cret@cache", "redis://..."),
        ] {
            assert_eq!(sink(url), shown);
        }
    }

    #[test]
    fn a_password_in_a_url_is_found() {
        for url in [
            "postgres://ada:s3cret@db/app",
            "postgresql://db/app?user=ada&password=s3cret",
            "redis://:s3cret@cache/0",
            "sidekiq+redis://ada:s3cret@cache/1?prefix=shop",
            "https://ada:s3cret@example.com/hook",
        ] {
            assert!(has_password(url), "{url}");
        }
        for none in [
            "sqlite:app.db",
            "postgres://ada@db:5432/app",
            "postgres://ada:@db/app?password=",
            "https://example.com/a:b",
            "SELECT 'a://b:c' || '@'",
            "mailto:ada@example.com",
        ] {
            assert!(!has_password(none), "{none}");
        }
    }

    #[test]
    fn what_is_refused_is_not_repeated() {
        for url in [
            "mysql://ada:s3cret@db/app",
            "host=db password=s3cret",
            "postgres:ada:s3cret@db/app",
            "postgres://ada:s3@cret@db/app",
            "postgres://ada:s3cret@db/app?nonsense=s3cret",
        ] {
            let why = format!("{:#}", parse(url).unwrap_err());
            assert!(!why.contains("cret"), "{why}");
        }
    }
}
