//! A connection to PostgreSQL whose calls block, from inside a runtime too.

use postgres::{Client, NoTls, SimpleQueryMessage};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The rows of an answer, as text.
pub type Rows = Vec<Vec<Option<String>>>;

type Outcome = Result<(u64, Rows), String>;

/// A connection. It is closed when this is dropped.
///
/// The client lives on a thread of its own: it runs a runtime, which can't start inside another one.
#[derive(Debug)]
pub struct Session {
    statements: Sender<(String, Sender<Outcome>)>,
}

/// What a statement will have done; see [`Session::send`].
#[derive(Debug)]
pub struct Answer(Receiver<Outcome>);

#[expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't ask its database has failed"
)]
impl Session {
    /// Connects.
    ///
    /// # Panics
    /// When that fails; see [`Session::try_open`].
    #[must_use]
    pub fn open(url: &str) -> Self {
        Self::try_open(url).unwrap_or_else(|why| panic!("can't connect to {url}: {why}"))
    }

    /// Connects.
    ///
    /// # Errors
    /// The SQLSTATE and the server's message, or why there is no connection.
    ///
    /// # Panics
    /// When the system has no thread left.
    pub fn try_open(url: &str) -> Result<Self, String> {
        let (statements, incoming) = channel::<(String, Sender<Outcome>)>();
        let (opened, open) = channel();
        let url = url.to_owned();
        std::thread::Builder::new()
            .name("session".to_owned())
            .spawn(move || match Client::connect(&url, NoTls) {
                Err(why) => drop(opened.send(Err(told(&why)))),
                Ok(mut client) => {
                    let _ = opened.send(Ok(()));
                    for (sql, answer) in incoming {
                        let outcome = client.simple_query(&sql);
                        let outcome = outcome.map(collect).map_err(|why| told(&why));
                        // Who asked may have gone.
                        let _ = answer.send(outcome);
                    }
                }
            })
            .expect("a thread");
        open.recv().expect("the session's thread")?;
        Ok(Self { statements })
    }

    /// Sends statements and returns at once, so that a test can go on while they wait for a lock.
    ///
    /// # Panics
    /// When the session's thread has ended.
    #[must_use]
    pub fn send(&self, sql: &str) -> Answer {
        let (sender, answer) = channel();
        self.statements
            .send((sql.to_owned(), sender))
            .expect("the session's thread");
        Answer(answer)
    }

    /// Runs statements; returns the number of rows they touched.
    ///
    /// # Errors
    /// The SQLSTATE and the server's message: `42P01: relation "t" does not exist`.
    pub fn execute(&self, sql: &str) -> Result<u64, String> {
        self.send(sql).wait().map(|(touched, _)| touched)
    }

    /// Runs a query; returns its rows as text.
    ///
    /// # Errors
    /// The SQLSTATE and the server's message: `42P01: relation "t" does not exist`.
    pub fn query(&self, sql: &str) -> Result<Rows, String> {
        self.send(sql).wait().map(|(_, rows)| rows)
    }

    /// The first column of the first row.
    ///
    /// # Panics
    /// When the query fails, has no row, or the value is null.
    #[must_use]
    pub fn value(&self, sql: &str) -> String {
        let rows = self
            .query(sql)
            .unwrap_or_else(|why| panic!("{sql} failed: {why}"));
        rows.into_iter()
            .next()
            .and_then(|row| row.into_iter().next().flatten())
            .unwrap_or_else(|| panic!("{sql} has no value"))
    }

    /// The process of the server that serves this session.
    ///
    /// # Panics
    /// When the connection is gone.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.value("SELECT pg_backend_pid()")
            .parse()
            .expect("a process id")
    }
}

#[expect(clippy::expect_used, reason = "a lost answer has failed the test")]
impl Answer {
    /// Waits for the number of touched rows and the rows of the answer.
    ///
    /// # Errors
    /// The SQLSTATE and the server's message.
    ///
    /// # Panics
    /// When the session's thread has ended.
    pub fn wait(self) -> Result<(u64, Rows), String> {
        self.0.recv().expect("the session's thread")
    }
}

fn collect(messages: Vec<SimpleQueryMessage>) -> (u64, Rows) {
    let (mut touched, mut rows) = (0, Rows::new());
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => rows.push(
                (0..row.len())
                    .map(|at| row.get(at).map(str::to_owned))
                    .collect(),
            ),
            SimpleQueryMessage::CommandComplete(count) => touched += count,
            _ => {}
        }
    }
    (touched, rows)
}

fn told(why: &postgres::Error) -> String {
    match why.as_db_error() {
        Some(why) => format!("{}: {}", why.code().code(), why.message()),
        None => match std::error::Error::source(why) {
            Some(source) => format!("{why}: {source}"),
            None => why.to_string(),
        },
    }
}
