//! `rowlock dashboard` in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use rowlock::run::task::Thread;

use crate::server::Server;

pub(crate) struct Served {
    child: Child,
    pub(crate) address: String,
    _reading: Thread,
}

impl Served {
    /// Over a schema.
    pub(crate) fn start(server: &Server) -> Result<Self> {
        Self::of(&server.url, &["--schema", &server.schema])
    }

    /// The same over somebody who passes on what it says.
    pub(crate) fn through(url: &str, server: &Server) -> Result<Self> {
        Self::of(url, &["--schema", &server.schema])
    }

    /// Over a file.
    pub(crate) fn of_file(path: &Path) -> Result<Self> {
        Self::of(&format!("sqlite:{}", path.display()), &[])
    }

    fn of(url: &str, more: &[&str]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["dashboard", "--bind", "127.0.0.1:0"])
            .args(more)
            // Not as an argument: everybody can see those, and it may have a password.
            .env("ROWLOCK_URL", url)
            .env_remove("ROWLOCK_CONFIG")
            .env_remove("ROWLOCK_DASHBOARD_TOKEN")
            .env_remove("ROWLOCK_DASHBOARD_READER_TOKEN")
            // A configuration there isn't this one's.
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().context("it has a stderr")?;
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            let rest = line.trim_start().strip_prefix("api        http://")?;
            Some(rest.split_once('/')?.0.to_owned())
        });
        // A pipe that nobody reads would stop it one day.
        let reading = Thread::start("bench-dashboard", move || lines.for_each(drop))?;
        let mut served = Self {
            child,
            address: String::new(),
            _reading: reading,
        };
        served.address = address.context("the dashboard didn't start")?;
        Ok(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
