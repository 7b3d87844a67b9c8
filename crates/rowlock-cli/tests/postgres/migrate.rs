//! `migrate` on PostgreSQL: schemas by name, what was changed behind our back, and by hand.

use rowlock_testbed::{Process, Session};

use crate::store::Store;

const ECHO: &str = "[handlers.echo]\nbuiltin = \"echo\"\n";

#[test]
fn tables_are_made_once_and_their_state_is_told() {
    let store = Store::empty("");
    let status = store.ok(&["migrate", "status"]);
    assert!(status.contains("has no rowlock tables"), "{status}");
    let up = store.ok(&["migrate", "up"]);
    assert!(
        up.starts_with("applied 0001_jobs\napplied 0002_pairs\napplied 0003_routes\napplied 0004_operate\napplied 0005_plain\napplied 0006_keys\napplied 0007_suspects\napplied 0008_trust\npostgres://"),
        "{up}"
    );
    assert!(store.ok(&["migrate", "up"]).ends_with(", nothing to do\n"));
    assert_eq!(
        store.json(&["migrate", "status", "--json"]),
        serde_json::json!({ "stored": 8, "latest": 8, "drift": [] })
    );
    store.sql("DROP INDEX rowlock.job_2_ready");
    let status = store.ok(&["migrate", "status"]);
    assert!(
        status.ends_with("differs: the index job_2_ready is missing\n"),
        "{status}"
    );
    store.sql("UPDATE rowlock.migration SET version = 99 WHERE version = 3");
    let newer = store.run(&["migrate", "up"]);
    assert_eq!(newer.code, Some(5), "{newer:?}");
    assert!(newer.stderr.contains("install a newer rowlock"));
}

#[test]
fn a_schema_is_chosen_by_file_environment_and_flag() {
    let store = Store::empty(&format!("schema = \"from_file\"\n{ECHO}"));
    store.ok(&["migrate", "up"]);
    let mut by_environment = store.command(&["migrate", "up"]);
    by_environment.env("ROWLOCK_SCHEMA", "from_env");
    assert_eq!(Process::run(&mut by_environment, "").code, Some(0));
    let mut by_flag = store.command(&["migrate", "up", "--schema", "from_flag"]);
    by_flag.env("ROWLOCK_SCHEMA", "from_env_2");
    assert_eq!(Process::run(&mut by_flag, "").code, Some(0));
    let made = "SELECT string_agg(nspname, ' ' ORDER BY nspname) FROM pg_namespace
                WHERE nspname LIKE 'from%' OR nspname = 'rowlock'";
    let session = store.session();
    assert_eq!(session.value(made), "from_env from_file from_flag");
    store.ok(&["enqueue", "echo"]);
    store.ok(&["enqueue", "echo", "--schema", "from_flag"]);
    store.ok(&["work", "--once", "--quiet", "--schema", "from_flag"]);
    let states = |schema: &str| session.value(&format!("SELECT state FROM {schema}.jobs"));
    assert_eq!(states("from_file"), "pending");
    assert_eq!(states("from_flag"), "completed");
    // A remedy leads to the same schema.
    let missing = store.run(&["stats", "--schema", "nowhere"]);
    assert_eq!(missing.code, Some(5), "{missing:?}");
    assert!(missing.stderr.contains(" --schema nowhere`"), "{missing:?}");
    for bad in ["Upper", "a b", "pg_x", "x;drop"] {
        let refused = store.run(&["stats", "--schema", bad]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
    }
}

#[test]
fn a_schema_is_refused_for_a_file() {
    let place = crate::place::Place::new();
    let refused = place.run(&["stats", "--schema", "jobs"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("for PostgreSQL"), "{refused:?}");
    place.write("rowlock.toml", "schema = \"jobs\"\n");
    assert_eq!(place.run(&["stats"]).code, Some(2));
    // The file's schema belongs to the URL that the flag replaces.
    place.ok(&["enqueue", "echo", "--url", "sqlite:other.db"]);
}

#[test]
fn the_printed_statements_make_the_same_tables() {
    let store = Store::empty(ECHO);
    let text = store.ok(&["migrate", "sql", "--schema", "by_hand"]);
    store.sql(&text);
    store.ok(&["enqueue", "echo", "--schema", "by_hand"]);
    assert_eq!(
        store.ok(&["work", "--once", "--quiet", "--schema", "by_hand"]),
        "{}\n"
    );
    store.ok(&["migrate", "up", "--schema", "by_us"]);
    let parts = |schema: &str| {
        let tables = "SELECT string_agg(c.relname || c.relkind::text, ' ' ORDER BY c.relname) FROM pg_class AS c";
        let text = format!("{tables} WHERE c.relnamespace = '{schema}'::regnamespace");
        Session::open(store.database.url()).value(&text)
    };
    assert_eq!(parts("by_hand"), parts("by_us"));
}
