//! One statement, one answer: on a connection of the pool, within a time.

use std::time::Duration;

use deadpool::managed::Object;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::Postgres;
use super::bounded::Unheard;
use super::connect::{Connection, Pool, take};
use super::error::{is_blocked, is_denied, is_of_another_isolation, is_stale, is_worn_out, map};
use super::rows::Rows;
use super::statements::{Sql, call};
use crate::clock::Clock;
use crate::error::{Error, Result};

/// How long a step of the journey may take. They take milliseconds; a silent server is noticed.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);
/// How long a question of an operator's may take.
const LONG_PATIENCE: Duration = Duration::from_secs(600);

/// A value with the type that the statement wants: no statement is prepared, so that any connection
/// of a pooler's will do.
pub(super) type Value<'a> = (&'a (dyn ToSql + Sync), Type);

impl Postgres {
    /// Calls one of our functions.
    pub(super) async fn call(
        &self,
        function: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>> {
        let text = call(function, values.len(), &self.address.schema);
        self.rows(&self.pool, &text, values, function, PATIENCE)
            .await
    }

    /// Calls one that may want what an open transaction has; nothing when it wasn't to be had in time.
    pub(super) async fn call_unless_blocked(
        &self,
        function: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Vec<Row>>> {
        let text = call(function, values.len(), &self.address.schema);
        let client = take(&self.pool, PATIENCE).await?;
        let asked = Clock::system()
            .timeout(PATIENCE, client.ask(&text, values))
            .await;
        match asked {
            Some(Err(why)) if is_blocked(&why) => Ok(None),
            asked => answered(client, asked, function).map(Some),
        }
    }

    /// Runs a statement that is asked all the time: prepared, if the sessions are our own.
    pub(super) async fn ask_often(&self, statement: Sql, values: &[Value<'_>]) -> Result<Vec<Row>> {
        let text = statement.text(&self.address.schema);
        self.rows_often(&text, values, statement.name).await
    }

    /// Calls a function of that kind; its rows are read as they come, elsewhere.
    pub(super) async fn read_often<T, F>(
        &self,
        function: &'static str,
        values: &[Value<'_>],
        read: impl Fn(Rows) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<Result<T>, tokio_postgres::Error>> + Send + 'static,
    {
        let text = call(function, values.len(), &self.address.schema);
        // As in rows_often.
        let prepared = self.listener.hears() == Some(true);
        let ask = async |prepared: bool| {
            let client = take(&self.pool, PATIENCE).await?;
            let asked = client.read(&text, values, prepared, &read);
            let asked = Clock::system().timeout(PATIENCE, asked).await;
            Ok::<_, Error>((client, asked))
        };
        match ask(prepared).await? {
            (client, Some(Err(why))) if prepared && is_stale(&why) => {
                drop(Object::take(client));
                let (client, asked) = ask(false).await?;
                answered(client, asked, function)?
            }
            (client, asked) => answered(client, asked, function)?,
        }
    }

    async fn rows_often(&self, text: &str, values: &[Value<'_>], doing: &str) -> Result<Vec<Row>> {
        // Whoever hears notifications has a session of its own, and so have the others of this address.
        if self.listener.hears() != Some(true) {
            return self.rows(&self.pool, text, values, doing, PATIENCE).await;
        }
        let client = take(&self.pool, PATIENCE).await?;
        let asked = Clock::system()
            .timeout(PATIENCE, client.ask_prepared(text, values))
            .await;
        match asked {
            // Nothing has been run yet. Another connection knows better, and reads it anew.
            Some(Err(why)) if is_stale(&why) => {
                drop(Object::take(client));
                self.rows(&self.pool, text, values, doing, PATIENCE).await
            }
            asked => answered(client, asked, doing),
        }
    }

    /// Calls one over the connection that nothing but heartbeats use.
    pub(super) async fn call_aside(
        &self,
        function: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>> {
        let text = call(function, values.len(), &self.address.schema);
        self.rows(&self.pulse, &text, values, function, PATIENCE)
            .await
    }

    /// Runs a statement that takes milliseconds.
    pub(super) async fn ask(&self, statement: Sql, values: &[Value<'_>]) -> Result<Vec<Row>> {
        let text = statement.text(&self.address.schema);
        self.rows(&self.pool, &text, values, statement.name, PATIENCE)
            .await
    }

    /// Runs a statement that this role may not be allowed: then the server's words are the inner error.
    pub(super) async fn ask_leave(
        &self,
        statement: Sql,
        values: &[Value<'_>],
    ) -> Result<Result<Vec<Row>, String>> {
        let text = statement.text(&self.address.schema);
        let client = take(&self.pool, PATIENCE).await?;
        let asked = Clock::system()
            .timeout(PATIENCE, client.ask(&text, values))
            .await;
        match asked {
            Some(Err(why)) if is_denied(&why) => Ok(Err(map(&why, statement.name).to_string())),
            asked => answered(client, asked, statement.name).map(Ok),
        }
    }

    /// Asks an operator's question that takes milliseconds however much there is.
    pub(super) async fn look(&self, statement: Sql, values: &[Value<'_>]) -> Result<Vec<Row>> {
        let text = statement.text(&self.address.schema);
        // Planning takes as long as looking, or longer.
        let kept = self.has_own_sessions().await?;
        let look = async |kept: bool| {
            let client = take(&self.pool, PATIENCE).await?;
            let asked = Clock::system()
                .timeout(PATIENCE, client.look(&text, values, kept))
                .await;
            Ok::<_, Error>((client, asked))
        };
        match look(kept).await? {
            // As in rows_often.
            (client, Some(Err(why))) if kept && is_stale(&why) => {
                drop(Object::take(client));
                let (client, asked) = look(false).await?;
                answered(client, asked, statement.name)
            }
            (client, asked) => answered(client, asked, statement.name),
        }
    }

    /// Asks an operator's question, or writes what an operator wants. It may go through everything there is: the
    /// server stops when nobody waits for the answer any more.
    pub(super) async fn query(&self, statement: Sql, values: &[Value<'_>]) -> Result<Vec<Row>> {
        let text = statement.text(&self.address.schema);
        let mut unheard = Unheard {
            io: &self.io,
            client: Some(take(&self.pool, PATIENCE).await?),
        };
        let asked = match &unheard.client {
            Some(client) => {
                let asked = client.ask(&text, values);
                Clock::system().timeout(LONG_PATIENCE, asked).await
            }
            None => None,
        };
        // Nor do we wait any longer than that.
        if asked.is_none() {
            return Err(silence(statement.name));
        }
        match unheard.client.take() {
            Some(client) => answered(client, asked, statement.name),
            None => Err(silence(statement.name)),
        }
    }

    /// Runs a statement; how many rows it changed.
    pub(super) async fn execute(&self, statement: Sql, values: &[Value<'_>]) -> Result<u64> {
        let text = statement.text(&self.address.schema);
        let client = take(&self.pool, PATIENCE).await?;
        let done = Clock::system()
            .timeout(PATIENCE, client.execute_typed(&text, values))
            .await;
        match done {
            Some(Ok(changed)) => Ok(changed),
            Some(Err(why)) => Err(map(&why, statement.name)),
            None => {
                drop(Object::take(client));
                Err(silence(statement.name))
            }
        }
    }

    async fn rows(
        &self,
        pool: &Pool,
        text: &str,
        values: &[Value<'_>],
        doing: &str,
        patience: Duration,
    ) -> Result<Vec<Row>> {
        let client = take(pool, PATIENCE).await?;
        let asked = Clock::system()
            .timeout(patience, client.ask(text, values))
            .await;
        answered(client, asked, doing)
    }
}

fn answered<T>(
    client: Connection,
    asked: Option<Result<T, tokio_postgres::Error>>,
    doing: &str,
) -> Result<T> {
    match asked {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(why)) => {
            let error = map(&why, doing);
            if is_worn_out(&error) || is_of_another_isolation(&why) {
                // Another one may lead to another server, or know better how to begin.
                drop(Object::take(client));
            }
            Err(error)
        }
        None => Err(silence(doing)),
    }
}

fn silence(doing: &str) -> Error {
    Error::Unavailable(format!("no answer in time ({doing})"))
}
