//! Real processes with a told and a ran log. One of them dies at a crash point, the others go on
//! until nothing is left to do, and the checker compares the logs with the store.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::verify::{self, RanLog, ToldLog};
use rowlock_testbed::{Process, TempDir};

use super::Who;
use crate::conformance::world::Home;

/// Short: every case waits for one to end. A worker that loses it on a busy machine is fenced, and
/// that must lose nothing either.
const LEASE_MS: &str = "500";
const SLOTS: &str = "4";
const JOBS: &str = "60";
const KINDS: &str = "quick,stumbles,naps,ghost";

pub struct Harness {
    home: Arc<dyn Home>,
    point: &'static str,
    seed: u64,
    logs: TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Harness {
    pub fn new(home: Arc<dyn Home>, point: &'static str) -> Self {
        let seed = std::env::var("ROWLOCK_SEED").map_or(1, |seed| seed.parse().unwrap());
        // Shown when the case fails.
        eprintln!("{point}: repeat with ROWLOCK_SEED={seed}");
        Self {
            home,
            point,
            seed,
            logs: rowlock_testbed::folder(),
            runtime: tokio::runtime::Runtime::new().unwrap(),
        }
    }

    pub fn run(self, who: Who) {
        if let Who::Migrator = who {
            self.dies(self.rival(&["migrate", &self.home.empty_url()]));
            let again = Process::run(&mut self.command(&["migrate", &self.home.empty_url()]), "");
            assert_eq!(again.code, Some(0), "{again:?}");
        }
        let url = match who {
            Who::Migrator => self.home.empty_url(),
            _ => self.home.url(),
        };
        if let Who::Producer = who {
            self.dies(self.rival(&self.produce(&url)));
        }
        let produced = Process::run(&mut self.command(&self.produce(&url)), "");
        assert_eq!(produced.code, Some(0), "{produced:?}");
        match who {
            Who::Worker => {
                self.leaves_something_behind(&url);
                self.dies(self.rival(&self.work(&url)));
            }
            Who::Leaver => {
                let mut leaver = self.rival(&self.work(&url));
                leaver.line_with("began naps");
                leaver.signal("TERM");
                self.dies(leaver);
            }
            Who::Migrator | Who::Producer | Who::Pruner | Who::Leader | Who::Drain => {}
        }
        self.drains(&url);
        if let Who::Pruner = who {
            self.dies(self.rival(&["prune", &url]));
            let again = Process::run(&mut self.command(&["prune", &url]), "");
            assert_eq!(again.code, Some(0), "{again:?}");
        }
        self.judge(&url);
    }

    fn log(&self, name: &str) -> PathBuf {
        self.logs.path().join(name)
    }

    fn produce(&self, url: &str) -> [String; 5] {
        let told = self.log("told").display().to_string();
        ["produce", url, &told, &self.seed.to_string(), JOBS].map(str::to_owned)
    }

    fn work(&self, url: &str) -> [String; 6] {
        let ran = self.log("ran").display().to_string();
        ["work", url, LEASE_MS, SLOTS, KINDS, &ran].map(str::to_owned)
    }

    fn command<S: AsRef<str>>(&self, role: &[S]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("rival").args(role.iter().map(AsRef::as_ref));
        command
    }

    /// A process that is going to die at the crash point, at a time that the seed chooses.
    fn rival<S: AsRef<str>>(&self, role: &[S]) -> Process {
        let often = match self.point.split_once('.').unwrap().0 {
            "migrate" | "join" | "leave" | "prune" | "expire" | "suspect" => 1,
            _ => 1 + self.seed % 3,
        };
        let plan = format!("{}#{often}", self.point);
        Process::start(self.command(role).env("ROWLOCK_CRASH_AT", plan))
    }

    fn dies(&self, mut process: Process) {
        process.line_with(&format!("crash point {}", self.point));
        let (code, lines) = process.wait();
        assert_eq!(code, None, "it was ended by a signal: {lines:#?}");
        no_ghosts(&lines);
    }

    /// A worker is killed in the middle of a job: there is something to expire, and a suspect.
    fn leaves_something_behind(&self, url: &str) {
        let mut command = self.command(&self.work(url));
        let mut killed = Process::start(command.env("ROWLOCK_PAUSE_AT", "run.began"));
        killed.line_with("paused at run.began");
        killed.signal("KILL");
        no_ghosts(&killed.wait().1);
    }

    /// Somebody healthy runs what is left.
    fn drains(&self, url: &str) {
        let mut healer = Process::start(&mut self.command(&self.work(url)));
        healer.line_with("ready");
        let rowlock = crate::conformance::home_at(url).open(rowlock::Clock::system());
        let drained = self.runtime.block_on(async {
            let mut wakeups = rowlock.engine().wakeups();
            let empty = async {
                loop {
                    wakeups.mark();
                    let counts = rowlock.operate().stats().await.unwrap().total;
                    if counts.pending + counts.processing == 0 {
                        return;
                    }
                    crate::conformance::world::a_moment(&mut wakeups).await;
                }
            };
            // Less than a judge of mutants waits: whoever it ends leaves its processes behind.
            let patience = Duration::from_secs(100);
            Clock::system().timeout(patience, empty).await
        });
        assert!(drained.is_some(), "the queue doesn't drain");
        healer.signal("TERM");
        let (code, lines) = healer.wait();
        assert_eq!(code, Some(0), "{lines:#?}");
        no_ghosts(&lines);
    }

    fn judge(&self, url: &str) {
        let told = ToldLog::read(self.log("told")).unwrap();
        let ran = RanLog::read(self.log("ran")).unwrap();
        let rowlock = crate::conformance::home_at(url).open(rowlock::Clock::system());
        let report = self
            .runtime
            .block_on(verify::check(rowlock.operate(), Some(&told), Some(&ran)))
            .unwrap();
        let lines: Vec<String> = report.checked.iter().map(ToString::to_string).collect();
        assert!(report.is_clean(), "{lines:#?}");
        assert!(told.enqueued() >= 40, "the producer was told too little");
        assert_eq!(
            (report.lost, report.ended),
            (0, told.enqueued() as u64),
            "{lines:#?}"
        );
    }
}

fn no_ghosts(lines: &[String]) {
    let ghost = lines.iter().find(|line| line.contains("began ghost"));
    assert_eq!(ghost, None, "a job ran whose transaction was rolled back");
}
