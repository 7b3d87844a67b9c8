//! A database host. Users ask for databases, a worker creates them and backs them up, and in the
//! middle of it the whole queue is thrown away. Nothing is lost, because the truth is in the rows:
//! `cargo run -p rowlock-adapters --example databases sqlite:app.db` (or `postgres://localhost/app`)
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

mod postgres;
mod sqlite;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rowlock::engine::Filter;
use rowlock::job::Backoff;
use rowlock::reconcile::States;
use rowlock::run::Stopper;
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{Cx, Done, Job, JobState, Name, Pair, Rowlock, Worker};
use serde::{Deserialize, Serialize};

/// Somebody has asked for a database: its row is `pending` until it is there.
#[derive(Serialize, Deserialize)]
struct CreateDatabase {
    id: i64,
}

impl Job for CreateDatabase {
    const KIND: &'static str = "create_database";
    const KEY: &'static [&'static str] = &["id"]; // one live job per id

    fn backoff() -> Backoff {
        soon()
    }
}

async fn create(job: CreateDatabase, cx: Cx<App>) -> rowlock::Result {
    cx.cloud.create(job.id); // may be called twice: the second time it is there already
    cx.db.mark_ready(job.id).await?; // an error means: try again later
    Ok(Done)
}

/// A database's policy is due. Nobody enqueues this: only ticks do.
#[derive(Serialize, Deserialize)]
struct Backup {
    database_id: i64,
}

impl Job for Backup {
    const KIND: &'static str = "backup";
    const KEY: &'static [&'static str] = &["database_id"];

    fn backoff() -> Backoff {
        soon()
    }
}

async fn back_up(job: Backup, cx: Cx<App>) -> rowlock::Result {
    cx.cloud.back_up(job.database_id);
    cx.db.move_on(job.database_id).await?; // the row isn't due any more
    Ok(Done)
}

/// This program is over in seconds: a second try can't wait for half a minute.
fn soon() -> Backoff {
    Backoff::Fixed {
        base: Duration::from_millis(200),
        jitter: 0.1,
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(200); // yours would be rowlock::MINUTE

/// Each pair is a kind and the rows that need it.
pub fn pairs(due_policies: &str) -> [Pair; 2] {
    let states = States {
        table: "databases".to_owned(),
        column: "state".to_owned(),
        pending: vec!["pending".to_owned()],
        terminal: vec!["ready".to_owned()],
        other: Vec::new(),
    };
    let pending = "SELECT id FROM databases WHERE state = 'pending'";
    [
        Pair::of::<CreateDatabase>(pending)
            .every(LOOK_EVERY)
            .states(states),
        Pair::of::<Backup>(due_policies)
            .every(LOOK_EVERY)
            .scheduler_only(),
    ]
}

#[tokio::main]
async fn main() -> Result<ExitCode, Error> {
    let mut arguments = std::env::args().skip(1);
    let Some(url) = arguments.next() else {
        eprintln!("usage: databases sqlite:app.db|postgres://... [how many]");
        return Ok(ExitCode::from(2));
    };
    let many = arguments.next().map_or(Ok(300), |many| many.parse())?;
    host(&url, many).await
}

/// Opens for business, lives through a bad day, and says what became of it.
pub async fn host(url: &str, many: usize) -> Result<ExitCode, Error> {
    let db = Db::open(url).await?; // your tables, and Rowlock's beside them
    let rowlock = Rowlock::connect(url).await?;
    let cloud = Arc::new(Cloud::default());
    let app = App {
        cloud: Arc::clone(&cloud),
        db: db.clone(),
    };
    let [creations, backups] = pairs(db.due_policies());
    let stopper = Stopper::default();
    let worker = Worker::new(rowlock.clone(), app)
        .handle(create)
        .handle(back_up)
        .pair(creations)
        .pair(backups)
        .run_until(stopper.stop());
    let day = async {
        let told = bad_day(&db, &rowlock, &cloud, many).await;
        stopper.ask();
        told
    };
    let work = async { worker.await.map_err(Error::from) };
    let (_, all_well) = tokio::try_join!(work, day)?;
    Ok(match all_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Every so many requests the enqueue is forgotten: a bug, or a program of another team.
const FORGETFUL: usize = 50;

async fn bad_day(db: &Db, rowlock: &Rowlock, cloud: &Cloud, many: usize) -> Result<bool, Error> {
    let found_before = found_by_ticks(rowlock).await?;
    let mut asked = ask_for(db, 1..=many / 2).await?;

    // Work stops for a while, and users go on asking.
    let queue = Name::new("default")?;
    let reason = "the cloud is in trouble".to_owned();
    let pause = Setting {
        reason: Some(reason),
        ..Setting::new(Mode::Pause)
    };
    let schedule = rowlock.schedule();
    schedule.switch(Target::Queue, &queue, Some(pause)).await?;
    asked.extend(ask_for(db, many / 2 + 1..=many).await?);

    let thrown_away = throw_away(rowlock).await?;
    schedule.switch(Target::Queue, &queue, None).await?;
    let forgotten = (many / FORGETFUL) as u64;
    println!("created      {many} rows, {forgotten} of them without a job");
    println!("thrown away  {} jobs, the whole queue", thrown_away.0);

    let missed = forgotten + thrown_away.1;
    let over = async {
        loop {
            let (databases, ready, backed_up) = db.count().await?;
            let found = found_by_ticks(rowlock).await? - found_before;
            if ready == databases && backed_up == databases && found >= missed {
                return Ok::<_, Error>(found);
            }
            rowlock.clock().sleep(LOOK_EVERY / 2).await;
        }
    };
    // However long it takes: this only keeps the program from waiting for ever.
    let over = rowlock.clock().timeout(2 * rowlock::MINUTE, over).await;
    let (databases, ready, backed_up) = db.count().await?;
    let not_there = asked.iter().filter(|id| !cloud.has(**id)).count();
    let Some(found) = over.transpose()?.filter(|_| not_there == 0) else {
        println!(
            "missing      {} of {databases} not ready, {} not backed up, {not_there} not in the cloud",
            databases - ready,
            databases - backed_up
        );
        return Ok(false);
    };
    println!("found        {found} rows by ticks alone");
    println!("ready        {ready} of {databases}, all of them backed up: nothing is lost");
    Ok(true)
}

/// Users' requests; answers with the new ids.
async fn ask_for(db: &Db, requests: RangeInclusive<usize>) -> Result<Vec<i64>, Error> {
    let mut ids = Vec::new();
    for request in requests {
        let enqueue = request % FORGETFUL != 0;
        ids.push(db.request(&format!("db-{request}"), enqueue).await?);
    }
    Ok(ids)
}

/// How many rows only ticks have found so far.
async fn found_by_ticks(rowlock: &Rowlock) -> Result<u64, Error> {
    let rows = rowlock.schedule().pairs().await?;
    Ok(rows.iter().map(|row| row.lost_enqueues).sum())
}

/// Deletes every job that waits; says how many, and how many of them were to create a database.
async fn throw_away(rowlock: &Rowlock) -> Result<(u64, u64), Error> {
    let mut thrown_away = (0, 0);
    let mut next = Filter {
        state: Some(JobState::Pending),
        limit: 1_000,
        ..Filter::default()
    };
    loop {
        let jobs = rowlock.operate().jobs(next.clone()).await?;
        let Some(last) = jobs.last() else {
            return Ok(thrown_away);
        };
        next.after = Some(last.id);
        let ids = jobs.iter().map(|job| job.id).collect();
        let deleted = rowlock.engine().delete(ids).await?;
        for (job, _) in jobs.iter().zip(deleted).filter(|(_, gone)| gone.is_ok()) {
            thrown_away.0 += 1;
            thrown_away.1 += u64::from(job.kind.as_str() == CreateDatabase::KIND);
        }
    }
}

struct App {
    cloud: Arc<Cloud>,
    db: Db,
}

/// A cloud that this program pretends to have.
#[derive(Default)]
struct Cloud {
    databases: Mutex<BTreeSet<i64>>,
    backups: Mutex<BTreeSet<i64>>,
}

impl Cloud {
    fn create(&self, id: i64) {
        lock(&self.databases).insert(id);
    }

    fn back_up(&self, id: i64) {
        lock(&self.backups).insert(id);
    }

    fn has(&self, id: i64) -> bool {
        lock(&self.databases).contains(&id) && lock(&self.backups).contains(&id)
    }
}

fn lock(set: &Mutex<BTreeSet<i64>>) -> std::sync::MutexGuard<'_, BTreeSet<i64>> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Your own tables, in either engine.
#[derive(Clone)]
enum Db {
    Sqlite(sqlx::SqlitePool),
    Postgres(sqlx::PgPool),
}

/// The same words for both pools, each with its own types.
macro_rules! on {
    ($db:expr, $pool:ident => $act:expr) => {
        match $db {
            Db::Sqlite($pool) => $act,
            Db::Postgres($pool) => $act,
        }
    };
}

impl Db {
    async fn open(url: &str) -> Result<Self, Error> {
        Ok(match url.starts_with("sqlite:") {
            true => Self::Sqlite(sqlite::open(url).await?),
            false => Self::Postgres(postgres::open(url).await?),
        })
    }

    /// A user's request: the row and its job are one commit, or neither.
    async fn request(&self, name: &str, enqueue: bool) -> Result<i64, Error> {
        on!(self, pool => {
            let mut tx = pool.begin().await?;
            let row = "INSERT INTO databases (name, state) VALUES ($1, 'pending') RETURNING id";
            let id = sqlx::query_scalar(row).bind(name).fetch_one(&mut *tx).await?;
            if enqueue {
                rowlock::enqueue(&mut tx, &CreateDatabase { id }).await?;
            }
            tx.commit().await?;
            Ok(id)
        })
    }

    /// Says that it is there, and from when on it is backed up.
    async fn mark_ready(&self, id: i64) -> sqlx::Result<()> {
        let ready = "UPDATE databases SET state = 'ready' WHERE id = $1";
        let policy = "INSERT INTO backup_policies (database_id, every_seconds) VALUES ($1, 86400)
                      ON CONFLICT (database_id) DO NOTHING";
        on!(self, pool => {
            let mut tx = pool.begin().await?;
            sqlx::query(ready).bind(id).execute(&mut *tx).await?;
            sqlx::query(policy).bind(id).execute(&mut *tx).await?;
            tx.commit().await
        })
    }

    fn due_policies(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => sqlite::DUE_POLICIES,
            Self::Postgres(_) => postgres::DUE_POLICIES,
        }
    }

    /// The next backup of a database is due when its policy says.
    async fn move_on(&self, id: i64) -> sqlx::Result<()> {
        match self {
            Self::Sqlite(pool) => sqlite::move_on(pool, id).await,
            Self::Postgres(pool) => postgres::move_on(pool, id).await,
        }
    }

    /// How many databases there are, how many are ready, how many have been backed up.
    async fn count(&self) -> sqlx::Result<(i64, i64, i64)> {
        let count = "SELECT count(*), count(nullif(state, 'pending')), count(last_run_at)
                     FROM databases LEFT JOIN backup_policies ON database_id = id";
        on!(self, pool => sqlx::query_as(count).fetch_one(pool).await)
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;
