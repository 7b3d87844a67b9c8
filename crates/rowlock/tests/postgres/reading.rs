//! A pair's query can only read, on every path that runs one, and nothing of it stays in the session.

use std::sync::Arc;
use std::time::Duration;

use rowlock::engine::postgres::source;
use rowlock::engine::{From, Source};
use rowlock::error::{Error, Result};
use rowlock_testbed::{PgBouncer, Postgres, until};

use super::home::Own;
use super::pairs::{Desk, QUERY, TABLE};
use super::small::Small;
use crate::conformance::world::Home;

/// Functions of the application's that do more than read; `early` is run already when a statement is planned.
const FUNCTIONS: &str = "
    CREATE TABLE victim AS SELECT n FROM generate_series(1, 5) AS n;
    CREATE SEQUENCE counter;
    SELECT setval('counter', 5);
    CREATE FUNCTION deletes() RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN DELETE FROM victim; RETURN 0; END $$;
    CREATE FUNCTION early() RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN deletes(); END $$;
    CREATE FUNCTION counts_on() RETURNS bigint LANGUAGE sql AS $$ SELECT setval('counter', 77) $$;
    CREATE FUNCTION locks_rows() RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN PERFORM 1 FROM victim FOR UPDATE; RETURN 0; END $$;
    CREATE FUNCTION asks_to_write() RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN SET LOCAL transaction_read_only = off; RETURN deletes(); END $$;
    CREATE FUNCTION resets() RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN RESET transaction_read_only; RETURN deletes(); END $$;
    CREATE FUNCTION makes_a_table() RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN CREATE TEMP TABLE kept (n int); RETURN 0; END $$;
    CREATE FUNCTION stays() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
        IF NOT EXISTS (SELECT 1 FROM pg_prepared_statements WHERE name = 'kept') THEN
            EXECUTE 'PREPARE kept AS SELECT 1';
        END IF;
        PERFORM pg_advisory_lock(7);
        SET work_mem = '77MB';
        LISTEN kept;
        PERFORM pg_notify('kept', '');
        RETURN 0;
    END $$;
    CREATE FUNCTION stays_and_fails() RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN PERFORM stays(); RETURN 1 / 0; END $$;
    CREATE FUNCTION stays_and_waits() RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN PERFORM stays(), pg_sleep(600); RETURN 0; END $$;
    CREATE FUNCTION is_clean() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT 1 FROM pg_prepared_statements WHERE name = 'kept')
            OR EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())
            OR EXISTS (SELECT 1 FROM pg_listening_channels())
            OR current_setting('work_mem') = '77MB' THEN
            RAISE 'something of the query before stays in the session';
        END IF;
        RETURN 0;
    END $$";

/// Where a query is run: by workers, and by the verbs that look at a pair, try a tick or drill.
const PATHS: &[&str] = &[
    "tick",
    "last batch of a tick",
    "dry tick",
    "rows of a source",
    "question before or after a run",
    "columns",
    "plans",
];

/// Whether it looks at rows: otherwise only what is run when a statement is planned is run at all.
fn reads_rows(path: &str) -> bool {
    !["columns", "plans"].contains(&path)
}

struct Hostile {
    desk: Desk,
    tables: Arc<dyn Source>,
}

impl Hostile {
    async fn new(small: Small) -> Self {
        small.side.execute(FUNCTIONS).unwrap();
        let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
        let tables = desk.tables();
        Self { desk, tables }
    }

    async fn run(&self, path: &str, calling: &str, timeout: Duration) -> Result<()> {
        let query = format!("{QUERY} AND {calling}() >= 0");
        let mut pair = self.desk.pair.clone();
        pair.query = query;
        pair.timeout = timeout;
        let tick = async |cursor: Option<&str>, dry: bool| {
            let cursor = cursor.map(str::to_owned);
            let mut batch = self.desk.batch(From::Here { cursor, limit: 5 });
            batch.pair.clone_from(&pair);
            batch.dry = dry;
            self.desk.lead().tick(batch).await.map(drop)
        };
        match path {
            "tick" => tick(None, false).await,
            "last batch of a tick" => tick(Some("[18]"), false).await,
            "dry tick" => tick(None, true).await,
            "rows of a source" => self.tables.derive(&pair, 0, None, 5).await.map(drop),
            "columns" => self.tables.columns(&pair).await.map(drop),
            "plans" => self.tables.examine(&pair).await.map(drop),
            _ => {
                let keys = ["[1]".to_owned(), "[2]".to_owned()];
                self.tables.ask(&pair, &keys).await.map(drop)
            }
        }
    }

    /// Nothing was written, and no lock of the query's is held by any session.
    fn untouched(&self, after: &str) {
        let side = &self.desk.small.side;
        assert_eq!(side.value("SELECT count(*) FROM victim"), "5", "{after}");
        assert_eq!(side.value("SELECT last_value FROM counter"), "5", "{after}");
        assert_eq!(self.locks(), "0", "{after}");
    }

    fn locks(&self) -> String {
        self.desk.small.side.value(
            "SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
             WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.objid = 7",
        )
    }

    async fn every_write_is_refused(&self) {
        for path in PATHS {
            for calling in [
                "deletes",
                "early",
                "counts_on",
                "locks_rows",
                "asks_to_write",
                "makes_a_table",
                "resets",
            ] {
                let runs = reads_rows(path) || calling == "early";
                let ran = self.run(path, calling, LONG).await;
                let after = format!("{path}, {calling}: {ran:?}");
                match ran {
                    Err(Error::Invalid(why)) if calling == "resets" => {
                        assert!(why.contains("read"), "{after}");
                    }
                    Err(Error::Invalid(why)) => assert!(why.contains("may only read"), "{after}"),
                    ran => assert!(ran.is_ok() && !runs, "{after}"),
                }
                self.untouched(&after);
            }
        }
    }

    async fn nothing_stays(&self) {
        for path in PATHS {
            let ran = self.run(path, "stays", LONG).await;
            assert!(ran.is_ok(), "{path}: {ran:?}");
            self.untouched(path);
            let ran = self.run(path, "stays_and_fails", LONG).await;
            assert_eq!(ran.is_err(), reads_rows(path), "{path}: {ran:?}");
            self.untouched(path);
            for path in PATHS {
                let clean = self.run(path, "is_clean", LONG).await;
                assert!(clean.is_ok(), "{path}: {clean:?}");
            }
        }
    }

    async fn nothing_stays_of_what_was_stopped(&self) {
        for path in PATHS.iter().filter(|path| reads_rows(path)) {
            let stopped = self.run(path, "stays_and_waits", SHORT).await;
            assert!(stopped.is_err(), "{path}: {stopped:?}");
            let what = format!("nothing is locked after {path}");
            until(&what, || (self.locks() == "0").then_some(()));
        }
    }
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(200);

pub async fn a_query_can_not_write(small: Small) {
    let hostile = Hostile::new(small).await;
    hostile.every_write_is_refused().await;
    // What was so a moment ago is asked in another way: all rows have their jobs.
    hostile.desk.tick(None, 20).await;
    hostile.desk.tick(None, 20).await;
    let again = hostile.run("tick", "deletes", LONG).await;
    assert!(matches!(again, Err(Error::Invalid(_))), "{again:?}");
    hostile.untouched("a tick that expects nothing new");
}

pub async fn nothing_of_a_query_stays_in_the_session(small: Small) {
    let hostile = Hostile::new(small).await;
    hostile.nothing_stays().await;
    hostile.nothing_stays_of_what_was_stopped().await;
}

pub async fn a_query_on_another_database_can_not_write(small: Small) {
    let mut hostile = Hostile::new(small).await;
    hostile.tables = source(&hostile.desk.small.own.url()).unwrap();
    hostile.every_write_is_refused().await;
    hostile.nothing_stays().await;
}

pub async fn a_query_behind_a_pooler_can_not_write(small: Small) {
    // One session for all that come.
    let pooler = PgBouncer::start_with(Postgres::shared(), 1);
    let url = small.own.url();
    let through = Own::at(&pooler.url(url.rsplit_once('/').unwrap().1));
    let Small { own, side } = small;
    let hostile = Hostile::new(Small {
        own: Arc::new(through),
        side,
    })
    .await;
    hostile.every_write_is_refused().await;
    hostile.nothing_stays().await;
    hostile.nothing_stays_of_what_was_stopped().await;
    drop(hostile);
    drop(own);
}

/// A type of the application's may have a way of its own to become JSON, which is run for each row.
pub async fn what_turns_a_row_into_json_can_not_write(small: Small) {
    let hostile = Hostile::new(small).await;
    let side = &hostile.desk.small.side;
    side.execute(
        "CREATE TYPE mood AS ENUM ('well');
         CREATE FUNCTION as_json(mood) RETURNS json LANGUAGE plpgsql AS
             $$ BEGIN DELETE FROM victim; RETURN '1'; END $$;
         CREATE CAST (mood AS json) WITH FUNCTION as_json(mood)",
    )
    .unwrap();
    let mut pair = hostile.desk.pair.clone();
    pair.query = "SELECT id, 'well'::mood AS mood FROM databases".to_owned();
    let mut batch = hostile.desk.batch(From::Here {
        cursor: None,
        limit: 5,
    });
    batch.pair = pair;
    let ticked = hostile.desk.lead().tick(batch).await;
    assert!(matches!(ticked, Err(Error::Invalid(_))), "{ticked:?}");
    hostile.untouched("a tick");
}
