//! A Redis of a case's own, a drain's side of it and a worker's.

use std::time::Duration;

use jiff::Timestamp;
use rowlock::claim::{Claim, ClaimedJob, WorkerId};
use rowlock::clock::Clock;
use rowlock::drain::sinks::redis::{Redis, RedisSink};
use rowlock::drain::{Hold, Pushed, Report, Sink};
use rowlock::engine::Dispatch;
use rowlock::job::Token;
use rowlock::settle::{Settled, Settlement, Verdict};
use rowlock::{JobId, Name, Payload};

use crate::conformance::world::{Home, Site, job, name, wanted};
use crate::sqlite::home::File;

/// The number of the store that sends.
pub const STORE: u64 = 7;
/// Longer than any case.
pub const LONG: Duration = Duration::from_secs(600);
/// Long enough for any push.
pub const SOON: Duration = Duration::from_secs(60);

pub struct Stand {
    pub server: rowlock_testbed::Redis,
    pub sink: RedisSink,
    pub redis: Redis,
    /// What any job looks like.
    template: ClaimedJob,
    next: std::cell::Cell<i64>,
}

impl Stand {
    pub async fn new() -> Self {
        Self::on(rowlock_testbed::Redis::start()).await
    }

    pub async fn on(server: rowlock_testbed::Redis) -> Self {
        let stand = Self::unopened(server).await;
        assert!(stand.sink.open(STORE).await.unwrap(), "it is new");
        stand
    }

    pub async fn unopened(server: rowlock_testbed::Redis) -> Self {
        Self {
            sink: sink(&server.url()),
            redis: redis(&server.url()),
            server,
            template: template().await,
            next: std::cell::Cell::new(1),
        }
    }

    /// A job that a drain has claimed, with a number of its own.
    pub fn job(&self, kind: &str) -> ClaimedJob {
        let mut job = self.template.clone();
        job.id = JobId(self.next.replace(self.next.get() + 1));
        job.token = Token::random().unwrap();
        job.kind = name(kind);
        job
    }

    pub fn jobs(&self, kind: &str, n: usize) -> Vec<ClaimedJob> {
        (0..n).map(|_| self.job(kind)).collect()
    }

    pub async fn push(&self, jobs: &[ClaimedJob]) -> Pushed {
        self.sink.push(jobs, SOON).await.unwrap()
    }

    pub async fn join(&self) -> WorkerId {
        self.join_for(LONG).await
    }

    pub async fn join_for(&self, lease: Duration) -> WorkerId {
        let worker = WorkerId::random("test").unwrap();
        self.redis.join(&worker, lease).await.unwrap();
        worker
    }

    pub async fn take(&self, worker: &WorkerId, kinds: &[&str], limit: usize) -> Vec<ClaimedJob> {
        self.taken(wanted(worker, kinds, limit)).await
    }

    pub async fn taken(&self, claim: Claim) -> Vec<ClaimedJob> {
        self.redis.claim(claim).await.unwrap().jobs
    }

    pub async fn settle(&self, job: &ClaimedJob, verdict: Verdict) -> Settled {
        let settlement = settlement(job, verdict);
        self.redis.settle(vec![settlement]).await.unwrap()[0]
    }

    pub async fn hold(&self, job: &ClaimedJob) -> Hold {
        self.sink.holds(&[sent(job)]).await.unwrap()[0]
    }

    pub async fn reports(&self) -> Vec<Report> {
        self.sink.reports(1_000, Duration::ZERO).await.unwrap()
    }

    /// A key below the prefix.
    pub fn key(&self, rest: &str) -> String {
        format!("rowlock:{{jobs}}:{rest}")
    }

    /// A worker that nobody has heard of for its lease.
    pub async fn dead(&self, worker: &WorkerId) {
        let key = self.key(&format!("worker:{worker}"));
        self.server.command(&["PEXPIRE", &key, "1"]);
        rowlock_testbed::until("the lease is over", || {
            (self.server.command(&["EXISTS", &key]) == "0").then_some(())
        });
    }
}

pub fn sink(url: &str) -> RedisSink {
    RedisSink::new(url, Clock::system()).unwrap()
}

pub fn redis(url: &str) -> Redis {
    Redis::open(url, Clock::system()).unwrap()
}

/// Only a store makes claimed jobs.
pub async fn template() -> ClaimedJob {
    let home = File::new();
    let site = Site {
        rowlock: home.open(Clock::system()),
        detour: None,
    };
    let payload = Payload::parse(r#"{"to":"ä@example.org","n":12345678901234567890123}"#);
    let new = job("mail").payload(payload.unwrap());
    let new = new.unique("key with spaces\n{\"and\":1}").unwrap();
    site.stage(new).await;
    let worker = site.join().await;
    site.claim_one(&worker, &["mail"]).await
}

pub fn sent(job: &ClaimedJob) -> (JobId, Token) {
    (job.id, job.token)
}

pub fn settlement(job: &ClaimedJob, verdict: Verdict) -> Settlement {
    Settlement {
        id: job.id,
        token: job.token,
        verdict,
        started_at: None,
    }
}

pub fn at(job: ClaimedJob, queue: &str, priority: i16, due: i64) -> ClaimedJob {
    let mut job = job;
    job.queue = name(queue);
    job.priority = priority;
    job.scheduled_at = Timestamp::from_second(due).unwrap();
    job
}

pub fn queues(names: &[&str]) -> Vec<Name> {
    names.iter().map(|queue| name(queue)).collect()
}
