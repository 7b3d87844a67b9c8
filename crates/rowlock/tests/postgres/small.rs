//! A store whose segments are small, so that the ring turns often.

use std::sync::Arc;
use std::time::Duration;

use rowlock::claim::{ClaimedJob, WorkerId};
use rowlock::clock::Clock;
use rowlock::engine::postgres::Postgres;
use rowlock::settle::{Settled, Settlement, Verdict};
use rowlock::{JobId, Rowlock};
use rowlock_testbed::{Session, until};

use super::home::{Own, wait};
use crate::conformance::world::{Site, World, a_moment, wanted};

pub struct Small {
    pub own: Arc<Own>,
    /// Somebody who looks on.
    pub side: Session,
}

/// What was done with a segment when the ring was turned, or who kept it from being done.
#[derive(Debug)]
pub struct Turned {
    pub did: String,
    /// A transaction and its process each.
    pub holders: Vec<String>,
}

/// Five hundred jobs fill it.
pub const BYTES: u64 = 64 * 1024;

impl Small {
    pub fn new() -> Self {
        let own = Arc::new(Own::new());
        let side = own.session();
        Self { own, side }
    }

    /// A world whose time the case moves.
    pub fn world(&self) -> World {
        World::new(Arc::clone(&self.own) as Arc<_>)
    }

    /// A handle with connections and bounds of its own.
    pub fn open(&self, clock: &Clock) -> Site {
        self.open_with(clock, BYTES)
    }

    pub fn open_with(&self, clock: &Clock, bytes: u64) -> Site {
        let engine = wait(Postgres::open(self.own.address(), clock.clone())).unwrap();
        let rowlock = Rowlock::with(engine.segment_bytes(bytes), clock.clone());
        Site {
            rowlock,
            detour: None,
        }
    }

    /// The segment that jobs are written to now.
    pub fn segment(&self) -> String {
        self.side.value("SELECT last_value % 8 FROM rowlock.ring")
    }

    /// How often the ring has gone on.
    pub fn generation(&self) -> u64 {
        let generation = self.side.value("SELECT last_value / 8 FROM rowlock.ring");
        generation.parse().unwrap()
    }

    /// The bytes of each segment's rows.
    pub fn sizes(&self) -> Vec<u64> {
        let sql = "SELECT pg_relation_size(format('rowlock.job_%s', s)::regclass)
                   FROM generate_series(0, 3) AS s ORDER BY s";
        let rows = self.side.query(sql).unwrap();
        let bytes = rows.into_iter().flatten().flatten();
        bytes.map(|bytes| bytes.parse().unwrap()).collect()
    }

    /// The table a live job is in, and its place there.
    pub fn place(&self, id: JobId) -> String {
        let sql =
            format!("SELECT tableoid::regclass || ' ' || ctid FROM rowlock.job WHERE id = {id}");
        self.side.value(&sql)
    }

    /// The next job gets this number, as on a copy without sequences.
    pub fn numbers_go_on_at(&self, next: i64) {
        let set = format!("SELECT setval('rowlock.job_id', {next}, false)");
        self.side.execute(&set).unwrap();
    }

    pub fn number(&self, sql: &str) -> usize {
        self.side.value(sql).parse().unwrap()
    }

    /// Turns the ring until exactly these segments have rows: a vacuum may be in the way for a moment.
    pub fn only_these_have_rows(&self, segments: &[usize]) {
        until("the other segments are empty", || {
            let sizes = self.sizes().into_iter().enumerate();
            let full: Vec<usize> = sizes.filter(|(_, n)| *n > 0).map(|(s, _)| s).collect();
            if full != segments {
                self.rotate(&[]);
                return None;
            }
            Some(())
        });
    }

    /// Nobody waits for a lock.
    pub fn nobody_waits(&self) {
        let waiting = self.side.query(
            "SELECT l.relation::regclass, l.mode, a.query FROM pg_locks AS l
             JOIN pg_stat_activity AS a ON a.pid = l.pid
             WHERE NOT l.granted AND a.datname = current_database()",
        );
        assert!(waiting.as_ref().unwrap().is_empty(), "{waiting:?}");
    }

    /// Turns the ring as somebody who has seen these holders.
    pub fn rotate(&self, seen: &[String]) -> Vec<Turned> {
        self.rotate_at(BYTES, seen)
    }

    pub fn rotate_at(&self, bytes: u64, seen: &[String]) -> Vec<Turned> {
        let seen: Vec<String> = seen.iter().map(|holder| format!("'{holder}'")).collect();
        let rows = self.side.query(&format!(
            "SELECT did, array_to_string(holders, ',')
             FROM rowlock.rotate({bytes}, ARRAY[{}]::text[]) ORDER BY segment",
            seen.join(", ")
        ));
        let turned = |row: Vec<Option<String>>| {
            let mut texts = row.into_iter().map(Option::unwrap);
            Turned {
                did: texts.next().unwrap(),
                holders: split(&texts.next().unwrap()),
            }
        };
        rows.unwrap().into_iter().map(turned).collect()
    }

    /// Lets jobs go through until the ring has gone on.
    pub async fn turn(&self, site: &Site, worker: &WorkerId, kind: &str) {
        let before = self.generation();
        for _ in 0..20 {
            site.stage_many(kind, 500).await;
            drain(site, worker, &[kind], 500).await;
            site.engine().upkeep().await.unwrap();
            if self.generation() > before {
                return;
            }
        }
        panic!("the ring stands still: {:?}", self.rotate(&[]));
    }
}

fn split(list: &str) -> Vec<String> {
    let parts = list.split(',').filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// Completes them.
pub async fn done(site: &Site, jobs: &[ClaimedJob]) {
    let settlement = |job: &ClaimedJob| Settlement {
        id: job.id,
        token: job.token,
        verdict: Verdict::Done,
        started_at: None,
    };
    let settlements = jobs.iter().map(settlement).collect();
    let settled = site.engine().settle(settlements).await.unwrap();
    assert!(
        settled.iter().all(|answer| *answer == Settled::Accepted),
        "{settled:?}"
    );
}

/// Claims and completes until a claim comes back empty; all that was done.
pub async fn drain(site: &Site, worker: &WorkerId, kinds: &[&str], most: usize) -> Vec<JobId> {
    let mut all = Vec::new();
    loop {
        let jobs = site.claim(worker, kinds, most).await;
        if jobs.is_empty() {
            return all;
        }
        done(site, &jobs).await;
        all.extend(jobs.iter().map(|job| job.id));
    }
}

/// Claims and completes until so many are done: what bounds hide has to wait for a sweep's share of
/// time. The ring stays as it is.
pub async fn drain_all(site: &Site, worker: &WorkerId, kinds: &[&str], jobs: usize) -> Vec<JobId> {
    until_done(site, worker, kinds, jobs, false).await
}

/// The same, and turns the ring meanwhile.
pub async fn drain_turning(
    site: &Site,
    worker: &WorkerId,
    kinds: &[&str],
    jobs: usize,
) -> Vec<JobId> {
    until_done(site, worker, kinds, jobs, true).await
}

async fn until_done(
    site: &Site,
    worker: &WorkerId,
    kinds: &[&str],
    jobs: usize,
    turn: bool,
) -> Vec<JobId> {
    let clock = Clock::system();
    let mut last = clock.elapsed();
    let mut wakeups = site.engine().wakeups();
    let mut all = Vec::new();
    while all.len() < jobs {
        let claimed = site
            .engine()
            .claim(wanted(worker, kinds, 1_000))
            .await
            .unwrap();
        if turn {
            site.engine().upkeep().await.unwrap();
        }
        if claimed.jobs.is_empty() {
            let passed = clock.elapsed().saturating_sub(last);
            let missing = jobs - all.len();
            assert!(passed < DEADLINE, "{missing} of {jobs} jobs never came");
            a_moment(&mut wakeups).await;
            continue;
        }
        last = clock.elapsed();
        done(site, &claimed.jobs).await;
        all.extend(claimed.jobs.iter().map(|job| job.id));
    }
    all
}

/// It can only fail a case.
const DEADLINE: Duration = Duration::from_secs(60);
