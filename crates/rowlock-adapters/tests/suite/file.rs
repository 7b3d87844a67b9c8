//! The application's own file: a table of its own beside ours.

use std::path::PathBuf;

use rowlock::clock::Clock;
use rowlock::engine::sqlite::{Address, migrate_up};
use rowlock::{JobId, Record, Rowlock};
use rowlock_testbed::TempDir;
use rusqlite::Connection;

pub struct File {
    _folder: TempDir,
    pub path: PathBuf,
}

impl File {
    /// With our tables.
    pub fn new() -> Self {
        let file = Self::bare();
        migrate_up(&Address::parse(&file.url()).unwrap(), &Clock::system()).unwrap();
        file
    }

    /// Without them.
    pub fn bare() -> Self {
        let folder = rowlock_testbed::folder();
        let path = folder.path().join("app.db");
        let file = Self {
            _folder: folder,
            path,
        };
        file.execute("CREATE TABLE notes (text TEXT)");
        file
    }

    pub fn url(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }

    pub fn open(&self) -> Rowlock {
        Rowlock::open(&self.url()).unwrap()
    }

    pub fn connect(&self) -> Connection {
        Connection::open(&self.path).unwrap()
    }

    pub fn execute(&self, sql: &str) {
        self.connect().execute_batch(sql).unwrap();
    }

    pub fn number(&self, sql: &str) -> i64 {
        self.connect().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub fn notes(&self) -> i64 {
        self.number("SELECT count(*) FROM notes")
    }

    pub fn jobs(&self) -> i64 {
        self.number("SELECT count(*) FROM rowlock_jobs")
    }

    pub async fn job(&self, id: JobId) -> Record {
        self.open().operate().job(id).await.unwrap().unwrap()
    }

    /// A statement that puts this file beside another.
    pub fn attach(&self) -> String {
        format!("ATTACH '{}' AS jobs", self.path.display())
    }
}
