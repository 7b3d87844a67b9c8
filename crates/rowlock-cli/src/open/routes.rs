//! The routes of the configuration, and where each one leads: file < environment.

use std::ffi::OsString;

use anyhow::Result;
use rowlock::Name;
use rowlock::drain::Route;
use rowlock::drain::sinks::redis::Address;

use super::Setup;
use crate::exit;

impl Setup {
    /// The routes of the configuration. A URL of the environment takes the place of the file's, so that
    /// the file needs no password.
    pub fn routes(&self) -> Result<Vec<Route>> {
        let mut routes = self.config.routes()?;
        for route in &mut routes {
            let name = variable(&route.name);
            if let Some(url) = std::env::var_os(&name) {
                route.to = replaced(route, url)
                    .map_err(|why| exit::with(exit::USAGE, format!("{name}: {why}")))?;
            }
            // Before anything is written that can't be drained.
            Address::parse(&route.to)
                .map_err(|why| exit::with(exit::USAGE, format!("route {}: {why}", route.name)))?;
        }
        Ok(routes)
    }
}

/// `ROWLOCK_DRAIN_REDIS` for the route redis.
fn variable(route: &Name) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_uppercase(),
        false => '_',
    };
    let name: String = route.as_str().chars().map(plain).collect();
    format!("ROWLOCK_DRAIN_{name}")
}

/// Another place, not another sort of sink: what the file says of the route must still hold.
fn replaced(route: &Route, url: OsString) -> Result<String, String> {
    let url = url.into_string().map_err(|_| "it isn't UTF-8".to_owned())?;
    let other = Route::to(url).map_err(|why| why.to_string())?;
    match other.reports_back() == route.reports_back() {
        true => Ok(other.to),
        false => Err(format!(
            "route {} is of another scheme in the configuration: use the same one",
            route.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_where_a_route_leads_and_not_what_it_is() {
        let route = Route::to("redis://cache/0").unwrap();
        assert_eq!(variable(&route.name), "ROWLOCK_DRAIN_REDIS");
        assert_eq!(
            variable(&Name::new("eu.mail-2").unwrap()),
            "ROWLOCK_DRAIN_EU_MAIL_2"
        );
        let to = replaced(&route, "redis://:s3cret@other/1".into());
        assert_eq!(to.unwrap(), "redis://:s3cret@other/1");
        for bad in ["sidekiq+redis://:s3cret@other/1", "s3cret"] {
            let why = replaced(&route, bad.into()).unwrap_err();
            assert!(!why.contains("s3cret"), "{why}");
        }
    }
}
