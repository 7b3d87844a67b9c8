//! PostgreSQL's side of the cases.

use std::sync::Mutex;

use jiff::Timestamp;
use rowlock::clock::Clock;
use rowlock::engine::postgres::{Address, Postgres, migrate_up};
use rowlock::{Enqueued, NewJob, Rowlock};
use rowlock_testbed::{Database, Session};
use tokio_postgres::NoTls;
use tokio_postgres::types::ToSql;

use crate::conformance::world::{Client, Field, Home};

/// A database of its own for each case, copied from one that was migrated once.
pub struct Own {
    url: String,
    clock: Mutex<Option<Session>>,
    /// Gone with the case; a visitor of another process has none.
    _database: Option<Database>,
    empty: Mutex<Option<Database>>,
}

fn server() -> &'static rowlock_testbed::Postgres {
    rowlock_testbed::Postgres::shared()
}

/// Whatever runtime the caller is in.
pub fn wait<T: Send>(work: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(work)
        });
        let done = thread.join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl Own {
    pub fn new() -> Self {
        Self::from_template(server(), "rowlock", "")
    }

    /// A copy of a store to which something was done once.
    pub fn from_template(server: &rowlock_testbed::Postgres, name: &str, done: &str) -> Self {
        let template = server.template(name, |url| {
            wait(migrate_up(&Address::parse(url).unwrap())).unwrap();
            Session::open(url).execute(done).unwrap();
        });
        let database = server.database_from(Some(&template));
        Self {
            url: database.url().to_owned(),
            clock: Mutex::default(),
            _database: Some(database),
            empty: Mutex::default(),
        }
    }

    /// A database that another process made, or one that is to be filled.
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            clock: Mutex::default(),
            _database: None,
            empty: Mutex::default(),
        }
    }

    pub fn address(&self) -> Address {
        Address::parse(&self.url).unwrap()
    }

    pub fn session(&self) -> Session {
        Session::open(&self.url)
    }
}

impl Own {
    /// The store's clock tells this.
    fn tells(&self, time: &str) {
        let mut session = self.clock.lock().unwrap();
        let session = session.get_or_insert_with(|| self.session());
        let set = format!(
            "CREATE OR REPLACE FUNCTION rowlock.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
             $$ SELECT {time} $$;
             DELETE FROM rowlock.schema_part WHERE thing = 'function now'"
        );
        session.execute(&set).unwrap();
    }
}

impl Home for Own {
    fn migrate(&self) {
        wait(migrate_up(&self.address())).unwrap();
    }

    fn open(&self, clock: Clock) -> Rowlock {
        let engine = wait(Postgres::open(self.address(), clock.clone())).unwrap();
        let engine = match std::env::var("ROWLOCK_SEGMENT_BYTES") {
            Ok(bytes) => engine.segment_bytes(bytes.parse().unwrap()),
            Err(_) => engine,
        };
        Rowlock::with(engine, clock)
    }

    fn client(&self) -> Box<dyn Client> {
        Box::new(Application::new(&self.url))
    }

    fn url(&self) -> String {
        self.url.clone()
    }

    fn empty_url(&self) -> String {
        let mut empty = self.empty.lock().unwrap();
        let database = empty.get_or_insert_with(|| server().database_from(None));
        database.url().to_owned()
    }

    fn work_done(&self) -> Option<u64> {
        // A session tells what it did when it ends.
        drop(self.clock.lock().unwrap().take());
        let session = self.session();
        rowlock_testbed::until("everybody has left", || {
            let others = "SELECT count(*) FROM pg_stat_activity
                          WHERE datname = current_database() AND pid <> pg_backend_pid()";
            (session.value(others) == "0").then_some(())
        });
        let blocks =
            "SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0))
                      FROM pg_statio_user_tables WHERE schemaname = 'rowlock'";
        Some(session.value(blocks).parse().unwrap())
    }

    fn time_is(&self, now: Timestamp) {
        self.tells(&format!("timestamptz '{now}'"));
    }

    fn time_passes(&self) {
        self.tells("clock_timestamp()");
    }
}

/// An application with a driver of its own.
struct Application {
    client: tokio_postgres::Client,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for Application {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Application {
    fn new(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let connected = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                runtime.block_on(async {
                    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
                    runtime.handle().spawn(connection);
                    client
                })
            });
            thread.join().unwrap()
        });
        Self {
            client: connected,
            runtime: Some(runtime),
        }
    }
}

impl Client for Application {
    fn begin(&mut self) {
        self.execute("BEGIN");
    }

    fn commit(&mut self) {
        self.execute("COMMIT");
    }

    fn rollback(&mut self) {
        self.execute("ROLLBACK");
    }

    fn stage(&mut self, job: &NewJob) -> rowlock::error::Result<Enqueued> {
        wait(rowlock::enqueue(&self.client, job))
    }

    fn stage_by_sql(&mut self, fields: &[(&str, Field)]) -> Result<(), String> {
        let mut arguments = Vec::new();
        let mut values: Vec<Box<dyn ToSql + Sync + Send>> = Vec::new();
        for (column, field) in fields {
            let n = values.len() + 1;
            let argument = match (*column, field) {
                ("payload", _) => format!("payload => ${n}::text::jsonb"),
                ("tags", _) => format!(
                    "tags => (SELECT array_agg(tag) FROM jsonb_array_elements_text(${n}::text::jsonb) AS tag)"
                ),
                ("scheduled_at", Field::Int(_)) => {
                    format!("scheduled_at => to_timestamp(${n}::bigint / 1000.0)")
                }
                ("scheduled_at", _) => format!("scheduled_at => ${n}::text::timestamptz"),
                (_, Field::Int(_)) => format!("{column} => ${n}::int4"),
                (_, Field::Bytes(_)) => format!("{column} => ${n}::bytea"),
                _ => format!("{column} => ${n}::text"),
            };
            arguments.push(argument);
            values.push(match (*column, field) {
                (_, Field::Text(text)) => Box::new(text.clone()),
                (_, Field::Bytes(bytes)) => Box::new(bytes.clone()),
                ("scheduled_at", Field::Int(n)) => Box::new(*n),
                (_, Field::Int(n)) => Box::new(i32::try_from(*n).unwrap()),
            });
        }
        let sql = format!("SELECT * FROM rowlock.enqueue({})", arguments.join(", "));
        let borrowed: Vec<&(dyn ToSql + Sync)> = values
            .iter()
            .map(|value| &**value as &(dyn ToSql + Sync))
            .collect();
        let staged = wait(self.client.query(&sql, &borrowed));
        staged.map(|_| ()).map_err(|why| match why.as_db_error() {
            Some(error) => error.message().to_owned(),
            None => why.to_string(),
        })
    }

    fn execute(&mut self, sql: &str) {
        // Cases speak of our tables as they are called in a file.
        let sql = sql.replace("rowlock_", "rowlock.");
        wait(self.client.batch_execute(&sql)).unwrap_or_else(|why| panic!("{sql}: {why:?}"));
    }

    fn time(&self, at: Timestamp) -> String {
        format!("timestamptz '{at}'")
    }

    fn refuse_end(&mut self, form: &str) {
        self.execute(&format!(
            "CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
             CREATE TRIGGER refused BEFORE INSERT ON rowlock_history FOR EACH ROW
                 WHEN ({form}) EXECUTE FUNCTION refused()"
        ));
    }

    fn accept_every_end(&mut self) {
        // The function takes no lock of the table, which a worker may be writing to.
        self.execute(
            "CREATE OR REPLACE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RETURN NEW; END $$",
        );
    }

    fn sees_json_as_written(&self) -> bool {
        // A jsonb has lost repeated fields before anybody can refuse them.
        false
    }

    fn can_write(&mut self) -> bool {
        // Nobody's lock stops everybody here.
        true
    }

    fn integrity(&mut self) -> String {
        let sql = "SELECT count(*) FROM rowlock.job WHERE token IS NULL AND worker IS NOT NULL";
        let rows = wait(self.client.query(sql, &[])).unwrap();
        match rows[0].get::<_, i64>(0) {
            0 => "ok".to_owned(),
            n => format!("{n} pending jobs have a worker"),
        }
    }
}
