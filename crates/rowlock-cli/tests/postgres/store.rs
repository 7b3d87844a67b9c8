//! A folder and a database of a test's own, and the binary working with both.

use std::process::Command;

use rowlock_testbed::{Database, Finished, Postgres, Process, Session};
use serde_json::Value;

use crate::place::Place;

/// A password that nobody needs and nobody may show: the server trusts everybody.
pub const CANARY: &str = "c4nary";

pub struct Store {
    pub place: Place,
    pub database: Database,
    url: String,
}

impl Store {
    /// A database without anything of ours.
    pub fn empty(config: &str) -> Self {
        Self::of(config, Postgres::shared().database_from(None))
    }

    /// A database whose schema is up to date.
    pub fn new(config: &str) -> Self {
        let server = Postgres::shared();
        let template = server.template("cli", |url| {
            let place = Place::new();
            place.ok(&["migrate", "up", "--url", url]);
        });
        Self::of(config, server.database_from(Some(&template)))
    }

    fn of(config: &str, database: Database) -> Self {
        let login = format!("postgres:{CANARY}@");
        Self {
            place: Place::with_config(config),
            url: database.url().replace("postgres@", &login),
            database,
        }
    }

    /// The URL, with the password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL as another role would write it.
    pub fn url_of(&self, role: &str) -> String {
        let login = format!("postgres:{CANARY}@");
        self.url.replace(&login, &format!("{role}:{CANARY}@"))
    }

    /// The binary, with the URL in its environment.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.place.command(args);
        command.env("ROWLOCK_URL", &self.url);
        command
    }

    pub fn run(&self, args: &[&str]) -> Finished {
        self.feed(args, "")
    }

    pub fn feed(&self, args: &[&str], input: &str) -> Finished {
        checked(args, Process::run(&mut self.command(args), input))
    }

    /// Runs it as another role.
    pub fn run_as(&self, role: &str, args: &[&str]) -> Finished {
        let mut command = self.command(args);
        command.env("ROWLOCK_URL", self.url_of(role));
        checked(args, Process::run(&mut command, ""))
    }

    /// Runs it and wants it to succeed; the answer is its stdout.
    pub fn ok(&self, args: &[&str]) -> String {
        let finished = self.run(args);
        assert_eq!(finished.code, Some(0), "{args:?}: {finished:?}");
        finished.stdout
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let text = self.ok(args);
        serde_json::from_str(&text).unwrap_or_else(|why| panic!("{args:?}: {why}: {text}"))
    }

    pub fn start(&self, args: &[&str]) -> Process {
        Process::start(&mut self.command(args))
    }

    /// A session of the superuser's.
    pub fn session(&self) -> Session {
        self.database.session()
    }

    /// Runs statements of the superuser's.
    pub fn sql(&self, text: &str) {
        let done = self.session().execute(text);
        done.unwrap_or_else(|why| panic!("{text}: {why}"));
    }
}

/// Whatever it does, it shows no password and doesn't panic.
pub fn checked(args: &[&str], finished: Finished) -> Finished {
    for said in [&finished.stdout, &finished.stderr] {
        assert!(!said.contains(CANARY), "{args:?}: {finished:?}");
        assert!(!said.contains("panicked"), "{args:?}: {finished:?}");
    }
    finished
}
