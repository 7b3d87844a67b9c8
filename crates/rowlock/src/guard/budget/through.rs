//! The drivers through which a transaction finds its place.

use std::ops::DerefMut;

use tokio_postgres::{Client, Transaction};

use crate::engine::postgres::Schema;
use crate::engine::postgres::error::map;
use crate::engine::postgres::through_tokio_postgres;
use crate::error::Result;
use crate::job::Name;

/// What came of a try.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entered {
    /// The place; none: all are taken.
    pub slot: Option<u32>,
    /// How many there are; none: nobody has declared the class.
    pub max: Option<u32>,
}

/// Where transactions begin.
pub trait Transact: Send + 'static {
    /// A transaction.
    type Tx<'a>: Enter;

    /// Begins one.
    fn begin(&mut self) -> impl Future<Output = Result<Self::Tx<'_>>> + Send;
}

/// A transaction that may have a place.
pub trait Enter: Send + Sized {
    /// Tries once to take one.
    fn enter(
        &mut self,
        class: &Name,
        schema: &Schema,
    ) -> impl Future<Output = Result<Entered>> + Send;

    /// Ends it, and with it the place: what was done is kept, or nothing of it.
    fn end(self, keep: bool) -> impl Future<Output = Result<()>> + Send;
}

/// What a budget can run on: a `&mut tokio_postgres::Client`, or with the feature `sqlx-postgres` a
/// `&PgPool` or a `&mut PgConnection`.
pub trait On: Send {
    /// Where transactions begin.
    type Session: Transact;
    /// What is held meanwhile.
    type Held: DerefMut<Target = Self::Session> + Send;

    /// Holds it.
    fn hold(self) -> Self::Held;
}

impl<'c> On for &'c mut Client {
    type Session = Client;
    type Held = &'c mut Client;

    fn hold(self) -> Self::Held {
        self
    }
}

impl Transact for Client {
    type Tx<'a> = Transaction<'a>;

    async fn begin(&mut self) -> Result<Transaction<'_>> {
        let begun = self.transaction().await;
        begun.map_err(|why| map(&why, "budget_begin"))
    }
}

impl Enter for Transaction<'_> {
    async fn enter(&mut self, class: &Name, schema: &Schema) -> Result<Entered> {
        through_tokio_postgres::enter(self.client(), class, schema).await
    }

    async fn end(self, keep: bool) -> Result<()> {
        let ended = match keep {
            true => self.commit().await,
            false => self.rollback().await,
        };
        ended.map_err(|why| map(&why, "budget_end"))
    }
}

#[cfg(feature = "sqlx-postgres")]
mod through_sqlx {
    use sqlx::{Connection, PgConnection, PgPool, Postgres, Transaction};

    use super::{Enter, Entered, Name, On, Result, Schema, Transact};
    use crate::engine::postgres::error::map_sqlx;
    use crate::engine::postgres::through_sqlx;

    impl<'c> On for &'c mut PgConnection {
        type Session = PgConnection;
        type Held = &'c mut PgConnection;

        fn hold(self) -> Self::Held {
            self
        }
    }

    /// Whoever waits holds no connection of it.
    impl On for &PgPool {
        type Session = PgPool;
        type Held = Box<PgPool>;

        fn hold(self) -> Self::Held {
            Box::new(self.clone())
        }
    }

    impl Transact for PgConnection {
        type Tx<'a> = Transaction<'a, Postgres>;

        async fn begin(&mut self) -> Result<Transaction<'_, Postgres>> {
            let begun = Connection::begin(self).await;
            begun.map_err(|why| map_sqlx(&why, "budget_begin"))
        }
    }

    impl Transact for PgPool {
        type Tx<'a> = Transaction<'a, Postgres>;

        async fn begin(&mut self) -> Result<Transaction<'_, Postgres>> {
            let begun = PgPool::begin(self).await;
            begun.map_err(|why| map_sqlx(&why, "budget_begin"))
        }
    }

    impl Enter for Transaction<'_, Postgres> {
        async fn enter(&mut self, class: &Name, schema: &Schema) -> Result<Entered> {
            through_sqlx::enter(self, class, schema).await
        }

        async fn end(self, keep: bool) -> Result<()> {
            let ended = match keep {
                true => self.commit().await,
                false => self.rollback().await,
            };
            ended.map_err(|why| map_sqlx(&why, "budget_end"))
        }
    }
}
