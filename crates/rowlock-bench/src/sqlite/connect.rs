//! Connections of the other sides, set as ours are; and how many transactions a file has seen.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

/// Opens a file in WAL mode with `synchronous=FULL`.
pub(crate) fn open(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// A counter that every committed transaction moves, whoever made it: `iChange` of the WAL index
/// (sqlite.org/walformat.html). Somebody must have the file open.
pub(super) fn commits(path: &Path) -> Result<u32> {
    let mut name = path.as_os_str().to_owned();
    name.push("-shm");
    let read = || {
        let mut file = std::fs::File::open(&name)?;
        let mut number = [0; 4];
        file.seek(SeekFrom::Start(8))?;
        file.read_exact(&mut number)?;
        Ok::<_, std::io::Error>(u32::from_ne_bytes(number))
    };
    read().with_context(|| format!("can't read {}", Path::new(&name).display()))
}
