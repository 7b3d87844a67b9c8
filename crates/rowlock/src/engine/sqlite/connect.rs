//! Opens the file: where it is, how it syncs, whose it is.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, OpenFlags};

use super::error::map;
use super::readers::beside;
use super::statements::sql;
use crate::error::{Error, Result};
use crate::log;

/// How much a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// A commit that was answered survives a power cut.
    #[default]
    Full,
    /// A power cut can lose the last commits that were answered. The file stays whole.
    Normal,
}

impl Synchronous {
    /// The pragma's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

/// Where the store is: `sqlite:PATH` or `sqlite:PATH?synchronous=normal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The file.
    pub path: PathBuf,
    /// How much a commit waits for.
    pub synchronous: Synchronous,
}

impl Address {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`Error::Invalid`] that shows the form.
    pub fn parse(url: &str) -> Result<Self> {
        let rest = url.strip_prefix("sqlite:").ok_or_else(|| {
            Error::invalid(format!("{url:?} is not a SQLite URL: write sqlite:PATH"))
        })?;
        // sqlite://PATH is what other tools write.
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        if path.is_empty() || path == ":memory:" {
            return Err(Error::invalid(
                "jobs need a file that outlives the process: write sqlite:PATH",
            ));
        }
        let synchronous = match query.to_ascii_lowercase().as_str() {
            "" | "synchronous=full" => Synchronous::Full,
            "synchronous=normal" => Synchronous::Normal,
            _ => {
                return Err(Error::invalid(format!(
                    "{query:?} is not an option of a SQLite URL: the one option is \
                     synchronous=full or synchronous=normal"
                )));
            }
        };
        Ok(Self {
            path: PathBuf::from(path),
            synchronous,
        })
    }

    /// The same store with a relative path that starts at `folder`.
    #[must_use]
    pub fn relative_to(mut self, folder: &Path) -> Self {
        if self.path.is_relative() {
            self.path = folder.join(&self.path);
        }
        self
    }

    /// The same store by its file's own path. A link leads to it: SQLite keeps the log beside the file, not beside the
    /// link, and a link that changes later leads to another file.
    pub(super) fn followed(&self) -> Self {
        let mut path = self.path.clone();
        // As many as the kernel follows.
        for _ in 0..40 {
            let Ok(target) = path.read_link() else { break };
            path = path.parent().unwrap_or(Path::new("")).join(target);
        }
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("open.follows_links") {
            path.clone_from(&self.path);
        }
        Self {
            path,
            synchronous: self.synchronous,
        }
    }
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// There is nothing in it yet, or no file at all.
    Nobody,
    /// It has our tables, perhaps beside an application's.
    Rowlock,
    /// It has tables, and none of them is ours.
    Foreign,
}

/// Looks into a file without changing it.
///
/// # Errors
/// As `open`; a missing file is nobody's.
pub fn owner(address: &Address) -> Result<Owner> {
    let address = &address.followed();
    let holds_nothing = match address.path.metadata() {
        Ok(file) => file.len() == 0,
        Err(_) => !address.path.exists(),
    };
    if holds_nothing {
        not_beside_a_log(address)?;
        return Ok(Owner::Nobody);
    }
    let connection = look(address)?;
    let (ours, versions, others): (Option<i64>, Option<i64>, Option<i64>) = sql!("table_kinds")
        .on(&connection)
        .map_err(|why| in_file(why, address))?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .map_err(|why| in_file(map(why, "looking at the tables"), address))?;
    Ok(match (ours.max(versions), others) {
        (Some(1..), _) => Owner::Rowlock,
        (_, Some(1..)) => Owner::Foreign,
        _ => Owner::Nobody,
    })
}

/// Refuses a missing or empty file beside a log that isn't empty: SQLite would make an empty database and throw the
/// log away, with every job that only the log has.
fn not_beside_a_log(address: &Address) -> Result<()> {
    let log = beside(&address.path, "-wal");
    if !log.metadata().is_ok_and(|log| log.len() > 0) {
        return Ok(());
    }
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("create.not_beside_a_log") {
        return Ok(());
    }
    let (path, log) = (address.path.display(), log.display());
    Err(Error::Schema(format!(
        "{path} is missing or empty, and its log {log} is here, which may hold jobs: put the file back beside its \
         log, or move the log away to begin with an empty database"
    )))
}

/// Makes the file of a new database, for its owner only: payloads are nobody else's business. SQLite gives its log and
/// the log's index the same rights. A file that is there stays as it is.
fn make(path: &Path) -> std::io::Result<()> {
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("create.private") {
        return Ok(());
    }
    // Made without opening it: closing any descriptor of a database drops SQLite's locks of the whole process.
    #[cfg(target_os = "linux")]
    let made = {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, path, FileType::RegularFile, Mode::RUSR | Mode::WUSR, 0)
            .map_err(std::io::Error::from)
    };
    #[cfg(not(target_os = "linux"))]
    let made = {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(path).map(|_| ())
    };
    match made {
        Err(err) if err.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Whether a missing file is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Create {
    Yes,
    No,
}

/// Statements kept prepared per connection: all of ours fit.
const STATEMENTS: usize = 64;

/// Opens a connection that leaves the file as it is, in particular its journal mode.
pub(super) fn look(address: &Address) -> Result<Connection> {
    let mut connection = connect(address, Create::No)?;
    be_patient(&mut connection)
        .map_err(|why| in_file(map(why, "opening the database"), address))?;
    Ok(connection)
}

/// Opens a connection with our settings. None of them is stored in the file but WAL.
pub(super) fn open(address: &Address, create: Create) -> Result<Connection> {
    let mut connection = connect(address, create)?;
    settings(&mut connection, address)
        .map_err(|why| in_file(map(why, "opening the database"), address))?;
    Ok(connection)
}

fn connect(address: &Address, create: Create) -> Result<Connection> {
    let address = &address.followed();
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if address.path.is_dir() {
        return Err(Error::Unreachable(format!(
            "can't open the database: {} is a folder, name a file in it",
            address.path.display()
        )));
    }
    if create == Create::Yes {
        owner(address)?;
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
        if let Err(err) = make(&address.path) {
            // SQLite finds the same, and says it in its own words.
            log::debug!(%err, "can't make the file of the database");
        }
    }
    Connection::open_with_flags(&address.path, flags)
        .map_err(|why| in_file(map(why, "opening the database"), address))
}

/// Refuses every write of this connection from now on.
pub(super) fn never_write(connection: &Connection) -> Result<()> {
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|why| map(why, "opening the database"))
}

/// How many of its steps SQLite takes between two looks at whether to stop.
const STEPS: std::ffi::c_int = 1_000;

/// Interrupts whatever runs on this connection while `stops` says so.
pub(super) fn stop_when(
    connection: &mut Connection,
    stops: impl FnMut() -> bool + Send + 'static,
) -> Result<()> {
    connection
        .progress_handler(STEPS, Some(stops))
        .map_err(|why| map(why, "opening the database"))
}

/// The newer drivers of our range want the connection for themselves here.
fn be_patient(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(wait_for_lock))
}

fn settings(connection: &mut Connection, address: &Address) -> rusqlite::Result<()> {
    be_patient(connection)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Plans don't depend on bound values: without this SQLite prepares a statement anew whenever a
    // value changes that could matter to a plan. It made a drain four times slower.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    #[cfg_attr(
        not(feature = "test-hooks"),
        expect(unused_mut, reason = "for mutants")
    )]
    let mut synchronous = address.synchronous;
    #[cfg(feature = "test-hooks")]
    if crate::hooks::switched_off("commit.full_sync") {
        synchronous = Synchronous::Normal;
    }
    connection.pragma_update(None, "synchronous", synchronous.as_str())?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    write_ahead(connection)?;
    #[cfg(feature = "test-hooks")]
    connection.progress_handler(crate::hooks::STEPS, Some(crate::hooks::count_steps))?;
    Ok(())
}

/// Turns WAL on, which is stored in the file. SQLite doesn't call the busy handler for this change,
/// so a rival that does the same at the same moment is waited for here.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    for tries in 0.. {
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if mode == "wal" {
            break;
        }
        let changed = connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()));
        match changed
            .as_ref()
            .err()
            .and_then(rusqlite::Error::sqlite_error_code)
        {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) if wait_for_lock(tries) => {}
            // A read-only file can't change its mode; whoever only reads may go on.
            Some(ErrorCode::ReadOnly) => break,
            _ => return changed,
        }
    }
    Ok(())
}

/// What the connection is set to.
pub(super) fn durability(connection: &Connection) -> Result<(String, Synchronous)> {
    let ask = || {
        let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        let level: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
        Ok((mode, level))
    };
    let (mode, level) = ask().map_err(|why| map(why, "asking for the settings"))?;
    match level {
        1 => Ok((mode, Synchronous::Normal)),
        2 => Ok((mode, Synchronous::Full)),
        other => Err(Error::Bug(format!("synchronous is {other}"))),
    }
}

fn in_file(error: Error, address: &Address) -> Error {
    let at = |text: String| format!("{}: {text}", address.path.display());
    match error {
        Error::Unreachable(text) => Error::Unreachable(at(text)),
        Error::Schema(text) => Error::Schema(at(text)),
        other => other,
    }
}

/// How often a busy lock is tried before the caller hears of it: about ten seconds.
const TRIES: i32 = 5_000;

/// Called by SQLite while another process has the lock. Short, uneven waits let processes alternate;
/// SQLite's own would grow to 100 ms and starve whoever waited longest.
fn wait_for_lock(tries: i32) -> bool {
    let uneven = getrandom::u32().unwrap_or(0) % 1_000;
    let wait = Duration::from_micros(u64::from(uneven) + if tries < 100 { 500 } else { 1_500 });
    #[expect(
        clippy::disallowed_methods,
        reason = "SQLite calls this from its own wait"
    )]
    std::thread::sleep(wait);
    tries < TRIES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_at_a_strangers_file_leaves_its_journal_mode_alone() {
        let dir = tempfile::tempdir().unwrap();
        let address = Address {
            path: dir.path().join("app.db"),
            synchronous: Synchronous::Full,
        };
        let theirs = Connection::open(&address.path).unwrap();
        theirs.execute_batch("CREATE TABLE users (name)").unwrap();
        assert_eq!(owner(&address).unwrap(), Owner::Foreign);
        let mode: String = theirs
            .query_row("PRAGMA journal_mode", [], |row| row.get(0))
            .unwrap();
        assert_eq!(mode, "delete");
    }

    #[test]
    fn addresses_are_read_as_other_tools_write_them() {
        let plain = Address::parse("sqlite:a/b.db").unwrap();
        assert_eq!(plain, Address::parse("sqlite://a/b.db").unwrap());
        assert_eq!(plain.synchronous, Synchronous::Full);
        let normal = Address::parse("sqlite:x.db?synchronous=normal").unwrap();
        assert_eq!(normal.synchronous, Synchronous::Normal);
        assert_eq!(
            Address::parse("sqlite:///abs/x.db").unwrap().path,
            Path::new("/abs/x.db")
        );
        for bad in [
            "",
            "postgres://x",
            "sqlite:",
            "sqlite::memory:",
            "sqlite:x?sync=off",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
