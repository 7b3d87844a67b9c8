//! A connection of the pool, and the ways to ask it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

use super::ask::Value;
use super::cancel::{Door, cancel};
use super::connect::Schema;
use super::lock;
use super::rows::Rows;
use super::sessions::Known;
use super::statements::{Sql, sql};
use crate::error::Result;
use crate::io::Io;

/// A connection, and whether its calls must say how they see what others commit.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    explicit: bool,
    /// A question was given up before its answer: the next one would wait for that too.
    asking: AtomicBool,
    /// What the server has read already, by its text.
    prepared: Mutex<HashMap<String, Statement>>,
    _known: Known,
    io: Io,
    door: Door,
}

impl std::ops::Deref for Link {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Link {
    pub(super) fn new(
        client: Client,
        explicit: bool,
        known: Known,
        (io, door): (Io, Door),
    ) -> Self {
        Self {
            client,
            explicit,
            asking: AtomicBool::new(false),
            prepared: Mutex::default(),
            _known: known,
            io,
            door,
        }
    }

    /// What ends the statement that it runs, on the thread of the connections.
    pub(super) fn cancel(&self) -> impl Future<Output = ()> + Send + use<> {
        cancel(self.client.cancel_token(), self.door.clone())
    }

    /// Whether somebody has gone without its answer.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed)
    }

    /// Runs one statement in a transaction of its own, in one round trip.
    pub(super) async fn ask(
        &self,
        text: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        self.asking.store(true, Ordering::Relaxed);
        let answer = self.send(text, values).await;
        self.asking.store(false, Ordering::Relaxed);
        answer
    }

    /// Runs a query of the user's: it can only read, and nothing of it stays in the session. Nothing if it
    /// switched that off: what it did is undone all the same.
    pub(super) async fn ask_reading(
        &self,
        text: &str,
        values: &[Value<'_>],
    ) -> Result<Option<Vec<Row>>, tokio_postgres::Error> {
        self.asking.store(true, Ordering::Relaxed);
        let sent = |statement: Sql| statement.text(&Schema::default());
        let (begin, kept) = (sent(sql!("source_begin")), sent(sql!("source_kept")));
        let end = sent(sql!("source_end"));
        // All are sent before the first is answered.
        let (begun, rows, kept, ended) = tokio::join!(
            biased;
            self.client.batch_execute(&begin),
            self.client.query_typed(text, values),
            self.client.query_typed(&kept, &[]),
            self.client.batch_execute(&end),
        );
        self.asking.store(false, Ordering::Relaxed);
        begun?;
        let (rows, kept) = (rows?, kept?);
        ended?;
        let kept = kept
            .first()
            .is_some_and(|row| matches!(row.try_get(0), Ok(true)));
        Ok(kept.then_some(rows))
    }

    /// The same for a look of an operator's, which must not be planned as if it took long; its plan may be kept only
    /// where the session is ours alone.
    pub(super) async fn look(
        &self,
        text: &str,
        values: &[Value<'_>],
        kept: bool,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        self.asking.store(true, Ordering::Relaxed);
        let begin = sql!("look").text(&Schema::default());
        let answer = match kept {
            false => {
                let asked = self.client.query_typed(text, values);
                self.within(begin, asked).await
            }
            true => match self.statement(text, values).await {
                Err(why) => Err(why),
                Ok(statement) => {
                    let values: Vec<&(dyn ToSql + Sync)> =
                        values.iter().map(|(value, _)| *value).collect();
                    self.within(begin, self.client.query(&statement, &values))
                        .await
                }
            },
        };
        self.asking.store(false, Ordering::Relaxed);
        answer
    }

    /// The same, read by the server once for all: only where the session is ours alone.
    pub(super) async fn ask_prepared(
        &self,
        text: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        if self.explicit {
            return self.ask(text, values).await;
        }
        self.asking.store(true, Ordering::Relaxed);
        let answer = self.send_prepared(text, values).await;
        self.asking.store(false, Ordering::Relaxed);
        answer
    }

    async fn send_prepared(
        &self,
        text: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.statement(text, values).await?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|(value, _)| *value).collect();
        self.client.query(&statement, &values).await
    }

    /// Runs one statement, perhaps a prepared one. Its rows are read as they come, on the thread of the connections: whoever
    /// asks isn't woken for each part of a long answer.
    pub(super) async fn read<T, F>(
        &self,
        text: &str,
        values: &[Value<'_>],
        prepared: bool,
        read: &impl Fn(Rows) -> F,
    ) -> Result<Result<T>, tokio_postgres::Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<Result<T>, tokio_postgres::Error>> + Send + 'static,
    {
        self.asking.store(true, Ordering::Relaxed);
        let answer = match self.rows(text, values, prepared).await {
            // What is there already would only hold up the other connections there.
            Ok(rows) if self.explicit => Ok(read(rows).await),
            Ok(rows) => self.io.run("rowlock-rows", |_| read(rows)).await,
            Err(why) => Ok(Err(why)),
        };
        self.asking.store(false, Ordering::Relaxed);
        answer.unwrap_or_else(|gone| Ok(Err(gone)))
    }

    async fn rows(
        &self,
        text: &str,
        values: &[Value<'_>],
        prepared: bool,
    ) -> Result<Rows, tokio_postgres::Error> {
        if self.explicit {
            // Nothing of it counts before the commit that is sent with it is answered.
            return self.send(text, values).await.map(Rows::there);
        }
        let stream = match prepared {
            true => {
                let statement = self.statement(text, values).await?;
                let values = values.iter().map(|(value, _)| *value);
                self.client.query_raw(&statement, values).await?
            }
            false => {
                let values = values.iter().cloned();
                self.client.query_typed_raw(text, values).await?
            }
        };
        Ok(Rows::coming(stream))
    }

    /// What the server has read once.
    async fn statement(
        &self,
        text: &str,
        values: &[Value<'_>],
    ) -> Result<Statement, tokio_postgres::Error> {
        if let Some(known) = lock(&self.prepared).get(text).cloned() {
            return Ok(known);
        }
        let types: Vec<Type> = values.iter().map(|(_, of)| of.clone()).collect();
        let statement = self.client.prepare_typed(text, &types).await?;
        lock(&self.prepared).insert(text.to_owned(), statement.clone());
        Ok(statement)
    }

    async fn send(
        &self,
        text: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        if !self.explicit {
            return self.client.query_typed(text, values).await;
        }
        let begin = sql!("begin").text(&Schema::default());
        self.within(begin, self.client.query_typed(text, values))
            .await
    }

    /// In a transaction that begins so.
    async fn within(
        &self,
        begin: String,
        asked: impl Future<Output = Result<Vec<Row>, tokio_postgres::Error>>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let commit = sql!("commit").text(&Schema::default());
        // All three are sent before the first is answered. After an error the last one rolls back.
        let (begun, rows, ended) = tokio::join!(
            biased;
            self.client.batch_execute(&begin),
            asked,
            self.client.batch_execute(&commit),
        );
        begun?;
        let rows = rows?;
        ended.map(|()| rows)
    }
}
