//! What only a SQLite file can have.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rowlock::Error;
use rowlock::engine::Health;
use rowlock::engine::sqlite::{Address, Owner, Synchronous, schema_version};

use super::{Finding, Level, finding};
use crate::open::{Access, Setup, quoted};
use crate::{rights, show};

/// Committed pages that only the log has: with the usual page size 16 MiB.
const LOG_BACKLOG: u64 = 4_000;

pub fn schema(setup: &Setup, address: &Address) -> Result<Option<Finding>> {
    if setup.owner(address, Access::Read)? != Owner::Rowlock {
        // Opening says what to do with an empty or a foreign file.
        return Ok(None);
    }
    let error = |what: String, remedy| finding("R002", Level::Error, what, remedy);
    Ok(match schema_version(address) {
        Ok(version) if version.stored < version.latest => Some(error(
            format!(
                "the file has schema {}, this rowlock needs {}",
                version.stored, version.latest
            ),
            setup.line("migrate up"),
        )),
        Ok(_) => None,
        Err(Error::Schema(why)) => Some(error(why, setup.line("migrate status"))),
        Err(why) => return Err(why.into()),
    })
}

pub fn damaged(address: &Address, damage: &[String]) -> Finding {
    let path = quoted(&show::path(&address.path));
    let what = format!("the file is damaged: {}", damage.join("; "));
    let remedy = format!("sqlite3 {path} .dump | sqlite3 recovered.db");
    finding("R001", Level::Error, what, remedy)
}

pub fn look(address: &Address, health: &Health) -> Vec<Finding> {
    let mut found = Vec::new();
    let path = quoted(&show::path(&address.path));
    if health.log_backlog >= LOG_BACKLOG {
        let who: Vec<String> = health
            .readers
            .iter()
            .map(|(pid, program)| format!("{} (process {pid})", show::text(program)))
            .collect();
        let who = match who.is_empty() {
            true => "somebody has".to_owned(),
            false => format!("{} has", who.join(", ")),
        };
        let what = format!(
            "{} pages are in the write-ahead log only: {who} been reading for long, and it \
             grows until they end",
            show::count(health.log_backlog)
        );
        let remedy = match &health.readers[..] {
            [(pid, _)] => format!("kill {pid}"),
            _ => format!("fuser -v {path}"),
        };
        found.push(finding("R003", Level::Warn, what, remedy));
    }
    let open = open_to_everybody(&address.path);
    if !open.is_empty() {
        let what = "everybody on this machine may read the file, with every payload in it";
        let remedy = format!("chmod o= {}", open.join(" "));
        found.push(finding("R037", Level::Info, what, remedy));
    }
    if address.synchronous == Synchronous::Normal {
        let url = format!("sqlite:{}", address.path.display());
        let what = "synchronous=normal: a power cut can lose the last jobs that were answered";
        let remedy = format!("rowlock work --url {}", quoted(&url));
        found.push(finding("R007", Level::Warn, what, remedy));
    }
    found
}

/// The database, or else what SQLite keeps beside it: that has the rights of the database from when it was made, which
/// lasts as long as a process has it open.
fn open_to_everybody(database: &Path) -> Vec<String> {
    let beside = |ending: &str| {
        let mut path = database.as_os_str().to_owned();
        path.push(ending);
        PathBuf::from(path)
    };
    let mut open = vec![database.to_owned()];
    open.retain(|path| rights::open_to_everybody(path));
    if open.is_empty() {
        open = vec![beside("-wal"), beside("-shm")];
        open.retain(|path| rights::open_to_everybody(path));
    }
    let shown = open.iter().map(|path| quoted(&show::path(path)));
    shown.collect()
}
