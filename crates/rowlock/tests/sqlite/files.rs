//! The files of an open database go away, are replaced or are cut: nothing is acknowledged any more.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use rowlock::clock::Clock;
use rowlock::engine::sqlite::{Address, Owner, Sqlite, migrate_up, owner, schema_version};
use rowlock::{Error, NewJob, Rowlock};
use rowlock_testbed::{Process, TempDir};
use rusqlite::Connection;

/// A store with jobs that only the log has.
struct Store {
    folder: TempDir,
    path: PathBuf,
    rowlock: Rowlock,
    runtime: tokio::runtime::Runtime,
}

impl Store {
    fn new() -> Self {
        let folder = rowlock_testbed::folder();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let path = inner.join("jobs.db");
        let store = Self {
            rowlock: open(&path),
            runtime: tokio::runtime::Runtime::new().unwrap(),
            folder,
            path,
        };
        store.enqueue().unwrap();
        store
    }

    fn enqueue(&self) -> rowlock::error::Result<()> {
        let job = NewJob::new("mail").unwrap();
        self.runtime.block_on(self.rowlock.enqueue(&job)).map(drop)
    }

    fn beside(&self, ending: &str) -> PathBuf {
        beside(&self.path, ending)
    }

    /// Neither a write nor a look is answered, and the error names the file and what to do.
    fn answers_nothing(&self, words: &str) {
        let write = self.enqueue();
        let look = self.runtime.block_on(self.rowlock.operate().stats());
        let page = self.runtime.block_on(self.rowlock.browse().glance());
        for refused in [write, look.map(drop), page.map(drop)] {
            let Err(Error::Unreachable(why)) = &refused else {
                panic!("{words}: {refused:?}");
            };
            assert!(why.contains(words) && why.contains("start again"), "{why}");
        }
    }

    /// Ends the store; how many jobs a new one finds, in a file that is whole.
    fn kept(self) -> u64 {
        let Self {
            folder: _folder,
            path,
            rowlock,
            runtime,
        } = self;
        drop(rowlock);
        let again = open(&path);
        let stats = runtime.block_on(again.operate().stats()).unwrap();
        whole(&path);
        stats.total.pending
    }
}

fn whole(path: &Path) {
    let check: String = Connection::open(path)
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
}

fn open(path: &Path) -> Rowlock {
    let address = address(path);
    migrate_up(&address, &Clock::system()).unwrap();
    Rowlock::with(
        Sqlite::open(address, Clock::system()).unwrap(),
        Clock::system(),
    )
}

fn address(path: &Path) -> Address {
    Address::parse(&format!("sqlite:{}", path.display())).unwrap()
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

pub fn a_log_that_is_gone_takes_no_jobs() {
    for ending in ["-wal", "-shm"] {
        let store = Store::new();
        let (log, away) = (store.beside(ending), store.folder.path().join("away"));
        fs::rename(&log, &away).unwrap();
        store.answers_nothing("was removed");
        fs::copy(&away, &log).unwrap();
        store.answers_nothing("was replaced");
        fs::rename(&away, &log).unwrap();
        store.enqueue().unwrap();
        assert_eq!(store.kept(), 2, "{ending}");
    }
}

pub fn a_log_that_is_gone_behind_a_link_takes_no_jobs() {
    let folder = rowlock_testbed::folder();
    let (data, way, link) = ("data", "data/way", "jobs.db");
    fs::create_dir(folder.path().join(data)).unwrap();
    // A link to a link, and neither of them absolute.
    std::os::unix::fs::symlink("real.db", folder.path().join(way)).unwrap();
    std::os::unix::fs::symlink(way, folder.path().join(link)).unwrap();
    let path = folder.path().join(data).join("real.db");
    let rowlock = open(&folder.path().join(link));
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    let store = Store {
        rowlock,
        runtime: tokio::runtime::Runtime::new().unwrap(),
        path,
        folder,
    };
    store.enqueue().unwrap();
    let (log, away) = (store.beside("-wal"), store.folder.path().join("away"));
    fs::rename(&log, &away).unwrap();
    store.answers_nothing("was removed");
    fs::rename(&away, &log).unwrap();
    store.enqueue().unwrap();
    // The file is away, its log isn't: nothing is made in its place.
    let elsewhere = store.folder.path().join("elsewhere");
    fs::rename(&store.path, &elsewhere).unwrap();
    let at = address(&store.folder.path().join("jobs.db"));
    let refused = migrate_up(&at, &Clock::system());
    assert!(matches!(refused, Err(Error::Schema(_))), "{refused:?}");
    assert!(!store.path.exists());
    fs::rename(&elsewhere, &store.path).unwrap();
    assert_eq!(store.kept(), 2);
}

pub fn a_log_that_another_program_has_cut_takes_no_jobs() {
    let cut = |to: u64| {
        move |log: &Path| {
            let size = log.metadata().unwrap().size();
            let file = fs::OpenOptions::new().write(true).open(log).unwrap();
            file.set_len(size * to / 2).unwrap();
        }
    };
    let spoil = |log: &Path| {
        let mut bytes = fs::read(log).unwrap();
        bytes[..32].fill(0);
        // Over the same file.
        fs::write(log, bytes).unwrap();
    };
    let ways: [&dyn Fn(&Path); 3] = [&cut(0), &cut(1), &spoil];
    for (n, way) in ways.iter().enumerate() {
        let store = Store::new();
        way(&store.beside("-wal"));
        store.answers_nothing("was changed by another program");
        // It doesn't come to terms with it either.
        store.answers_nothing("was changed by another program");
        assert!(n < 3);
    }
}

pub fn a_log_that_sqlite_has_emptied_or_begun_again_is_a_good_one() {
    let store = Store::new();
    let application = Connection::open(&store.path).unwrap();
    for mode in ["PASSIVE", "FULL", "RESTART", "TRUNCATE", "TRUNCATE"] {
        let checkpoint = format!("PRAGMA wal_checkpoint({mode})");
        let _: i64 = application
            .query_row(&checkpoint, [], |row| row.get(0))
            .unwrap();
        store
            .runtime
            .block_on(store.rowlock.operate().stats())
            .unwrap();
        store.enqueue().unwrap();
        store.enqueue().unwrap();
    }
    drop(application);
    assert_eq!(store.kept(), 11);
}

pub fn what_a_removed_log_held_is_there_after_a_clean_end() {
    for both in [false, true] {
        let store = Store::new();
        fs::remove_file(store.beside("-wal")).unwrap();
        if both {
            fs::remove_file(store.beside("-shm")).unwrap();
        }
        store.answers_nothing("was removed");
        assert_eq!(store.kept(), 1, "the answered job, and not the refused one");
    }
}

pub fn a_log_that_others_have_begun_since_is_not_written_over() {
    let store = Store::new();
    for ending in ["-wal", "-shm"] {
        fs::remove_file(store.beside(ending)).unwrap();
    }
    // Another process sees what was written back so far, which is less than was answered.
    let told = store.folder.path().join("told");
    let url = format!("sqlite:{}", store.path.display());
    let role = ["rival", "produce", &url, told.to_str().unwrap(), "1", "0"];
    let mut other = Command::new(std::env::current_exe().unwrap());
    let finished = Process::run(other.args(role), "");
    let wrote = finished.code == Some(0);
    let log = fs::read(store.beside("-wal")).unwrap_or_default();
    store.answers_nothing("was replaced");
    let path = store.path.clone();
    let Store {
        folder: _folder,
        rowlock,
        ..
    } = store;
    drop(rowlock);
    if wrote {
        let after = fs::read(beside(&path, "-wal")).unwrap_or_default();
        assert!(log == after, "the other's log is as it was");
    }
    whole(&path);
}

pub fn an_index_that_was_removed_spoils_nothing_that_others_wrote_since() {
    let store = Store::new();
    fs::remove_file(store.beside("-shm")).unwrap();
    // Others make an index of their own, and go on with the same log; each takes both along when it ends.
    let told = store.folder.path().join("told");
    let url = format!("sqlite:{}", store.path.display());
    for _ in 0..20 {
        let role = ["rival", "produce", &url, told.to_str().unwrap(), "1", "0"];
        let mut other = Command::new(std::env::current_exe().unwrap());
        let finished = Process::run(other.args(role), "");
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
    let told = fs::read_to_string(told).unwrap().lines().count() as u64;
    assert!(told >= 20, "{told}");
    assert_eq!(store.kept(), 1 + told);
}

pub fn a_log_removed_during_a_commit_acknowledges_nothing() {
    let store = Store::new();
    let told = store.folder.path().join("told");
    let url = format!("sqlite:{}", store.path.display());
    let role = ["rival", "produce", &url, told.to_str().unwrap(), "1", "0"];
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(role).env("ROWLOCK_PAUSE_AT", "stage.written");
    let mut producer = Process::start(&mut command);
    // The files were looked at already, and the commit is yet to come.
    producer.line_with("paused at stage.written");
    producer.wait_until_stopped();
    fs::rename(store.beside("-wal"), store.folder.path().join("away")).unwrap();
    producer.signal("CONT");
    let (code, lines) = producer.wait();
    assert_ne!(code, Some(0), "{lines:#?}");
    assert_eq!(fs::read_to_string(told).unwrap(), "", "nothing was told");
}

pub fn a_database_that_moves_with_its_folder_or_is_restored_takes_no_jobs() {
    let store = Store::new();
    let (inner, moved) = (
        store.path.parent().unwrap().to_owned(),
        store.folder.path().join("moved"),
    );
    fs::rename(&inner, &moved).unwrap();
    store.answers_nothing("can't be seen any more");
    fs::rename(&moved, &inner).unwrap();
    store.enqueue().unwrap();
    // A restore while it runs: a copy takes its place.
    let copy = store.folder.path().join("copy");
    fs::copy(&store.path, &copy).unwrap();
    fs::rename(&copy, &store.path).unwrap();
    store.answers_nothing("was replaced by another file");
}

pub fn a_new_database_is_for_its_owner_only_and_an_old_one_stays_as_it_is() {
    let store = Store::new();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    for ending in ["", "-wal", "-shm"] {
        assert_eq!(mode(&store.beside(ending)), 0o600, "{ending}");
    }
    let old = store.folder.path().join("old.db");
    fs::write(&old, "").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o644)).unwrap();
    let rowlock = open(&old);
    let job = NewJob::new("mail").unwrap();
    store.runtime.block_on(rowlock.enqueue(&job)).unwrap();
    for ending in ["", "-wal", "-shm"] {
        assert_eq!(mode(&beside(&old, ending)), 0o644, "{ending}");
    }
}

pub fn a_missing_or_empty_file_beside_its_log_is_not_made() {
    let store = Store::new();
    let (copy, log) = (store.folder.path().join("copy.db"), "-wal");
    fs::copy(store.beside(log), beside(&copy, log)).unwrap();
    for empty in [false, true] {
        if empty {
            fs::write(&copy, "").unwrap();
        }
        let address = address(&copy);
        for refused in [
            migrate_up(&address, &Clock::system()).map(drop),
            Sqlite::open(address.clone(), Clock::system()).map(drop),
            schema_version(&address).map(drop),
        ] {
            let Err(Error::Schema(why)) = &refused else {
                panic!("{refused:?}");
            };
            assert!(why.contains("put the file back beside its log"), "{why}");
        }
        assert_eq!(copy.exists(), empty);
        let size = |path: &Path| path.metadata().unwrap().len();
        assert_eq!(size(&beside(&copy, log)), size(&store.beside(log)));
    }
    // A log without anything in it holds no job.
    fs::write(beside(&copy, log), "").unwrap();
    assert_eq!(owner(&address(&copy)).unwrap(), Owner::Nobody);
}
