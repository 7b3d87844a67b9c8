//! There is no server whose sessions could pin a horizon; a file has a log that readers keep.

use async_trait::async_trait;

use super::Sqlite;
use super::readers::beside;
use crate::engine::{Vitals, Watch};
use crate::error::Result;

#[async_trait]
impl Watch for Sqlite {
    async fn vitals(&self) -> Result<Vitals> {
        // It is there while somebody has the file open.
        let log = std::fs::metadata(beside(&self.address.path, "-wal"));
        Ok(Vitals {
            log_bytes: Some(log.map_or(0, |log| log.len())),
            server: None,
        })
    }
}
