//! Unique keys whose jobs are gone: somebody has removed jobs past us.

use tokio_postgres::types::{ToSql, Type};

use super::connect::{self, Address};
use super::error::map;
use super::row::get;
use super::statements::sql;
use crate::error::Result;
use crate::io::Io;
use crate::job::JobId;

/// A key that is held for a job that isn't live.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrphanedKey {
    /// The kind it belongs to, as it is stored.
    pub kind: String,
    /// The key.
    pub key: String,
    /// The job that is gone.
    pub job: JobId,
}

/// So many keys are freed in one transaction: an enqueue of one of them waits for its end.
const TOGETHER: usize = 1_000;

/// The keys that are held for jobs that aren't live, the oldest first. It looks at all keys.
///
/// # Errors
/// Whatever the server answers.
pub async fn orphaned_keys(address: &Address) -> Result<Vec<OrphanedKey>> {
    let io = Io::start("rowlock-postgres")?;
    let client = connect::connect(address, &io).await?;
    let text = sql!("keys_orphaned").text(&address.schema);
    let values: [(&(dyn ToSql + Sync), Type); 1] = [(&i64::MAX, Type::INT8)];
    let rows = client.query_typed(&text, &values).await;
    let rows = rows.map_err(|why| map(&why, "keys_orphaned"))?;
    let read = |row: &tokio_postgres::Row| {
        Ok(OrphanedKey {
            kind: get(row, 0)?,
            key: get(row, 1)?,
            job: JobId(get(row, 2)?),
        })
    };
    rows.iter().map(read).collect()
}

/// Frees those of these keys whose jobs still aren't live; how many they were.
///
/// # Errors
/// Whatever the server answers. Some may have been freed.
pub async fn free_keys(address: &Address, keys: &[OrphanedKey]) -> Result<u64> {
    let io = Io::start("rowlock-postgres")?;
    let client = connect::connect(address, &io).await?;
    let text = sql!("keys_free").text(&address.schema);
    let mut freed = 0;
    for some in keys.chunks(TOGETHER) {
        let ids: Vec<i64> = some.iter().map(|key| key.job.0).collect();
        let values: [(&(dyn ToSql + Sync), Type); 1] = [(&ids, Type::INT8_ARRAY)];
        let done = client.execute_typed(&text, &values).await;
        freed += done.map_err(|why| map(&why, "keys_free"))?;
    }
    Ok(freed)
}
