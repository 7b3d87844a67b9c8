//! A database for a test, copied from a template in milliseconds.

use super::Postgres;
use crate::session::Session;
use crate::until;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The templates that this process has made, by name.
pub(super) type Templates = Mutex<HashMap<String, Arc<OnceLock<String>>>>;

/// A database of its own. It is dropped with this value, and whoever is connected is thrown out.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
    admin_url: String,
}

impl Database {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A new session of the superuser in it.
    ///
    /// # Panics
    /// When the server takes no connection.
    #[must_use]
    pub fn session(&self) -> Session {
        Session::open(&self.url)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A test may have stopped the server.
        if let Ok(session) = Session::try_open(&self.admin_url) {
            let _ = session.execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
        }
    }
}

#[expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test without its database has failed"
)]
impl Postgres {
    /// A new database, empty or a copy of a template that [`Postgres::template`] has named.
    ///
    /// # Panics
    /// When the server doesn't create it.
    #[must_use]
    pub fn database_from(&self, template: Option<&str>) -> Database {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("rowlock_{}_{number}", std::process::id());
        create(&self.session(), &name, template.unwrap_or("template0"));
        Database {
            url: self.url(&name),
            admin_url: self.admin_url(),
            name,
        }
    }

    /// Makes a template once: `make` fills the database at the URL that it gets. Returns the template's
    /// full name for [`Postgres::database_from`].
    ///
    /// # Panics
    /// When the server doesn't create it, or somebody stays connected to it.
    pub fn template(&self, name: &str, make: impl FnOnce(&str)) -> String {
        let cell = {
            let mut templates = self.templates.lock().expect("a lock");
            Arc::clone(templates.entry(name.to_owned()).or_default())
        };
        let made = cell.get_or_init(|| {
            // Several processes may share the server, and each may mean something else by the name.
            let full = format!("rowlock_{}_template_{name}", std::process::id());
            let session = self.session();
            let done = session.execute(&format!("DROP DATABASE IF EXISTS {full} WITH (FORCE)"));
            done.unwrap_or_else(|why| panic!("can't drop {full}: {why}"));
            create(&session, &full, "template0");
            make(&self.url(&full));
            // Copies need a template that nobody uses.
            let done = session.execute(&format!("ALTER DATABASE {full} ALLOW_CONNECTIONS false"));
            done.unwrap_or_else(|why| panic!("can't close {full}: {why}"));
            until("everybody has left the template", || {
                let others = session.value(&format!(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = '{full}'"
                ));
                (others == "0").then_some(())
            });
            full
        });
        made.clone()
    }

    /// Processes that were killed leave databases on a server that isn't theirs.
    pub(super) fn drop_databases_of_the_dead(&self) {
        let session = self.session();
        let names = session
            .query("SELECT datname FROM pg_database WHERE datname LIKE 'rowlock\\_%'")
            .unwrap_or_else(|why| panic!("no list of databases: {why}"));
        for name in names.into_iter().flatten().flatten() {
            let owner = name.split('_').nth(1).and_then(|pid| pid.parse().ok());
            let dead = owner
                .is_some_and(|pid: u32| !std::path::Path::new(&format!("/proc/{pid}")).exists());
            if dead {
                // Another process may do the same at this moment.
                let _ = session.execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            }
        }
    }
}

#[expect(clippy::panic, reason = "a test without its database has failed")]
fn create(session: &Session, name: &str, template: &str) {
    // With fsync off, copying the files takes three quarters of the time of logging every block.
    let copy = match session.value("SHOW server_version_num").parse::<u32>() {
        Ok(150_000..) => "STRATEGY file_copy",
        _ => "",
    };
    let created = session.execute(&format!(
        "CREATE DATABASE {name} TEMPLATE {template} {copy}"
    ));
    created.unwrap_or_else(|why| panic!("can't create {name} from {template}: {why}"));
}
