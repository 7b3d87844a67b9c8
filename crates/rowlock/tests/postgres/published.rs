//! A publication of every table, as tools for change data capture and upgrades by replication make one.

use std::sync::Arc;
use std::time::Duration;

use rowlock::Rowlock;
use rowlock::clock::Clock;
use rowlock::settle::Verdict;
use rowlock::switch::{Mode, Setting, Target};
use rowlock_testbed::{Postgres, Session, until};

use super::home::{Own, wait};
use super::small::{Small, drain_all};
use crate::conformance::world::{Client, Home, LEASE, job, name};

const PUBLISHED: &str = "CREATE PUBLICATION everything FOR ALL TABLES";

/// A store whose tables are all published.
pub struct Published(Own);

impl Published {
    pub fn new() -> Self {
        Self(Own::from_template("published", PUBLISHED))
    }
}

impl Home for Published {
    fn migrate(&self) {
        self.0.migrate();
    }

    fn open(&self, clock: Clock) -> Rowlock {
        self.0.open(clock)
    }

    fn client(&self) -> Box<dyn Client> {
        self.0.client()
    }

    fn url(&self) -> String {
        self.0.url()
    }

    fn empty_url(&self) -> String {
        self.0.empty_url()
    }

    fn time_is(&self, now: jiff::Timestamp) {
        self.0.time_is(now);
    }

    fn time_passes(&self) {
        self.0.time_passes();
    }
}

/// Every table of ours that may hold rows.
const TABLES: &str = "SELECT oid::regclass FROM pg_class
    WHERE relnamespace = 'rowlock'::regnamespace AND relkind = 'r' AND relname <> 'migration' ORDER BY relname";

fn rows_of(session: &Session, table: &str) -> String {
    session.value(&format!(
        "SELECT coalesce(string_agg(row::text, E'\\n' ORDER BY row::text), '') FROM ONLY {table} AS row"
    ))
}

pub fn a_subscriber_of_every_table_has_the_same_rows() {
    // A slot belongs to all of a server.
    let server = Postgres::start_own();
    let (here, there) = (server.database_from(None), server.database_from(None));
    let (own, copy) = (Own::at(here.url()), Own::at(there.url()));
    own.migrate();
    copy.migrate();
    let small = Small {
        side: own.session(),
        own: Arc::new(own),
    };
    small.side.execute(PUBLISHED).unwrap();
    // Within one server a subscription can't make its slot itself.
    let slot = "SELECT pg_create_logical_replication_slot('copy', 'pgoutput')";
    small.side.query(slot).unwrap();
    let subscriber = copy.session();
    // Both have the same rows so far, but for when they were migrated.
    let subscribe = format!(
        "CREATE SUBSCRIPTION copy CONNECTION '{}' PUBLICATION everything
         WITH (create_slot = false, slot_name = 'copy', copy_data = false)",
        here.url()
    );
    subscriber.execute(&subscribe).unwrap();
    wait(a_life(&small));
    let sent = small.side.value("SELECT pg_current_wal_lsn()");
    until("the subscriber has everything", || {
        let sent = format!(
            "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'copy' AND confirmed_flush_lsn >= '{sent}'"
        );
        (small.number(&sent) == 1).then_some(())
    });
    for table in small.side.query(TABLES).unwrap().into_iter().flatten() {
        let table = table.unwrap();
        assert_eq!(
            rows_of(&subscriber, &table),
            rows_of(&small.side, &table),
            "{table}"
        );
    }
    subscriber
        .execute("ALTER SUBSCRIPTION copy DISABLE")
        .unwrap();
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
