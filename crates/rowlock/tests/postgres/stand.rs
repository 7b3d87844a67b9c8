//! A store in PostgreSQL with worker processes around it, for faults of the server and the network.

use std::process::Command;
use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::engine::Counts;
use rowlock::{JobId, JobState};
use rowlock_testbed::{Database, Postgres, Process};

use super::home::Own;
use crate::conformance::world::{Home, Site, World};

pub struct Stand {
    pub home: Own,
    pub site: Site,
    /// The database's name.
    pub name: String,
    runtime: tokio::runtime::Runtime,
    _database: Option<Database>,
}

impl Stand {
    /// On the server that all cases share.
    pub fn new() -> Self {
        Self::with(Own::new(), None)
    }

    /// On a server that the case may spoil.
    pub fn on(server: &Postgres) -> Self {
        let database = server.database_from(None);
        let home = Own::at(database.url());
        home.migrate();
        Self::with(home, Some(database))
    }

    fn with(home: Own, database: Option<Database>) -> Self {
        let name = home.url().rsplit_once('/').unwrap().1.to_owned();
        Self {
            site: Site {
                rowlock: home.open(Clock::system()),
                detour: None,
            },
            runtime: tokio::runtime::Runtime::new().unwrap(),
            home,
            name,
            _database: database,
        }
    }

    /// A handle that reaches the store another way.
    pub fn through(&self, url: &str) -> Site {
        let world = World::real(std::sync::Arc::new(Own::at(url)));
        world.open_with(Clock::system())
    }

    pub fn ask<T>(&self, question: impl Future<Output = T>) -> T {
        self.runtime.block_on(question)
    }

    /// A worker process with the handlers of `rival::work`.
    pub fn worker(&self, url: &str, lease_ms: u32, kinds: &str) -> Process {
        let mut worker = Process::start(&mut rival(&[
            "work",
            url,
            &lease_ms.to_string(),
            "4",
            kinds,
        ]));
        worker.line_with("ready");
        worker
    }

    pub fn until_workers(&self, workers: usize) {
        self.eventually("workers join", async || {
            let living = self.site.rowlock.operate().workers().await.ok()?.len();
            (living == workers).then_some(())
        });
    }

    /// Waits until `enough` says so. The store may be away meanwhile.
    pub fn until(&self, enough: impl Fn(&Counts) -> bool) -> Counts {
        self.eventually("jobs move", async || {
            let counts = self.site.rowlock.operate().stats().await.ok()?.total;
            enough(&counts).then_some(counts)
        })
    }

    /// Looks again and again, with a pause: the processes need the machine more. It opens no session.
    pub fn eventually<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let looking = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                let glance = Duration::from_millis(20);
                let clock = Clock::system();
                clock.timeout(glance, std::future::pending::<()>()).await;
            }
        };
        let patience = Duration::from_secs(120);
        let found = self.ask(Clock::system().timeout(patience, looking));
        found.unwrap_or_else(|| panic!("not in time: {what}"))
    }

    /// Its first attempt completed it, and it was charged for nothing else.
    pub fn done_at_once(&self, id: JobId) {
        let found = self.ask(self.site.job(id));
        assert_eq!((found.state, found.attempt), (JobState::Completed, 1));
        assert!(found.errors.is_empty(), "job {id}: {:?}", found.errors);
    }
}

pub fn rival(role: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("rival").args(role);
    command
}

/// Ends a worker at once: what runs is given back.
pub fn dismiss(worker: Process) -> Vec<String> {
    // Two of one kind could be merged into one by the system.
    worker.signal("TERM");
    worker.signal("INT");
    let (code, lines) = worker.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
    lines
}
