//! Where it happens: a store, a Redis of its own, and processes between them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::drain::{Fill, Route, Sink};
use rowlock::engine::{Counts, RouteRow};
use rowlock::job::Backoff;
use rowlock::verify::{self, RanLog};
use rowlock::{JobId, JobState, Kind};
use rowlock_testbed::{Process, Redis, TempDir};

use crate::conformance::world::{Home, Site, World};

pub struct Stand {
    pub home: Arc<dyn Home>,
    pub site: Site,
    pub redis: Redis,
    runtime: tokio::runtime::Runtime,
    logs: TempDir,
    sink: Arc<dyn Sink>,
}

impl Stand {
    pub fn new(home: Arc<dyn Home>) -> Self {
        let redis = Redis::start();
        let world = World::real(home);
        Self {
            site: world.open_with(Clock::system()),
            sink: Route::to(redis.url())
                .unwrap()
                .sink(&Clock::system())
                .unwrap(),
            home: world.home,
            redis,
            runtime: tokio::runtime::Runtime::new().unwrap(),
            logs: rowlock_testbed::folder(),
        }
    }

    fn log(&self) -> PathBuf {
        self.logs.path().join("ran")
    }

    /// A process that drains these kinds.
    pub fn drain(&self, lease_ms: u32, kinds: &str) -> Process {
        self.drain_with(&[], lease_ms, kinds)
    }

    pub fn drain_with(&self, environment: &[(&str, &str)], lease_ms: u32, kinds: &str) -> Process {
        let (lease, log) = (lease_ms.to_string(), self.log().display().to_string());
        let role = [
            "drain",
            &self.home.url(),
            &self.redis.url(),
            &lease,
            kinds,
            &log,
        ];
        started(&role, environment)
    }

    /// A process that works off what Redis has, without the store.
    pub fn worker(&self, lease_ms: u32, slots: u32, kinds: &str) -> Process {
        self.worker_with(&[], lease_ms, slots, kinds)
    }

    pub fn worker_with(
        &self,
        environment: &[(&str, &str)],
        lease_ms: u32,
        slots: u32,
        kinds: &str,
    ) -> Process {
        let (lease, slots) = (lease_ms.to_string(), slots.to_string());
        let log = self.log().display().to_string();
        let role = ["work", &self.redis.url(), &lease, &slots, kinds, &log];
        started(&role, environment)
    }

    pub fn ask<T>(&self, question: impl Future<Output = T>) -> T {
        self.runtime.block_on(question)
    }

    /// How full Redis is; nothing while it is away.
    pub fn fill(&self) -> Option<Fill> {
        self.ask(self.sink.fill()).ok()
    }

    /// Waits until Redis says so.
    pub fn until_filled(&self, enough: impl Fn(&Fill) -> bool) -> Fill {
        rowlock_testbed::until("Redis is as full as it should be", || {
            self.fill().filter(|fill| enough(fill))
        })
    }

    /// Waits until the store says so.
    pub fn until(&self, enough: impl Fn(&Counts) -> bool) -> Counts {
        let operate = self.site.rowlock.operate();
        let looking = async {
            let mut wakeups = self.site.engine().wakeups();
            loop {
                wakeups.mark();
                let counts = operate.stats().await.unwrap().total;
                if enough(&counts) {
                    return counts;
                }
                crate::conformance::world::a_moment(&mut wakeups).await;
            }
        };
        // Less than a judge of mutants waits: whoever it ends leaves its processes behind.
        let patience = Duration::from_secs(120);
        let found = self.ask(Clock::system().timeout(patience, looking));
        found.unwrap_or_else(|| {
            let counts = self.ask(operate.stats()).unwrap().total;
            panic!(
                "it doesn't happen: {counts:?}, {:?}, {:?}",
                self.fill(),
                self.routes()
            )
        })
    }

    pub fn routes(&self) -> Vec<RouteRow> {
        self.ask(self.site.rowlock.routes().routes()).unwrap()
    }

    /// A drained kind whose jobs wait for nothing before another attempt. A worker without the store can't
    /// add it, and a drain leaves a row alone that is there before it.
    pub fn retries_at_once(&self, kind: &str) {
        let mut kind = Kind::new(kind).unwrap();
        kind.backoff = Backoff::Fixed {
            base: Duration::ZERO,
            jitter: 0.0,
        };
        let names = [kind.name.clone()];
        self.ask(self.site.engine().add_kinds(&[kind])).unwrap();
        let route = Route::to(self.redis.url()).unwrap().name;
        let routes = self.site.rowlock.routes();
        self.ask(routes.declare_route(&route, &names, &[], true))
            .unwrap();
    }

    pub fn stage(&self, kind: &str, jobs: usize) -> Vec<JobId> {
        self.ask(self.site.stage_many(kind, jobs))
    }

    /// Every one of these was completed by its first attempt, and charged for nothing else.
    pub fn all_done_at_once(&self, ids: &[JobId]) {
        for id in ids {
            let found = self.ask(self.site.job(*id));
            let end = (found.state, found.attempt);
            assert_eq!(end, (JobState::Completed, 1), "job {id}");
            assert!(found.errors.is_empty(), "job {id}: {:?}", found.errors);
        }
    }

    /// What was run and what was accepted, compared with the store.
    pub fn judge(&self) {
        let ran = RanLog::read(self.log()).unwrap();
        let checked = verify::check(self.site.rowlock.operate(), None, Some(&ran));
        let report = self.ask(checked).unwrap();
        let lines: Vec<String> = report.checked.iter().map(ToString::to_string).collect();
        assert!(report.is_clean(), "{lines:#?}");
    }

    /// The jobs that were begun, with how often.
    pub fn begun(&self) -> std::collections::BTreeMap<i64, usize> {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let mut begun = std::collections::BTreeMap::new();
        for line in log.lines() {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            if event["event"] == "start" {
                *begun.entry(event["id"].as_i64().unwrap()).or_default() += 1;
            }
        }
        begun
    }
}

pub fn started(role: &[&str], environment: &[(&str, &str)]) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("rival").args(role);
    let mut process = Process::start(command.envs(environment.iter().copied()));
    process.line_with("ready");
    process
}

/// Asks a process to stop, and sees that it does so in order.
pub fn dismiss(process: Process) -> Vec<String> {
    process.signal("TERM");
    let (code, lines) = process.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    lines
}

pub fn kill(process: Process) {
    process.signal("KILL");
    process.wait();
}
