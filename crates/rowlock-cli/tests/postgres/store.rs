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

    /// A database of a server of its own, without anything of ours.
    pub fn on(server: &Postgres, config: &str) -> Self {
        Self::of(config, server.database_from(None))
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

    /// Runs a remedy as it is printed; `psql` finds this database, `rowlock` this store.
    pub fn remedy(&self, remedy: &str) {
        self.remedy_as("postgres", remedy);
    }

    /// The same as another role.
    pub fn remedy_as(&self, role: &str, remedy: &str) {
        let mut shell = self.place.shell(remedy);
        let (_, place) = self.database.url().split_once('@').unwrap();
        let (place, database) = place.split_once('/').unwrap();
        let (host, port) = place.split_once(':').unwrap();
        let psql = Postgres::program("psql");
        let path = std::env::join_paths(
            std::iter::once(psql.parent().unwrap().to_owned()).chain(std::env::split_paths(
                shell
                    .get_envs()
                    .find(|(name, _)| *name == "PATH")
                    .unwrap()
                    .1
                    .unwrap(),
            )),
        );
        shell
            .env("PATH", path.unwrap())
            .env("ROWLOCK_URL", self.url_of(role))
            .envs([
                ("PGHOST", host),
                ("PGPORT", port),
                ("PGDATABASE", database),
                ("PGUSER", role),
            ]);
        let finished = checked(&[remedy], Process::run(&mut shell, ""));
        assert_eq!(finished.code, Some(0), "{remedy}: {finished:?}");
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
