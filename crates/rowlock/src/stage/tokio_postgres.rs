//! Staging through tokio-postgres.

use tokio_postgres::types::Type;

use super::{Enqueued, Stage};
use crate::engine::postgres::Schema;
use crate::engine::postgres::error::map;
use crate::engine::postgres::stage::{answer, spell};
use crate::engine::postgres::statements::call;
use crate::error::Result;
use crate::job::NewJob;

impl Stage for &tokio_postgres::Client {
    async fn stage(self, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
        let text = call("stage", 1, &Schema::default());
        let list = spell(jobs)?;
        let rows = self.query_typed(&text, &[(&list, Type::TEXT)]).await;
        let rows = rows.map_err(|why| map(&why, "stage"))?;
        rows.iter()
            .map(|row| answer(row.get(0), row.get(1)))
            .collect()
    }
}
