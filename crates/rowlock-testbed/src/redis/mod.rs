//! Private Redis servers. A server is gone when its value or its test process is gone, even when the
//! process was killed.

mod client;

use crate::warden::Warden;
use crate::{port, until};
use std::path::{Path, PathBuf};

/// Forgets everything with its process, unless a test says otherwise.
const SETTINGS: [&str; 4] = ["--save", "", "--appendonly", "no"];

/// A Redis server on 127.0.0.1, without a password.
#[derive(Debug)]
pub struct Redis {
    port: u16,
    home: PathBuf,
    warden: Warden,
}

#[expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't run its server has failed"
)]
impl Redis {
    /// Starts one that keeps nothing on disk.
    ///
    /// # Panics
    /// When Redis isn't installed or doesn't start.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one with further arguments, such as `--appendonly yes` or `--maxmemory 2mb`, each word
    /// by itself. `ROWLOCK_REDIS_SERVER` names another program, such as that of Valkey.
    ///
    /// # Panics
    /// When Redis isn't installed or doesn't start.
    #[must_use]
    pub fn start_with(arguments: &[&str]) -> Self {
        let program = program();
        let program = program.to_str().expect("a path in UTF-8");
        let words: Vec<_> = [&[program], &SETTINGS[..], arguments].concat();
        let warden = Warden::start(include_str!("warden.sh"), &words);
        let home = warden.answer().map(PathBuf::from);
        let home = home.unwrap_or_else(|why| panic!("no Redis: {why}"));
        let mut redis = Self {
            port: 0,
            home,
            warden,
        };
        let mut refused = String::new();
        for _ in 0..5 {
            // Somebody else may take it in the meantime.
            redis.port = port::free();
            match redis.launch() {
                Ok(()) => return redis,
                Err(why) => refused = why,
            }
        }
        panic!("Redis doesn't start:\n{refused}")
    }

    /// Starts the program and waits until it takes connections.
    fn launch(&self) -> Result<(), String> {
        self.warden.order(&format!("start {}", self.port))?;
        let said = until("Redis is up", || {
            let said = self.log();
            let refuses = ["FATAL", "Fatal", "Failed listening"];
            let decided = said.contains("Ready to accept connections")
                || refuses.iter().any(|word| said.contains(word));
            decided.then_some(said)
        });
        if said.contains("Ready to accept connections") {
            Ok(())
        } else {
            Err(said)
        }
    }

    /// The URL of its first database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends a command, each word by itself; returns the answer as text, a list's items as lines, nothing
    /// as the empty text.
    ///
    /// # Panics
    /// When the server can't be reached or refuses; see [`Redis::try_command`].
    pub fn command(&self, words: &[&str]) -> String {
        self.try_command(words)
            .unwrap_or_else(|why| panic!("{words:?} failed: {why}"))
    }

    /// Sends a command, as [`Redis::command`].
    ///
    /// # Errors
    /// The server's refusal, or why it can't be reached.
    pub fn try_command(&self, words: &[&str]) -> Result<String, String> {
        client::ask(self.port, words).map_err(|why| why.to_string())?
    }

    /// Kills it, as `kill -9` does, and waits until it is gone.
    ///
    /// # Panics
    /// When its warden takes no orders.
    pub fn kill(&self) {
        self.warden
            .order("kill")
            .unwrap_or_else(|why| panic!("no kill: {why}"));
    }

    /// Kills it if it still runs, and starts it again on the same port: with what it had written to
    /// disk, which is nothing unless it was told to.
    ///
    /// # Panics
    /// When it doesn't start.
    pub fn restart(&self) {
        self.kill();
        self.launch()
            .unwrap_or_else(|why| panic!("no start:\n{why}"));
    }

    /// All that it has logged since its start.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    /// The folder of its files.
    #[must_use]
    pub fn data_folder(&self) -> &Path {
        &self.home
    }
}

#[expect(clippy::panic, reason = "a test without Redis has failed")]
fn program() -> PathBuf {
    let named = std::env::var_os("ROWLOCK_REDIS_SERVER").map(PathBuf::from);
    let name = named.clone().unwrap_or_else(|| "redis-server".into());
    if name.components().count() > 1 {
        assert!(name.is_file(), "there is no {}", name.display());
        // The server's working folder is another.
        return name.canonicalize().unwrap_or(name);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(&name))
        .find(|file: &PathBuf| file.is_file())
        .unwrap_or_else(|| match named {
            Some(_) => panic!("ROWLOCK_REDIS_SERVER={} isn't installed", name.display()),
            None => panic!("Redis is missing. Type:  apt-get install -y redis-server"),
        })
}
