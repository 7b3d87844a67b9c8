//! The application's own database: a table of its own beside our schema.

use std::time::Duration;

use rowlock::claim::{Claim, ClaimedJob, WorkerId};
use rowlock::engine::postgres::{Address, Postgres, migrate_up};
use rowlock::job::Token;
use rowlock::{Clock, JobId, Name, Record, Rowlock};
use rowlock_testbed::{Database, Session};

pub struct Store {
    database: Database,
    pub session: Session,
}

impl Store {
    /// With our tables.
    pub fn new() -> Self {
        let server = rowlock_testbed::Postgres::shared();
        let template = server.template("adapters", |url| {
            migrate(&Address::parse(url).unwrap());
            Session::open(url).execute(NOTES).unwrap();
        });
        Self::of(server.database_from(Some(&template)))
    }

    /// Without them.
    pub fn bare() -> Self {
        let store = Self::of(rowlock_testbed::Postgres::shared().database_from(None));
        store.execute(NOTES);
        store
    }

    fn of(database: Database) -> Self {
        let session = database.session();
        Self { database, session }
    }

    pub fn url(&self) -> &str {
        self.database.url()
    }

    pub fn address(&self) -> Address {
        Address::parse(self.url()).unwrap()
    }

    pub async fn open(&self) -> Rowlock {
        let engine = Postgres::open(self.address(), Clock::system());
        Rowlock::with(engine.await.unwrap(), Clock::system())
    }

    pub fn execute(&self, sql: &str) {
        self.session.execute(sql).unwrap();
    }

    /// How many notes and how many jobs the others see.
    pub fn seen(&self) -> (String, String) {
        let count = |table| self.session.value(&format!("SELECT count(*) FROM {table}"));
        (count("notes"), count("rowlock.jobs"))
    }

    /// The state that the others see.
    pub fn state(&self, id: JobId) -> String {
        let state = format!("SELECT state FROM rowlock.jobs WHERE id = {id}");
        self.session.value(&state)
    }

    /// Takes every running job out of the ring, as a worker does with one that runs for long.
    pub fn set_aside(&self) {
        let moved = self.session.value(
            "SELECT count(*) FROM rowlock.set_aside(
                 ARRAY(SELECT id FROM rowlock.job WHERE token IS NOT NULL ORDER BY id),
                 ARRAY(SELECT token FROM rowlock.job WHERE token IS NOT NULL ORDER BY id))",
        );
        assert_eq!(moved, "1");
    }

    pub async fn job(&self, id: JobId) -> Record {
        let found = self.open().await.operate().job(id).await;
        found.unwrap().unwrap()
    }

    /// Claims what is due.
    pub async fn claim(&self, kind: &str) -> Vec<ClaimedJob> {
        let engine = self.open().await.engine();
        let worker = WorkerId::random("other").unwrap();
        engine.join(&worker, Duration::from_secs(30)).await.unwrap();
        let claim = Claim {
            worker,
            token: Token::random().unwrap(),
            kinds: vec![Name::new(kind).unwrap()],
            queues: Vec::new(),
            order: rowlock::claim::QueueOrder::default(),
            limit: 10,
            caps: std::collections::BTreeMap::new(),
            suspect: false,
            thorough: false,
            route: None,
        };
        engine.claim(claim).await.unwrap().jobs
    }
}

const NOTES: &str = "CREATE TABLE notes (text text)";

/// The effect of every case.
pub const NOTE: &str = "INSERT INTO notes VALUES ('noted')";

/// On a thread of its own: whoever asks may be inside a runtime.
pub fn migrate(address: &Address) {
    std::thread::scope(|scope| {
        let migrated = scope.spawn(|| crate::runtime().block_on(migrate_up(address)));
        migrated.join().unwrap().unwrap();
    });
}
