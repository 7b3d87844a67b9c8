//! Behind PgBouncer in transaction mode: between two transactions a session is somebody else's.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use rowlock::Rowlock;
use rowlock::clock::Clock;
use rowlock::engine::postgres::{Address, Postgres as Store};
use rowlock::engine::{Dispatch, Engine};
use rowlock_testbed::{PgBouncer, Postgres, Session};

use super::home::Own;
use super::stand::{Stand, dismiss};
use crate::conformance::world::{Client, Home};

/// One for all cases of this process.
fn shared() -> &'static PgBouncer {
    static SHARED: OnceLock<PgBouncer> = OnceLock::new();
    SHARED.get_or_init(|| PgBouncer::start(Postgres::shared()))
}

/// The same database, reached through the pooler; the application has its own way.
pub struct Pooled {
    own: Own,
    through: Own,
}

impl Pooled {
    pub fn new() -> Self {
        let own = Own::new();
        let url = own.url();
        let through = Own::at(&shared().url(url.rsplit_once('/').unwrap().1));
        Self { own, through }
    }
}

impl Home for Pooled {
    fn migrate(&self) {
        self.through.migrate();
    }

    fn open(&self, clock: Clock) -> Rowlock {
        self.through.open(clock)
    }

    fn client(&self) -> Box<dyn Client> {
        self.own.client()
    }

    fn url(&self) -> String {
        self.through.url()
    }

    fn empty_url(&self) -> String {
        self.own.empty_url()
    }

    fn poll(&self) -> Duration {
        // Nobody is woken here.
        Duration::from_millis(200)
    }

    fn time_is(&self, now: Timestamp) {
        self.own.time_is(now);
    }

    fn time_passes(&self) {
        self.own.time_passes();
    }
}

/// What a session knows that it didn't know at its beginning.
fn left_behind(session: &Session) -> Vec<String> {
    let query = "SELECT 'statement ' || name FROM pg_prepared_statements
         UNION ALL SELECT 'channel ' || channel FROM pg_listening_channels() AS channel
         UNION ALL SELECT 'lock ' || objid FROM pg_locks
                   WHERE locktype = 'advisory' AND pid = pg_backend_pid()
         UNION ALL SELECT 'cursor ' || name FROM pg_cursors WHERE name <> ''
         UNION ALL SELECT 'table ' || relname FROM pg_class
                   WHERE relpersistence = 't' AND relnamespace = pg_my_temp_schema()
         UNION ALL SELECT 'setting ' || name || '=' || setting FROM pg_settings
                   WHERE setting IS DISTINCT FROM reset_val AND source = 'session'
                     AND name NOT IN ('application_name', 'client_encoding', 'DateStyle', 'TimeZone',
                                      'standard_conforming_strings')";
    let rows = session.query(query).unwrap();
    rows.into_iter().flatten().flatten().collect()
}

pub fn nothing_of_a_session_is_left_behind() {
    // Whoever asks gets the one session that everybody has used.
    let pooler = PgBouncer::start_with(Postgres::shared(), 1);
    let stand = Stand::new();
    let url = pooler.url(&stand.name);
    let session = Session::open(&url);
    session.execute("PREPARE witness AS SELECT 1").unwrap();
    session.execute("SET enable_seqscan = off").unwrap();
    assert_eq!(
        left_behind(&Session::open(&url)),
        ["statement witness", "setting enable_seqscan=off"],
        "it would be seen"
    );
    session.execute("DISCARD ALL").unwrap();
    assert_eq!(left_behind(&session), [""; 0]);
    // Everything that a worker does, and its try to be woken.
    let worker = stand.worker(&url, 1_000, "quick,stumbles");
    let site = stand.through(&url);
    stand.ask(site.stage_many("quick", 300));
    stand.ask(site.stage_many("stumbles", 20));
    stand.until(|counts| counts.completed == 320);
    let address = Address::parse(&url).unwrap();
    let store = stand.ask(Store::open(address, Clock::system())).unwrap();
    let _wakeups = store.wakeups();
    stand.eventually("it knows whether it hears", async || store.listening());
    assert_eq!(store.listening(), Some(false));
    stand.ask(store.upkeep()).unwrap();
    dismiss(worker);
    assert_eq!(left_behind(&session), [""; 0]);
}

pub fn a_worker_finds_work_without_being_woken() {
    let home = Arc::new(Pooled::new());
    let stand = Stand::new();
    let mut worker = stand.worker(&home.url(), 30_000, "mail");
    let session = home.own.session();
    for _ in 0..3 {
        session.execute("SELECT rowlock.enqueue('mail')").unwrap();
        worker.line_with("began mail");
    }
    dismiss(worker);
}
