//! Completing in PostgreSQL, through each of its drivers.

use tokio_postgres::Transaction;

#[cfg(feature = "diesel-postgres")]
use super::CompleteBlocking;
#[cfg(any(feature = "diesel-postgres", feature = "diesel-async-postgres"))]
use super::inside;
use super::{Complete, Completion, held};
use crate::engine::postgres::{InSchema, Schema, through_tokio_postgres};
use crate::error::Result;

/// The job is in the schema `rowlock`, or in the one that [`Schema::on`] names.
macro_rules! complete_through {
    ($driver:path, $on:ident => $reach:expr, $($what:ty),*) => {$(
        impl Complete for $what {
            async fn complete(self, completion: &Completion) -> Result<()> {
                Schema::default().on(self).complete(completion).await
            }
        }

        impl Complete for InSchema<'_, $what> {
            async fn complete(self, completion: &Completion) -> Result<()> {
                use $driver as driver;
                let $on = self.on;
                held(driver::complete($reach, completion, self.schema).await?)
            }
        }
    )*};
}

complete_through!(
    through_tokio_postgres,
    on => on.client(),
    &Transaction<'_>,
    &mut Transaction<'_>
);

#[cfg(feature = "sqlx-postgres")]
complete_through!(
    crate::engine::postgres::through_sqlx,
    on => on,
    &mut sqlx::Transaction<'_, sqlx::Postgres>
);

#[cfg(feature = "sea-orm-postgres")]
complete_through!(
    crate::engine::postgres::through_sea_orm,
    on => on,
    &sea_orm::DatabaseTransaction
);

#[cfg(feature = "sea-orm-postgres")]
complete_through!(
    crate::engine::postgres::through_sea_orm,
    on => &*on,
    &mut sea_orm::DatabaseTransaction
);

#[cfg(feature = "diesel-async-postgres")]
complete_through!(
    crate::engine::postgres::through_diesel::asynchronous,
    on => {
        inside(driver::in_transaction(on))?;
        on
    },
    &mut diesel_async::AsyncPgConnection
);

#[cfg(feature = "diesel-postgres")]
impl CompleteBlocking for &mut diesel::PgConnection {
    fn complete_blocking(self, completion: &Completion) -> Result<()> {
        Schema::default().on(self).complete_blocking(completion)
    }
}

#[cfg(feature = "diesel-postgres")]
impl CompleteBlocking for InSchema<'_, &mut diesel::PgConnection> {
    fn complete_blocking(self, completion: &Completion) -> Result<()> {
        use crate::engine::postgres::through_diesel::blocking;
        inside(blocking::in_transaction(self.on))?;
        held(blocking::complete(self.on, completion, self.schema)?)
    }
}
