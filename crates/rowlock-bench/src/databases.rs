//! Two databases of the run's own: an old snapshot keeps what is dead in every table of its database, so
//! nobody else's may be there, and the state without one is elsewhere.

use anyhow::{Context, Result};
use tokio_postgres::error::SqlState;

use crate::run;
use crate::server::Server;

pub(crate) struct Databases {
    server: Server,
    /// With an old snapshot, and without.
    names: [String; 2],
}

impl Databases {
    pub(crate) fn new(server: &Server) -> Result<Self> {
        let name = run::next()?;
        Ok(Self {
            server: Server::new(&server.url)?,
            names: ["pinned", "free"].map(|which| format!("{name}_{which}")),
        })
    }

    /// Whether this role may.
    pub(crate) async fn make(&self) -> Result<bool> {
        let session = self.server.session().await?;
        for name in &self.names {
            let text = format!("CREATE DATABASE {name}");
            match session.client.batch_execute(&text).await {
                Err(why) if why.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                    return Ok(false);
                }
                other => other.context("can't make a database")?,
            }
        }
        Ok(true)
    }

    /// A schema in each of them.
    pub(crate) fn servers(&self) -> Result<[Server; 2]> {
        let [pinned, free] = &self.names;
        let url = &self.server.url;
        Ok([
            Server::new(&in_database(url, pinned))?,
            Server::new(&in_database(url, free))?,
        ])
    }

    pub(crate) async fn drop(&self) -> Result<()> {
        let session = self.server.session().await?;
        for name in &self.names {
            let text = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            let dropped = session.client.batch_execute(&text).await;
            dropped.with_context(|| format!("the database {name} is left over, drop it"))?;
        }
        Ok(())
    }
}

/// The URL with another database in it.
pub(crate) fn in_database(url: &str, name: &str) -> String {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let (scheme, place) = place.split_once("://").unwrap_or(("postgres", place));
    let host = place.split_once('/').map_or(place, |(host, _)| host);
    format!("{scheme}://{host}/{name}?{query}")
}

#[cfg(test)]
mod tests {
    use super::in_database;

    #[test]
    fn only_the_database_of_a_url_changes() {
        for (url, then) in [
            (
                "postgres://ada:x@localhost:5433/app?connect_timeout=3",
                "postgres://ada:x@localhost:5433/other?connect_timeout=3",
            ),
            ("postgres:///app?host=/tmp", "postgres:///other?host=/tmp"),
            ("postgresql://localhost", "postgresql://localhost/other?"),
        ] {
            assert_eq!(in_database(url, "other"), then);
        }
    }
}
