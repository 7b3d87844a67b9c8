//! A schema of the run's own on a server, and sessions that are known by its name.

use anyhow::{Context, Result};
use rowlock::engine::postgres::{Address, Postgres, Schema, drop_schema, migrate_up};
use rowlock::run::task::Tasks;
use rowlock::{Clock, Rowlock};
use tokio_postgres::{Client, NoTls};

use crate::run;

/// A schema, which is there once it was migrated.
pub(crate) struct Server {
    pub(crate) schema: String,
    pub(crate) url: String,
    pub(crate) address: Address,
}

/// A session, which ends with it.
pub(crate) struct Session {
    pub(crate) client: Client,
    _tasks: Tasks,
}

impl Server {
    pub(crate) fn new(url: &str) -> Result<Self> {
        Self::named(url, run::next()?)
    }

    /// A schema and sessions of this name.
    pub(crate) fn named(url: &str, schema: String) -> Result<Self> {
        let and = if url.contains('?') { '&' } else { '?' };
        let url = format!("{url}{and}application_name={schema}");
        let mut address = Address::parse(&url)?;
        address.schema = Schema::new(&schema)?;
        Ok(Self {
            schema,
            url,
            address,
        })
    }

    /// The same from another process.
    pub(crate) fn at(url: &str, schema: &str) -> Result<Self> {
        let mut address = Address::parse(url)?;
        address.schema = Schema::new(schema)?;
        Ok(Self {
            schema: schema.to_owned(),
            url: url.to_owned(),
            address,
        })
    }

    pub(crate) async fn open(&self) -> Result<Rowlock> {
        let clock = Clock::system();
        let engine = Postgres::open(self.address.clone(), clock.clone()).await?;
        Ok(Rowlock::with(engine, clock))
    }

    pub(crate) async fn session(&self) -> Result<Session> {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls)
            .await
            .context("can't reach the server")?;
        let mut tasks = Tasks::default();
        tasks.start("bench-connection", async move {
            // Its end is the client's.
            let _ = connection.await;
        });
        Ok(Session {
            client,
            _tasks: tasks,
        })
    }

    /// A statement in the run's own schema.
    pub(crate) fn put(&self, text: &str) -> String {
        text.replace("bench.", &format!("{}.", self.schema))
    }

    /// Statements one by one: some of them can't share a transaction.
    pub(crate) async fn each(&self, text: &str) -> Result<()> {
        let session = self.session().await?;
        let text = self.put(text);
        for statement in text.split(";\n").filter(|each| !each.trim().is_empty()) {
            session.client.batch_execute(statement).await?;
        }
        Ok(())
    }

    /// The schema without any job.
    pub(crate) async fn fresh(&self) -> Result<()> {
        drop_schema(&self.address).await?;
        migrate_up(&self.address).await?;
        Ok(())
    }

    /// So that nobody pays for what was written before.
    pub(crate) async fn checkpoint(&self) -> Result<()> {
        let session = self.session().await?;
        // Not everybody may ask for it.
        let _ = session.client.batch_execute("CHECKPOINT").await;
        Ok(())
    }
}
