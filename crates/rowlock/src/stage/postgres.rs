//! Staging in PostgreSQL, through each of its drivers. A refusal is an error of the server's, as any
//! other: it ends the transaction, unless the caller has set a savepoint.

use tokio_postgres::{Client, Transaction};

#[cfg(feature = "diesel-postgres")]
use super::StageBlocking;
use super::{Enqueued, Stage};
use crate::engine::postgres::{InSchema, OnPrepared, Schema, through_tokio_postgres};
use crate::error::Result;
use crate::job::NewJob;

/// Jobs go to the schema `rowlock`, or to the one that [`Schema::on`] names.
macro_rules! stage_through {
    ($driver:path, $on:ident => $reach:expr, $($what:ty),*) => {$(
        impl Stage for $what {
            async fn stage(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
                Schema::default().on(self).stage(jobs).await
            }
        }

        impl Stage for InSchema<'_, $what> {
            async fn stage(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
                use $driver as driver;
                let $on = self.on;
                driver::stage($reach, jobs, self.schema).await
            }
        }
    )*};
}

stage_through!(through_tokio_postgres, on => on, &Client, &mut Client);
stage_through!(through_tokio_postgres, on => on.client(), &Transaction<'_>, &mut Transaction<'_>);

macro_rules! stage_prepared {
    ($($what:ty, $on:ident => $reach:expr);*) => {$(
        impl Stage for OnPrepared<'_, $what> {
            async fn stage(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
                let ($on, with) = (self.on, self.prepared);
                through_tokio_postgres::stage_prepared($reach, jobs, &with.schema, &with.plain).await
            }
        }
    )*};
}

stage_prepared!(&Client, on => on; &Transaction<'_>, on => on.client());

#[cfg(feature = "sqlx-postgres")]
stage_through!(
    crate::engine::postgres::through_sqlx,
    on => on,
    &mut sqlx::PgConnection,
    &mut sqlx::Transaction<'_, sqlx::Postgres>
);

#[cfg(feature = "diesel-async-postgres")]
stage_through!(
    crate::engine::postgres::through_diesel::asynchronous,
    on => on,
    &mut diesel_async::AsyncPgConnection
);

#[cfg(feature = "sea-orm-postgres")]
stage_through!(
    crate::engine::postgres::through_sea_orm,
    on => on,
    &sea_orm::DatabaseConnection,
    &sea_orm::DatabaseTransaction
);

#[cfg(feature = "sea-orm-postgres")]
stage_through!(
    crate::engine::postgres::through_sea_orm,
    on => &*on,
    &mut sea_orm::DatabaseTransaction
);

#[cfg(feature = "diesel-postgres")]
impl StageBlocking for &mut diesel::PgConnection {
    fn stage_blocking(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        Schema::default().on(self).stage_blocking(jobs)
    }
}

#[cfg(feature = "diesel-postgres")]
impl StageBlocking for InSchema<'_, &mut diesel::PgConnection> {
    fn stage_blocking(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        use crate::engine::postgres::through_diesel::blocking;
        blocking::stage(self.on, jobs, self.schema)
    }
}
