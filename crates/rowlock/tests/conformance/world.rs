//! What a case has: a store of its own, a clock it moves, and short words for the journey.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowlock::claim::{Claim, Claimed, ClaimedJob, Expired, WorkerId};
use rowlock::clock::Clock;
use rowlock::engine::{Dispatch, Engine};
use rowlock::job::{JobError, Token};
use rowlock::settle::{Settled, Settlement, Verdict};
use rowlock::{Enqueued, JobId, JobState, Name, NewJob, Outcome, Record, Rowlock, Worker};

pub const LEASE: Duration = Duration::from_secs(30);

/// An engine's side of a case. One per engine.
pub trait Home: Send + Sync {
    /// Brings the schema up to date, or makes the store.
    fn migrate(&self);
    /// A new handle: connections and threads of its own.
    fn open(&self, clock: Clock) -> Rowlock;
    /// A connection of an application's, which stages in its own transaction.
    fn client(&self) -> Box<dyn Client>;
    /// Where the store is, for other processes.
    fn url(&self) -> String;
    /// Where a store could be made: there is nothing yet.
    fn empty_url(&self) -> String;
    /// The work that the store has done so far, where it counts that itself and nobody is connected.
    fn work_done(&self) -> Option<u64> {
        None
    }
    /// How often a worker must look by itself. It is woken for most of what comes, so that hardly ever
    /// would do.
    fn poll(&self) -> Duration {
        Duration::from_secs(3600)
    }
    /// What time it is, where the store has a clock of its own.
    fn time_is(&self, _now: Timestamp) {}
    /// From now on time passes as it does elsewhere.
    fn time_passes(&self) {}
    /// The case has ended well: what else must be so by now.
    fn ended(&self) {}
    /// The way that jobs take to workers, where that isn't the store itself.
    fn detour(&self, _rowlock: &Rowlock) -> Option<Arc<dyn Detour>> {
        None
    }
}

/// A dispatcher, with a drain that moves whenever something is asked of it.
#[rowlock::async_trait]
pub trait Detour: Dispatch {
    /// Gives back what dead workers had taken: who they were, and how many jobs that was.
    async fn bury(&self) -> rowlock::error::Result<(Vec<WorkerId>, usize)>;
    /// Who holds the jobs, as the store knows it.
    fn holder(&self) -> WorkerId;
    /// Workers that have joined and not left.
    fn workers(&self) -> Vec<WorkerId>;
}

/// An application that shares the database.
pub trait Client {
    fn begin(&mut self);
    fn commit(&mut self);
    fn rollback(&mut self);
    /// Stages through the library's call.
    fn stage(&mut self, job: &NewJob) -> rowlock::error::Result<Enqueued>;
    /// Stages as any language would, without the library; fields by name.
    fn stage_by_sql(&mut self, fields: &[(&str, Field)]) -> Result<(), String>;
    /// Runs a statement of the application's.
    fn execute(&mut self, sql: &str);
    /// A time as the store keeps it, in SQL.
    fn time(&self, at: Timestamp) -> String;
    /// From now on the end of this job can't be written.
    fn refuse_end_of(&mut self, id: JobId) {
        self.refuse_end(&format!("NEW.id = {id}"));
    }
    /// The same for ends of this form.
    fn refuse_end(&mut self, form: &str);
    /// From now on it can.
    fn accept_every_end(&mut self);
    /// Whether staging by SQL gets a payload as it was written.
    fn sees_json_as_written(&self) -> bool;
    /// Whether the store's rows could be changed at this moment.
    fn can_write(&mut self) -> bool;
    /// The integrity check of the store itself.
    fn integrity(&mut self) -> String;
}

/// A value in plain SQL.
#[derive(Debug, Clone)]
pub enum Field {
    Text(String),
    Bytes(Vec<u8>),
    Int(i64),
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

#[derive(Clone)]
pub struct World {
    pub home: Arc<dyn Home>,
    pub clock: Clock,
}

impl World {
    /// The clock starts far ahead, so that whatever a database stamps by itself is due.
    pub fn new(home: Arc<dyn Home>) -> Self {
        let clock = Clock::manual("2100-01-01T00:00:00Z".parse().unwrap());
        home.time_is(clock.now());
        Self { home, clock }
    }

    /// A world in which real time passes.
    pub fn real(home: Arc<dyn Home>) -> Self {
        let clock = Clock::system();
        Self { home, clock }
    }

    /// A handle with connections of its own.
    pub fn open(&self) -> Site {
        self.open_with(self.clock.clone())
    }

    pub fn open_with(&self, clock: Clock) -> Site {
        let rowlock = self.home.open(clock);
        let detour = self.home.detour(&rowlock);
        Site { rowlock, detour }
    }

    pub fn advance(&self, by: Duration) {
        self.clock.advance(by).unwrap();
        self.home.time_is(self.clock.now());
    }
}

/// A handle with short words.
#[derive(Clone)]
pub struct Site {
    pub rowlock: Rowlock,
    pub detour: Option<Arc<dyn Detour>>,
}

/// Until somebody has committed something, or it is worth a look all the same: not every engine tells
/// of every commit.
pub async fn a_moment(wakeups: &mut rowlock::engine::Wakeups) {
    let glance = Duration::from_millis(20);
    let _ = Clock::system().timeout(glance, wakeups.next()).await;
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub fn job(kind: &str) -> NewJob {
    NewJob::new(kind).unwrap()
}

impl Site {
    pub fn engine(&self) -> Arc<dyn Engine> {
        self.rowlock.engine()
    }

    /// Whoever hands out jobs here.
    pub fn dispatch(&self) -> Arc<dyn Dispatch> {
        match &self.detour {
            Some(detour) => Arc::clone(detour) as Arc<dyn Dispatch>,
            None => self.engine(),
        }
    }

    /// The state of a job that is due and that nobody runs: it may have been sent on.
    pub fn waiting(&self) -> JobState {
        match self.dispatch().capabilities().drained {
            true => JobState::Processing,
            false => JobState::Pending,
        }
    }

    /// The state and the attempts of a job that was given back. What was sent stays sent, and its attempt
    /// is charged by a verdict.
    pub fn given_back(&self) -> (JobState, u32) {
        match self.dispatch().capabilities().drained {
            true => (JobState::Processing, 1),
            false => (JobState::Pending, 0),
        }
    }

    /// The same store without the detour.
    pub fn straight(&self) -> Self {
        Self {
            rowlock: self.rowlock.clone(),
            detour: None,
        }
    }

    /// Workers that have joined and not left.
    pub async fn workers(&self) -> Vec<WorkerId> {
        match &self.detour {
            Some(detour) => detour.workers(),
            None => {
                let all = self.rowlock.operate().workers().await.unwrap();
                all.into_iter().map(|worker| worker.id).collect()
            }
        }
    }

    /// Who holds what this worker has taken, as the store knows it.
    pub fn holder(&self, worker: &WorkerId) -> String {
        let detour = self.detour.as_ref();
        detour.map_or_else(|| worker.to_string(), |way| way.holder().to_string())
    }

    /// One look for the dead.
    pub async fn expire(&self) -> Expired {
        let mut expired = self.engine().expire().await.unwrap();
        if let Some(detour) = &self.detour {
            let (workers, returned) = detour.bury().await.unwrap();
            expired.workers.extend(workers);
            expired.returned += returned;
        }
        expired
    }

    /// A worker of this store's jobs.
    pub fn worker<S: Send + Sync + 'static>(&self, state: S) -> Worker<S> {
        let clock = self.rowlock.clock().clone();
        match &self.detour {
            Some(_) => Worker::from_dispatcher(self.dispatch(), clock, state),
            None => Worker::new(self.rowlock.clone(), state),
        }
    }

    pub async fn stage(&self, job: NewJob) -> JobId {
        self.rowlock.enqueue(&job).await.unwrap().id.unwrap()
    }

    pub async fn stage_many(&self, kind: &str, n: usize) -> Vec<JobId> {
        let mut ids = Vec::with_capacity(n);
        for part in (0..n).collect::<Vec<_>>().chunks(10_000) {
            let jobs = part.iter().map(|_| job(kind)).collect();
            let answers = self.rowlock.enqueue_many(jobs).await.unwrap();
            ids.extend(answers.into_iter().map(|answer| answer.id.unwrap()));
        }
        ids
    }

    pub async fn join(&self) -> WorkerId {
        let worker = WorkerId::random("test").unwrap();
        self.dispatch().join(&worker, LEASE).await.unwrap();
        worker
    }

    pub async fn beat(
        &self,
        worker: &WorkerId,
        held: &[Token],
    ) -> rowlock::error::Result<rowlock::claim::Heartbeat> {
        self.dispatch().heartbeat(worker, held.to_vec()).await
    }

    pub async fn claim(&self, worker: &WorkerId, kinds: &[&str], limit: usize) -> Vec<ClaimedJob> {
        self.claimed(wanted(worker, kinds, limit)).await.jobs
    }

    pub async fn claim_suspect(&self, worker: &WorkerId, kinds: &[&str]) -> Vec<ClaimedJob> {
        let claim = Claim {
            suspect: true,
            ..wanted(worker, kinds, 1)
        };
        self.claimed(claim).await.jobs
    }

    pub async fn claimed(&self, claim: Claim) -> Claimed {
        self.dispatch().claim(claim).await.unwrap()
    }

    /// The one job that is due.
    pub async fn claim_one(&self, worker: &WorkerId, kinds: &[&str]) -> ClaimedJob {
        let mut jobs = self.claim(worker, kinds, 1).await;
        jobs.pop().expect("a due job")
    }

    pub async fn settle(&self, job: &ClaimedJob, verdict: Verdict) -> Settled {
        let settlement = Settlement {
            id: job.id,
            token: job.token,
            verdict,
            started_at: None,
        };
        self.dispatch().settle(vec![settlement]).await.unwrap()[0]
    }

    /// What a worker does with a handler's outcome.
    pub async fn finish(&self, job: &ClaimedJob, outcome: Outcome) -> Settled {
        let verdict = rowlock::settle::verdict(job, outcome, || self.rowlock.clock().now());
        self.settle(job, verdict).await
    }

    pub async fn job(&self, id: JobId) -> Record {
        let found = self.rowlock.operate().job(id).await.unwrap();
        found.unwrap_or_else(|| panic!("job {id} is missing"))
    }

    pub async fn state(&self, id: JobId) -> JobState {
        self.job(id).await.state
    }

    pub async fn is_gone(&self, id: JobId) -> bool {
        self.rowlock.operate().job(id).await.unwrap().is_none()
    }

    /// Lets `time` pass while this observer samples often and `living` beat.
    pub async fn observe(
        &self,
        world: &World,
        time: Duration,
        living: &[(&Site, &WorkerId, &[Token])],
    ) -> usize {
        let step = LEASE / 6;
        let mut dead = 0;
        let mut passed = Duration::ZERO;
        dead += self.expire().await.workers.len();
        while passed < time {
            world.advance(step);
            passed += step;
            for (site, worker, held) in living {
                site.beat(worker, held).await.unwrap();
            }
            dead += self.expire().await.workers.len();
        }
        dead
    }
}

pub fn wanted(worker: &WorkerId, kinds: &[&str], limit: usize) -> Claim {
    Claim {
        worker: worker.clone(),
        token: Token::random().unwrap(),
        kinds: kinds.iter().map(|kind| name(kind)).collect(),
        queues: Vec::new(),
        order: Default::default(),
        limit,
        caps: BTreeMap::new(),
        suspect: false,
        thorough: false,
        route: None,
    }
}

pub fn error(job: &ClaimedJob, world: &World) -> JobError {
    JobError::new(
        job.attempt,
        world.clock.now(),
        rowlock::job::ErrorKind::Error,
        "boom",
    )
}

pub fn failed() -> Outcome {
    Outcome::Retry {
        error: "boom".to_owned(),
        after: None,
    }
}

pub fn ids(jobs: &[ClaimedJob]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}
