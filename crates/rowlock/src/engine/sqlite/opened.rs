//! A connection, and whether the files under it are still the ones at their paths.
//!
//! A file that was removed or replaced takes writes without complaint, and they are gone with the last connection.
//! That is true of the database, of its log (`-wal`) and of the log's index (`-shm`): SQLite removes neither of them
//! while a connection is open. A look costs four system calls, so there is one before and one after each commit.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::connect::Address;
use super::readers::beside;
use crate::error::{Error, Result};
use crate::log;

/// An open connection that knows its files.
pub(super) struct Opened {
    connection: Connection,
    files: Arc<Files>,
}

/// The files as they were when the connection was opened.
pub(super) struct Files {
    database: Identity,
    /// When the database was last written to, as it was seen while every file was in its place.
    written: Mutex<Option<Written>>,
    /// Only a database in WAL mode has one.
    log: Option<Log>,
}

/// Which file was at a path.
struct Identity {
    path: PathBuf,
    number: (u64, u64),
}

struct Log {
    file: File,
    at: Identity,
    index: Identity,
    latest: Mutex<State>,
}

/// What tells a log that SQLite began again from one that was cut off.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    size: u64,
    header: Option<[u8; HEADER]>,
}

/// The log's header: a magic number first, and a salt that changes whenever the log begins again.
const HEADER: usize = 32;
/// What stands before each page of the log.
const PAGE_HEADER: u64 = 24;
/// The last bit tells the byte order of checksums.
const MAGIC: u32 = 0x377f_0682;

impl Opened {
    pub(super) fn new(connection: Connection, address: &Address) -> Result<Self> {
        let database = Identity::of(&address.path)
            .map_err(|err| gone(&address.path, &format!("can't be seen any more ({err})")))?;
        let log = Log::open(&address.path)?;
        let files = Arc::new(Files {
            database,
            written: Mutex::default(),
            log,
        });
        Ok(Self { connection, files })
    }

    /// Another connection to the same files. They share what was seen last of the log.
    pub(super) fn beside(connection: Connection, files: &Arc<Files>) -> Self {
        let files = Arc::clone(files);
        Self { connection, files }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    pub(super) fn files(&self) -> Arc<Files> {
        Arc::clone(&self.files)
    }

    /// Refuses to go on with files that are no longer the ones at their paths.
    pub(super) fn check(&self) -> Result<()> {
        self.files.in_place()?;
        match &self.files.log {
            Some(log) if looks_at_logs() => log.whole(&self.connection),
            _ => Ok(()),
        }
    }
}

impl Files {
    /// Whether each is the one at its path.
    pub(super) fn in_place(&self) -> Result<()> {
        let path = &self.database.path;
        let now = match path.metadata() {
            Err(err) => return Err(gone(path, &format!("can't be seen any more ({err})"))),
            Ok(now) if !self.database.is(&now) => {
                return Err(gone(path, "was replaced by another file"));
            }
            Ok(now) => now,
        };
        if let Some(log) = &self.log
            && looks_at_logs()
        {
            log.in_place()?;
            *self.written() = Some(written(&now));
        }
        Ok(())
    }

    fn written(&self) -> MutexGuard<'_, Option<Written>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what the log holds may go into the database when this process ends: as long as no other process can have
    /// written without our knowing.
    fn may_write_back(&self) -> bool {
        let Some(log) = &self.log else { return true };
        let is_ours = |part: &Identity| part.path.metadata().is_ok_and(|now| part.is(&now));
        let is_missing = |part: &Identity| part.path.symlink_metadata().is_err();
        // Processes with one index know of each other. A log that has taken the place of ours is theirs.
        if is_ours(&log.index) {
            let at = log.at.path.metadata();
            return !at.is_ok_and(|now| !log.at.is(&now) && now.len() > 0);
        }
        // With another index it can't be known who else has written: to the log, or, once that is gone again, to the
        // database. Only where both are missing and the database is as it was, nothing has.
        let now = self.database.path.metadata().map(|now| written(&now));
        is_missing(&log.index)
            && is_missing(&log.at)
            && now.is_ok_and(|now| *self.written() == Some(now))
    }
}

/// Always, but for a mutant.
fn looks_at_logs() -> bool {
    #[cfg(feature = "test-hooks")]
    return !crate::hooks::switched_off("check.log");
    #[cfg(not(feature = "test-hooks"))]
    true
}

impl Drop for Opened {
    /// The last connection to close writes the log back into the database. That saves what a removed log holds, and
    /// would ruin what another process has written since.
    fn drop(&mut self) {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("close.spares_another_log") {
            return;
        }
        if !self.files.may_write_back() {
            let flag = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            if let Err(err) = self.connection.set_db_config(flag, true) {
                log::error!(%err, "can't keep SQLite from writing back a log that was replaced");
            }
        }
    }
}

impl Identity {
    fn of(path: &Path) -> std::io::Result<Self> {
        let path = path.to_owned();
        let number = number(&path.metadata()?);
        Ok(Self { path, number })
    }

    fn is(&self, now: &Metadata) -> bool {
        number(now) == self.number
    }
}

/// When a file was last written to, and how long it is.
type Written = (i64, i64, u64);

fn written(file: &Metadata) -> Written {
    (file.mtime(), file.mtime_nsec(), file.size())
}

fn number(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

impl Log {
    fn open(database: &Path) -> Result<Option<Self>> {
        let path = beside(database, "-wal");
        let open = || -> std::io::Result<Self> {
            let file = File::open(&path)?;
            let at = Identity {
                path: path.clone(),
                number: number(&file.metadata()?),
            };
            let index = Identity::of(&beside(database, "-shm"))?;
            let latest = Mutex::new(State::of(&file)?);
            Ok(Self {
                file,
                at,
                index,
                latest,
            })
        };
        match open() {
            Ok(log) => Ok(Some(log)),
            Err(err) if err.kind() == ErrorKind::NotFound => Ok(None),
            Err(err) => Err(gone(&path, &format!("can't be read ({err})"))),
        }
    }

    fn in_place(&self) -> Result<()> {
        for part in [&self.at, &self.index] {
            match part.path.metadata() {
                Err(err) if err.kind() == ErrorKind::NotFound => {
                    return Err(lost(&part.path, "was removed"));
                }
                Err(err) => return Err(lost(&part.path, &format!("can't be seen ({err})"))),
                Ok(now) if !part.is(&now) => {
                    return Err(lost(&part.path, "was replaced by another file"));
                }
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Whether nobody but SQLite has written to it.
    fn whole(&self, connection: &Connection) -> Result<()> {
        let now = State::of(&self.file)
            .map_err(|err| lost(&self.at.path, &format!("can't be read ({err})")))?;
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if now != *latest && self.was_cut(*latest, now, connection) {
            return Err(lost(&self.at.path, "was changed by another program"));
        }
        *latest = now;
        Ok(())
    }

    /// SQLite shortens its log only when what it cuts off is in the database, or of a log that it has begun again.
    fn was_cut(&self, before: State, now: State, connection: &Connection) -> bool {
        let Some(was) = before.header else {
            return now.header.is_some_and(|header| !has_magic(&header));
        };
        match now.header {
            Some(header) if !has_magic(&header) => true,
            Some(header) if header != was || now.size >= before.size => false,
            // Twice: another process may have emptied it between the count and the look. Then the second count says so.
            _ => (0..2).all(|_| self.lacks_pages(&was, connection)),
        }
    }

    /// Whether SQLite counts more pages in the log than there are.
    fn lacks_pages(&self, header: &[u8; HEADER], connection: &Connection) -> bool {
        let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(1);
        let Ok(pages) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], count) else {
            return true;
        };
        let [.., a, b, c, d] = header[..12] else {
            return true;
        };
        let page = u64::from(u32::from_be_bytes([a, b, c, d])) + PAGE_HEADER;
        let needed = match u64::try_from(pages) {
            Ok(0) | Err(_) => 0,
            Ok(pages) => HEADER as u64 + pages * page,
        };
        // Asked after the count: in the meantime it can only have grown, or have been begun again.
        State::of(&self.file).map_or(true, |now| {
            now.size < needed && now.header.is_none_or(|now| now == *header)
        })
    }
}

impl State {
    fn of(file: &File) -> std::io::Result<Self> {
        let size = file.metadata()?.len();
        let mut header = [0; HEADER];
        let header = match file.read_exact_at(&mut header, 0) {
            Ok(()) => Some(header),
            Err(err) if err.kind() == ErrorKind::UnexpectedEof => None,
            Err(err) => return Err(err),
        };
        Ok(Self { size, header })
    }
}

fn has_magic(header: &[u8; HEADER]) -> bool {
    let [a, b, c, d, ..] = *header;
    u32::from_be_bytes([a, b, c, d]) & !1 == MAGIC
}

fn gone(path: &Path, what: &str) -> Error {
    Error::Unreachable(format!(
        "the database {} {what}: put it back, then start again",
        path.display()
    ))
}

fn lost(path: &Path, what: &str) -> Error {
    Error::Unreachable(format!(
        "{} {what} while the database was open: stop every process that has it open, then start again",
        path.display()
    ))
}
