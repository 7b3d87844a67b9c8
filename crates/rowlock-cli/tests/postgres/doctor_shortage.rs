//! What a server has only so much of: whoever has all of it is named, and the finding's remedy gives it back.

use rowlock_testbed::{Postgres, Session, Stop};

use crate::doctor::{LATER, doctor, mend, of, only, well};
use crate::store::Store;

/// A role of this database's own, and its URL.
fn role(store: &Store, grants: &str) -> (String, String) {
    let name = format!("taker_{}", store.database.name());
    store.sql(&format!(
        "CREATE ROLE {name} LOGIN; {}",
        grants.replace("{role}", &name)
    ));
    let url = format!("{}?application_name=metabase", store.url_of(&name));
    (name, url)
}

/// Removes the role, of which nothing is left.
fn forget(store: &Store, role: &str) {
    store.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[test]
fn whoever_has_every_place_of_a_budget_is_named() {
    let store = well();
    store.ok(&["budget", "set", "reports", "--max", "2"]);
    let (name, url) = role(
        &store,
        "GRANT USAGE ON SCHEMA rowlock TO {role}; GRANT EXECUTE ON FUNCTION rowlock.budget_enter TO {role}",
    );
    let enter = "BEGIN; SELECT * FROM rowlock.budget_enter('reports')";
    let (first, second) = (Session::open(&url), Session::open(&url));
    first.execute(enter).unwrap();
    store.sql(LATER);
    assert_eq!(of(&doctor(&store, &[]).1, "R039"), None, "one is left");
    store.sql(&LATER.replace(" + interval '2 min'", ""));
    second.execute(enter).unwrap();
    assert_eq!(of(&doctor(&store, &[]).1, "R039"), None, "but for a moment");
    store.sql(LATER);
    let (level, what, remedy) = of(&doctor(&store, &[]).1, "R039").unwrap();
    assert_eq!(level, "warn");
    let who = |session: &Session| {
        let pid = session.pid();
        format!("session {pid} (application \"metabase\", role {name}) for 2 m")
    };
    let all = "every place of class reports is taken (2), and its next transaction waits: ";
    assert!(what.starts_with(all), "{what}");
    assert!(
        what.contains(&who(&first)) && what.contains(&who(&second)),
        "{what}"
    );
    // A role that may not see since when hears of it all the same.
    let reader = format!("reader_{}", store.database.name());
    store.sql(&format!(
        "CREATE ROLE {reader} LOGIN; GRANT USAGE ON SCHEMA rowlock TO {reader};
         GRANT SELECT ON ALL TABLES IN SCHEMA rowlock TO {reader};
         GRANT SELECT ON ALL SEQUENCES IN SCHEMA rowlock TO {reader};
         GRANT EXECUTE ON FUNCTION rowlock.now, rowlock.is_on TO {reader}"
    ));
    let (_, found) = doctor(&store, &["--url", &store.url_of(&reader)]);
    let (level, what, _) = of(&found, "R039").unwrap();
    assert_eq!(level, "info");
    assert!(what.contains("since when this role may not see"), "{what}");
    forget(&store, &reader);
    mend(&store, &remedy);
    assert_eq!(of(&doctor(&store, &[]).1, "R039"), None);
    store.ok(&["budget", "set", "reports", "--max", "1"]);
    store.sql(&format!(
        "SET ROLE {name}; {enter}; PREPARE TRANSACTION 'a report'"
    ));
    let (_, what, remedy) = of(&doctor(&store, &[]).1, "R039").unwrap();
    let prepared = format!("the prepared transaction \"a report\" of {name} for ");
    assert!(what.contains(&prepared), "{what}");
    mend(&store, &remedy);
    assert_eq!(of(&doctor(&store, &[]).1, "R039"), None);
    forget(&store, &name);
}

#[test]
fn a_stranger_that_has_the_places_of_a_copy_is_named() {
    let store = well();
    store.ok(&["budget", "set", "reports", "--max", "1"]);
    // As on a copy by logical replication, which has the class and no view.
    store.sql(
        "DO $$ BEGIN EXECUTE format('DROP VIEW %s', rowlock.budget_place('reports', 1)); END $$",
    );
    let (name, url) = role(&store, "");
    let stranger = Session::open(&url);
    let take = "SELECT pg_advisory_lock(hashtextextended('rowlock.budget reports 1', 0))";
    stranger.execute(take).unwrap();
    let entered = "SELECT count(slot) FROM rowlock.budget_enter('reports')";
    assert_eq!(store.session().value(entered), "0");
    store.sql(LATER);
    let (_, what, remedy) = of(&doctor(&store, &[]).1, "R039").unwrap();
    let who = format!("(application \"metabase\", role {name}) for 2 m");
    assert!(what.contains(&who), "{what}");
    mend(&store, &remedy);
    assert_eq!(of(&doctor(&store, &[]).1, "R039"), None);
    assert_eq!(store.session().value(entered), "1");
    forget(&store, &name);
}

#[test]
fn who_fills_the_queue_of_notifications_is_named() {
    let store = well();
    let (name, url) = role(&store, "");
    let stranger = Session::open(&url);
    stranger
        .execute("LISTEN \"rowlock.ready\"; BEGIN; SELECT 1")
        .unwrap();
    assert_eq!(of(&doctor(&store, &[]).1, "R039"), None);
    // Four gigabytes would take too long: the server only says that they are there.
    let usage = |share: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION pg_catalog.pg_notification_queue_usage() RETURNS double precision
             LANGUAGE sql AS $$ SELECT {share}::double precision $$"
        )
    };
    store.sql("ALTER FUNCTION pg_catalog.pg_notification_queue_usage() RENAME TO real_usage");
    store.sql(&usage("0.75"));
    let (level, what, remedy) = only(&store, "R039", &[]);
    assert_eq!(level, "warn");
    assert!(
        what.starts_with("the queue of notifications is 75% full"),
        "{what}"
    );
    let pid = stranger.pid();
    let who = format!("session {pid} (application \"metabase\", role {name}) for ");
    assert!(what.contains(&who), "{what}");
    mend(&store, &remedy);
    assert!(stranger.query("SELECT 1").is_err());
    store.sql(&usage("0.5"));
    assert_eq!(doctor(&store, &[]).0, Some(0));
    forget(&store, &name);
}

#[test]
fn who_has_every_connection_is_named() {
    let server = Postgres::start_own();
    server.set("max_connections = 12");
    server.restart(Stop::Fast);
    let store = Store::on(&server, "");
    store.ok(&["migrate", "up"]);
    assert_eq!(doctor(&store, &[]).0, Some(0));
    let (name, url) = role(&store, "");
    let crowd: Vec<Session> = std::iter::from_fn(|| Session::try_open(&url).ok()).collect();
    // 53300: too many connections.
    let refused = Session::try_open(&url).unwrap_err();
    assert!(refused.starts_with("53300"), "{refused}");
    let (level, what, remedy) = only(&store, "R039", &[]);
    assert_eq!(level, "warn");
    let all = "every connection that isn't reserved is taken (9), and new ones are refused: ";
    assert!(what.starts_with(all), "{what}");
    let who = format!(
        "{} by role {name} (application \"metabase\") for ",
        crowd.len()
    );
    assert!(what.contains(&who), "{what}");
    mend(&store, &remedy);
    assert_eq!(doctor(&store, &[]).0, Some(0));
}
