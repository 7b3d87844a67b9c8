//! Everything at once: workers that are killed, applications that make it hard, snapshots that keep what is
//! dead, and a ring of tiny segments that turns all the time. The checker is the judge.

use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::verify::{RanLog, ToldLog, check};
use rowlock_testbed::{Finished, Process, Session, TempDir, folder};

use super::small::Small;
use crate::conformance::world::Home;

const BYTES: u64 = 8 * 1024;
const LEASE_MS: &str = "800";
const WORKERS: usize = 3;
const PRODUCERS: u64 = 2;
const KILLS: usize = 6;
/// It can only fail the case. Less than a judge of mutants waits.
const DEADLINE: Duration = Duration::from_secs(100);

/// Rounds, and transactions of each producer.
fn extent() -> (u64, u64) {
    let rounds = std::env::var("ROWLOCK_SIEGES").map_or(2, |rounds| rounds.parse().unwrap());
    (rounds, 400)
}

pub async fn nothing_is_lost_under_siege(_: Small) {
    let first: u64 = std::env::var("ROWLOCK_SEED").map_or(1, |seed| seed.parse().unwrap());
    let (rounds, transactions) = extent();
    for seed in first..first + rounds {
        eprintln!("siege: repeat with ROWLOCK_SEED={seed}");
        println!("{}", Siege::new(seed, transactions).run().await);
    }
}

struct Siege {
    small: Small,
    logs: TempDir,
    seed: u64,
    transactions: u64,
    workers: Vec<Process>,
    killed: usize,
    retired: usize,
    dumper: Session,
    dumps: usize,
}

impl Siege {
    fn new(seed: u64, transactions: u64) -> Self {
        let small = Small::new();
        let mut siege = Self {
            dumper: small.own.session(),
            small,
            logs: folder(),
            seed,
            transactions,
            workers: Vec::new(),
            killed: 0,
            retired: 0,
            dumps: 0,
        };
        for _ in 0..WORKERS {
            let worker = siege.worker();
            siege.workers.push(worker);
        }
        siege
    }

    fn log(&self, name: &str) -> String {
        self.logs.path().join(name).display().to_string()
    }

    fn rival(&self, role: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("rival").args(role);
        command.env("ROWLOCK_SEGMENT_BYTES", BYTES.to_string());
        command
    }

    fn worker(&self) -> Process {
        let (url, ran) = (self.small.own.url(), self.log("ran"));
        let kinds = "quick,stumbles,naps,ghost";
        let role = ["work", &url, LEASE_MS, "8", kinds, &ran];
        let mut worker = Process::start(&mut self.rival(&role));
        worker.line_with("ready");
        worker
    }

    fn producer(&self, n: u64) -> JoinHandle<Finished> {
        let (url, told) = (self.small.own.url(), self.log("told"));
        let seed = (self.seed * 100 + n).to_string();
        let transactions = self.transactions.to_string();
        let mut command = self.rival(&["besiege", &url, &told, &seed, &transactions]);
        #[expect(clippy::disallowed_methods, reason = "joined at the end of the round")]
        std::thread::spawn(move || Process::run(&mut command, ""))
    }

    async fn run(mut self) -> String {
        // One that only looks, one that writes, and below one that comes and goes.
        let snapshot = self.small.own.session();
        snapshot.execute(super::horizon::SNAPSHOT).unwrap();
        let writer = self.small.own.session();
        let write = "CREATE TABLE pinned (n integer); BEGIN; INSERT INTO pinned VALUES (1)";
        for statement in write.split("; ") {
            writer.execute(statement).unwrap();
        }
        let producers: Vec<_> = (0..PRODUCERS).map(|n| self.producer(n)).collect();
        let (clock, mut seen) = (Clock::system(), Vec::new());
        let began = clock.elapsed();
        let site = self.small.open(&clock);
        let expected = self.transactions * PRODUCERS * 2;
        for turn in 0_usize.. {
            // As the engine does, but without a pause.
            let turned = self.small.rotate_at(BYTES, &seen);
            self.retired += turned.iter().filter(|each| each.did == "retired").count();
            seen = turned.into_iter().flat_map(|each| each.holders).collect();
            self.dump(turn);
            let counts = site.rowlock.operate().stats().await.unwrap().total;
            let ended = counts.completed + counts.failed + counts.cancelled;
            let due = expected * (self.killed as u64 + 1) / (KILLS as u64 + 1);
            if self.killed < KILLS && ended >= due {
                self.kill();
            }
            let told = producers.iter().all(JoinHandle::is_finished);
            if told && counts.pending + counts.processing == 0 {
                break;
            }
            let time = clock.elapsed() - began;
            assert!(time < DEADLINE, "jobs are left behind: {counts:?}");
        }
        for producer in producers {
            let finished = producer.join().unwrap();
            assert_eq!(finished.code, Some(0), "{finished:?}");
        }
        self.judge(&site.rowlock).await
    }

    /// A reader of every table, like pg_dump, that is there for a while now and then.
    fn dump(&mut self, turn: usize) {
        match turn % 16 {
            3 => {
                self.dumps += 1;
                self.dumper
                    .execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                    .unwrap();
                self.dumper
                    .execute("LOCK TABLE rowlock.job IN ACCESS SHARE MODE")
                    .unwrap();
            }
            6 => {
                self.dumper.execute("COMMIT").unwrap();
            }
            _ => {}
        }
    }

    /// Whoever it is: all of them lead.
    fn kill(&mut self) {
        let at = usize::try_from(self.seed)
            .unwrap()
            .wrapping_add(self.killed)
            % WORKERS;
        let next = self.worker();
        let killed = std::mem::replace(&mut self.workers[at], next);
        killed.signal("KILL");
        no_ghosts(&killed.wait().1);
        self.killed += 1;
    }

    async fn judge(self, rowlock: &rowlock::Rowlock) -> String {
        for worker in self.workers {
            worker.signal("TERM");
            let (code, lines) = worker.wait();
            assert_eq!(code, Some(0), "{lines:#?}");
            no_ghosts(&lines);
        }
        let told = ToldLog::read(self.logs.path().join("told")).unwrap();
        let ran = RanLog::read(self.logs.path().join("ran")).unwrap();
        let report = check(rowlock.operate(), Some(&told), Some(&ran))
            .await
            .unwrap();
        let lines: Vec<String> = report.checked.iter().map(ToString::to_string).collect();
        assert!(report.is_clean(), "{lines:#?}");
        assert_eq!(report.lost, 0, "{lines:#?}");
        assert!(told.enqueued() > 400, "the producers were told too little");
        // Twice around; how often depends on the machine.
        assert!(
            self.retired >= 8,
            "the ring hardly turned: {}",
            self.retired
        );
        format!(
            "siege {}: {} jobs told, {} lost, {} workers killed, {} segments retired, {} dumps: {}",
            self.seed,
            told.enqueued(),
            report.lost,
            self.killed,
            self.retired,
            self.dumps,
            lines.join("; ")
        )
    }
}

fn no_ghosts(lines: &[String]) {
    let ghost = lines.iter().find(|line| line.contains("began ghost"));
    assert_eq!(ghost, None, "a job ran whose transaction was rolled back");
}
