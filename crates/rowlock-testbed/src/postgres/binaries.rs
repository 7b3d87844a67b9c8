//! Where PostgreSQL's programs are.

use std::path::{Path, PathBuf};

const PROGRAMS: [&str; 3] = ["initdb", "pg_ctl", "postgres"];

/// The folder of the programs: the one that `ROWLOCK_POSTGRES_BIN` names, or else the newest that is
/// installed.
///
/// # Panics
/// When there is none; the message names the remedy.
#[expect(clippy::panic, reason = "a test without its server has failed")]
pub(super) fn folder() -> PathBuf {
    if let Some(named) = std::env::var_os("ROWLOCK_POSTGRES_BIN").map(PathBuf::from) {
        assert!(
            complete(&named),
            "ROWLOCK_POSTGRES_BIN={} lacks one of {PROGRAMS:?}: name a folder that has them, or unset it",
            named.display()
        );
        // The server's working folder is another.
        return named.canonicalize().unwrap_or(named);
    }
    installed().or_else(in_path).unwrap_or_else(|| {
        panic!(
            "PostgreSQL is missing. Type:  apt-get install -y postgresql  (or set ROWLOCK_POSTGRES_BIN)"
        )
    })
}

/// A program beside the server's; one that only clients need may be missing there, then it is the
/// newest that is installed.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let beside = folder().join(name);
    let elsewhere = || installed().map(|folder| folder.join(name));
    [Some(beside), elsewhere()]
        .into_iter()
        .flatten()
        .find(|path| path.is_file())
}

fn installed() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    versions
        .filter_map(|version| {
            let path = version.ok()?.path();
            let number: u32 = path.file_name()?.to_str()?.parse().ok()?;
            Some((number, path.join("bin")))
        })
        .filter(|(_, folder)| complete(folder))
        .max()
        .map(|(_, folder)| folder)
}

fn in_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| complete(folder))
}

fn complete(folder: &Path) -> bool {
    PROGRAMS
        .iter()
        .all(|program| folder.join(program).is_file())
}
