//! A publication of every table, as tools for change data capture and upgrades by replication make one.

use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use rowlock::Rowlock;
use rowlock::clock::Clock;
use rowlock::settle::Verdict;
use rowlock::switch::{Mode, Setting, Target};
use rowlock_testbed::{Postgres, Session, until};

use super::home::{Own, wait};
use super::small::{Small, drain_all};
use crate::conformance::world::{Client, Home, LEASE, job, name};

/// What was written before a row of `mark` has arrived with it.
const PUBLISHED: &str =
    "CREATE TABLE mark (n integer PRIMARY KEY); CREATE PUBLICATION everything FOR ALL TABLES";

/// Definitions aren't sent. These are tables that cases make: the subscriber wants to know them, and copies nothing
/// into them.
const THEIR_TABLES: &str = "CREATE TABLE users (name text);
    CREATE TABLE databases (id bigint PRIMARY KEY, name text, state text)";

/// A server of its own: a slot pins the horizon of all its databases.
fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = Postgres::start_own();
        // A server up to 15 starts one subscription's worker within this time, however many there are.
        server.set("wal_retrieve_retry_interval = '20ms'");
        server
    })
}

/// How many subscriptions such a server serves at once (`max_logical_replication_workers`).
const MOST: usize = 4;
static SERVED: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

struct Place;

impl Place {
    fn take() -> Self {
        let served = SERVED.lock().unwrap();
        let mut served = FREED.wait_while(served, |served| *served == MOST).unwrap();
        *served += 1;
        Self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *SERVED.lock().unwrap() -= 1;
        FREED.notify_one();
    }
}

/// A store whose tables are all published, and a subscriber that follows it.
pub struct Published {
    own: Arc<Own>,
    copy: Own,
    _place: Place,
}

impl Published {
    pub fn new() -> Self {
        let place = Place::take();
        // Both have the same rows so far.
        let store = || Own::from_template(server(), "published", PUBLISHED);
        let published = Self {
            own: Arc::new(store()),
            copy: store(),
            _place: place,
        };
        let copy = published.copy.session();
        copy.execute(THEIR_TABLES).unwrap();
        // Within one server a subscription can't make its slot itself.
        let (url, slot) = (published.own.url(), published.slot());
        let make = format!("SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')");
        published.own.session().query(&make).unwrap();
        let subscribe = format!(
            "CREATE SUBSCRIPTION {slot} CONNECTION '{url}' PUBLICATION everything
             WITH (create_slot = false, slot_name = '{slot}', copy_data = false)"
        );
        copy.execute(&subscribe).unwrap();
        published
    }

    /// Its name, which is the subscription's too: that of the database.
    fn slot(&self) -> String {
        let url = self.own.url();
        url.rsplit_once('/').unwrap().1.to_owned()
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        // Its slot goes with it; without that no database does.
        if let Ok(copy) = Session::try_open(&self.copy.url()) {
            let _ = copy.execute(&format!("DROP SUBSCRIPTION {}", self.slot()));
        }
    }
}

impl Home for Published {
    fn migrate(&self) {
        self.own.migrate();
    }

    fn open(&self, clock: Clock) -> Rowlock {
        self.own.open(clock)
    }

    fn client(&self) -> Box<dyn Client> {
        self.own.client()
    }

    fn url(&self) -> String {
        self.own.url()
    }

    fn empty_url(&self) -> String {
        self.own.empty_url()
    }

    fn time_is(&self, now: jiff::Timestamp) {
        self.own.time_is(now);
    }

    fn time_passes(&self) {
        self.own.time_passes();
    }

    /// The subscriber has got through everything, and has the same rows.
    fn ended(&self) {
        let (here, there) = (self.own.session(), self.copy.session());
        here.execute("INSERT INTO mark VALUES (1)").unwrap();
        until("the subscriber has everything", || {
            (there.value("SELECT count(*) FROM mark") == "1").then_some(())
        });
        for table in here.query(TABLES).unwrap().into_iter().flatten() {
            let table = table.unwrap();
            assert_eq!(rows_of(&there, &table), rows_of(&here, &table), "{table}");
        }
    }
}

/// Every table of ours that may hold rows.
const TABLES: &str = "SELECT oid::regclass FROM pg_class
    WHERE relnamespace = 'rowlock'::regnamespace AND relkind = 'r' ORDER BY relname";

fn rows_of(session: &Session, table: &str) -> String {
    session.value(&format!(
        "SELECT coalesce(string_agg(row::text, E'\\n' ORDER BY row::text), '') FROM ONLY {table} AS row"
    ))
}

pub fn a_subscriber_of_every_table_has_the_same_rows() {
    let published = Published::new();
    let small = Small {
        side: published.own.session(),
        own: Arc::clone(&published.own),
    };
    wait(a_life(&small));
    published.ended();
}

/// Everything that changes or removes a row, and empties a table.
async fn a_life(small: &Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let kinds = [rowlock::Kind::new("mail").unwrap()];
    let (operate, schedule) = (site.rowlock.operate(), site.rowlock.schedule());
    operate.apply(&kinds).await.unwrap();
    let worker = site.join().await;
    for mode in [Mode::Reject, Mode::Hold, Mode::Pause] {
        let setting = Some(Setting::new(mode));
        let queue = name("default");
        schedule
            .switch(Target::Queue, &queue, setting)
            .await
            .unwrap();
        site.rowlock.enqueue(&job("mail")).await.unwrap();
        schedule.switch(Target::Queue, &queue, None).await.unwrap();
    }
    drain_all(&site, &worker, &["mail"], 2).await;
    for _ in 0..3 {
        small.turn(&site, &worker, "mail").await;
    }
    site.stage(job("mail").unique("one").unwrap()).await;
    let taken = site.claim(&worker, &["mail"], 1).await;
    site.settle(&taken[0], Verdict::Done).await;
    site.stage(job("mail").delay(LEASE * 10)).await;
    let many = "INSERT INTO rowlock.tally SELECT '2200-01-01', 'mail', 'failed', 0 FROM generate_series(1, 1001);
                INSERT INTO rowlock.switched SELECT 'kind', 'mail', 1 FROM generate_series(1, 1001);
                INSERT INTO rowlock.lane SELECT 'gone', 'gone' || n, 0 FROM generate_series(1, 1001) AS n;
                SELECT rowlock.tidy()";
    small.side.execute(many).unwrap();
    for table in ["tally", "switched", "lane"] {
        let left = small.number(&format!("SELECT count(*) FROM rowlock.{table}"));
        assert!(left < 1_000, "{left} in {table}");
    }
    // Days later what has ended goes.
    let other = small.open(&world.clock).join().await;
    let dead = site
        .observe(&world, LEASE * 2, &[(&site, &worker, &[])])
        .await;
    assert_eq!(dead, 1, "{other}");
    world.advance(Duration::from_secs(3 * 86_400));
    until("what has ended is pruned", || {
        let pruned = small.number("SELECT rowlock.prune()");
        let left = "SELECT count(*) FROM rowlock.history WHERE expires_on < (rowlock.now() AT TIME ZONE 'UTC')::date";
        (pruned == 0 && small.number(left) == 0).then_some(())
    });
    site.engine().leave(&worker).await.unwrap();
}
