//! A server whose disk is full. The disk is a small one in memory, in a namespace of its own: whatever
//! happens to the processes, it is gone with them.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use rowlock::NewJob;
use rowlock::error::Error;
use rowlock::verify;
use rowlock_testbed::{Postgres, Process, Stop, folder};

use super::stand::{Stand, dismiss};
use crate::conformance::world::{Home, job};

const MOUNT: &str = r#"mount -t tmpfs -o size=120m,mode=1777 tmpfs "$0" && exec "$@""#;

pub fn a_full_disk_takes_no_job_and_loses_none() {
    let disk = folder();
    let (path, own) = (disk.path(), std::env::current_exe().unwrap());
    let mine = std::fs::metadata("/proc/self").unwrap();
    let mut command = Command::new("unshare");
    match mine.uid() {
        0 => command.arg("--mount"),
        _ => command.args(["--user", "--map-root-user", "--mount"]),
    };
    command.args(["sh", "-c", MOUNT]).arg(path);
    if mine.uid() != 0 {
        // Servers refuse to run as root, also as one who is root only here.
        command
            .args(["unshare", "--user"])
            .arg(format!("--map-user={}", mine.uid()))
            .arg(format!("--map-group={}", mine.gid()));
    }
    command.arg(own).args(["rival", "full"]).arg(path);
    let (code, lines) = Process::start(&mut command).wait();
    assert_eq!(
        code,
        Some(0),
        "it needs util-linux, and root or a kernel that lets users have namespaces: {lines:#?}"
    );
    assert!(lines.iter().any(|line| line == "went on"), "{lines:#?}");
}

/// The case itself, where the disk is.
pub fn inside(disk: &Path) {
    let server = Postgres::start_own_in(disk);
    let log = move_log(&server);
    let stand = Stand::on(&server);
    let worker = stand.worker(&stand.home.url(), 3_000, "quick");
    stand.until_workers(1);
    let ballast = disk.join("ballast");
    let mut acknowledged = fill(&stand, &ballast);
    // What is refused is refused as long as there is no room.
    let refused = stand.ask(stand.site.rowlock.enqueue(&large(0)));
    assert!(matches!(refused, Err(Error::NoSpace(_))), "{refused:?}");
    std::fs::remove_file(&ballast).unwrap();
    for n in 0..10 {
        stand.ask(stand.site.stage(large(n)));
        acknowledged += 1;
    }
    let counts = stand.until(|counts| counts.pending + counts.processing == 0);
    assert_eq!(counts.completed, acknowledged, "not one more, not one less");
    let report = stand.ask(verify::check(stand.site.rowlock.operate(), None, None));
    assert!(report.unwrap().is_clean());
    dismiss(worker);
    drop((stand, server, log));
    println!("went on");
}

/// A server that can't write its log ends itself, as it must; here its tables run out of room.
fn move_log(server: &Postgres) -> rowlock_testbed::TempDir {
    let (elsewhere, data) = (folder(), server.data_folder());
    let owner = std::fs::metadata(data).unwrap();
    chown(elsewhere.path(), Some(owner.uid()), Some(owner.gid())).unwrap();
    server.stop(Stop::Fast);
    let (from, to) = (data.join("pg_wal"), elsewhere.path().join("pg_wal"));
    let copied = Command::new("cp").arg("-a").args([&from, &to]).status();
    assert!(copied.unwrap().success());
    std::fs::remove_dir_all(&from).unwrap();
    symlink(&to, &from).unwrap();
    server.start();
    elsewhere
}

/// Fills the disk and enqueues until that is refused; how many were taken.
fn fill(stand: &Stand, ballast: &Path) -> u64 {
    let mut file = std::fs::File::create(ballast).unwrap();
    let full = loop {
        if let Err(why) = file.write_all(&[b'x'; 64 * 1024]) {
            break why;
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull, "{full}");
    for n in 0..1_000 {
        match stand.ask(stand.site.rowlock.enqueue(&large(n))) {
            Ok(_) => {}
            Err(Error::NoSpace(why)) => {
                println!("refused: {why}");
                return n;
            }
            Err(why) => panic!("a full disk is no reason for this: {why:?}"),
        }
    }
    panic!("a full disk takes everything")
}

/// It takes up room, and can't be packed.
fn large(n: u64) -> NewJob {
    let mut state = n;
    let mut text = String::new();
    while text.len() < 30_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        text.push_str(&format!("{state:016x}"));
    }
    job("quick").payload_of(&[text]).unwrap()
}
