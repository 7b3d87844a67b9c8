//! SQLite's side of the cases.

use std::path::PathBuf;

use rowlock::clock::Clock;
use rowlock::engine::sqlite::{Address, Sqlite, migrate_up};
use rowlock::{Enqueued, NewJob, Rowlock};
use rowlock_testbed::TempDir;
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::conformance::world::{Client, Field, Home};

/// A file of its own for each case.
pub struct File {
    path: PathBuf,
    /// Gone with the case; a visitor of another process has none.
    _folder: Option<TempDir>,
}

impl File {
    pub fn new() -> Self {
        let folder = rowlock_testbed::folder();
        let home = Self {
            path: folder.path().join("jobs.db"),
            _folder: Some(folder),
        };
        home.migrate();
        home
    }

    /// The file that another process made, or one that is to be made.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            _folder: None,
        }
    }

    pub fn address(&self) -> Address {
        Address::parse(&self.url()).unwrap()
    }

    pub fn connect(&self) -> Connection {
        let connection = Connection::open(&self.path).unwrap();
        connection
            .busy_timeout(std::time::Duration::from_secs(30))
            .unwrap();
        connection
    }
}

impl Home for File {
    fn migrate(&self) {
        migrate_up(&self.address(), &Clock::system()).unwrap();
    }

    fn open(&self, clock: Clock) -> Rowlock {
        Rowlock::with(Sqlite::open(self.address(), clock.clone()).unwrap(), clock)
    }

    fn client(&self) -> Box<dyn Client> {
        Box::new(Application(self.connect()))
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }

    fn empty_url(&self) -> String {
        format!("sqlite:{}", self.path.with_file_name("new.db").display())
    }
}

struct Application(Connection);

impl Client for Application {
    fn begin(&mut self) {
        self.execute("BEGIN IMMEDIATE");
    }

    fn commit(&mut self) {
        self.execute("COMMIT");
    }

    fn rollback(&mut self) {
        self.execute("ROLLBACK");
    }

    fn stage(&mut self, job: &NewJob) -> rowlock::error::Result<Enqueued> {
        rowlock::enqueue_blocking(&self.0, job)
    }

    fn stage_by_sql(&mut self, fields: &[(&str, Field)]) -> Result<(), String> {
        let columns: Vec<&str> = fields.iter().map(|(column, _)| *column).collect();
        let marks = vec!["?"; fields.len()];
        let sql = format!(
            "INSERT INTO rowlock_enqueue ({}) VALUES ({})",
            columns.join(", "),
            marks.join(", ")
        );
        let values = fields.iter().map(|(_, value)| match value {
            Field::Text(text) => Value::Text(text.clone()),
            Field::Bytes(bytes) => Value::Blob(bytes.clone()),
            Field::Int(n) => Value::Integer(*n),
        });
        let inserted = self.0.execute(&sql, rusqlite::params_from_iter(values));
        inserted.map(|_| ()).map_err(|why| why.to_string())
    }

    fn execute(&mut self, sql: &str) {
        self.0.execute_batch(sql).unwrap();
    }

    fn time(&self, at: jiff::Timestamp) -> String {
        at.as_millisecond().to_string()
    }

    fn refuse_end(&mut self, form: &str) {
        self.execute(&format!(
            "CREATE TRIGGER refused BEFORE INSERT ON rowlock_history WHEN {form}
             BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        ));
    }

    fn accept_every_end(&mut self) {
        self.execute("DROP TRIGGER refused");
    }

    fn sees_json_as_written(&self) -> bool {
        true
    }

    fn can_write(&mut self) -> bool {
        self.0.busy_timeout(std::time::Duration::ZERO).unwrap();
        self.0.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok()
    }

    fn integrity(&mut self) -> String {
        self.0
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap()
    }
}
