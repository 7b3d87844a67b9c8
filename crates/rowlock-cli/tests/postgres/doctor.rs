//! Every finding of `doctor` that only a server can have, provoked on a real one.

use rowlock_testbed::{PgBouncer, Postgres, Process};
use serde_json::Value;

use crate::store::{CANARY, Store, checked};

const ECHO: &str = "[handlers.echo]\nbuiltin = \"echo\"\n";
/// Two minutes later, for whoever asks the store.
pub const LATER: &str =
    "CREATE OR REPLACE FUNCTION rowlock.now() RETURNS timestamptz LANGUAGE sql VOLATILE
                     AS $$ SELECT clock_timestamp() + interval '2 min' $$";

/// A store with the kinds of its configuration.
pub fn well() -> Store {
    let store = Store::new(ECHO);
    store.ok(&["apply"]);
    store
}

pub fn doctor(store: &Store, flags: &[&str]) -> (Option<i32>, Vec<Value>) {
    let finished = store.run(&[&["doctor", "--json"], flags].concat());
    assert_eq!(finished.stderr, "", "{finished:?}");
    let lines = finished.stdout.lines();
    let found = lines.map(|line| serde_json::from_str(line).unwrap());
    (finished.code, found.collect())
}

/// The one finding with this code: its level, its sentence and its remedy.
pub fn of(found: &[Value], code: &str) -> Option<(String, String, String)> {
    let mut those = found.iter().filter(|each| each["code"] == code);
    let text = |each: &Value, field: &str| each[field].as_str().unwrap().to_owned();
    let one = those.next().filter(|each| each["level"] != "ok")?;
    assert_eq!(those.count(), 0, "{found:#?}");
    Some((text(one, "level"), text(one, "what"), text(one, "remedy")))
}

/// The only one.
pub fn only(store: &Store, code: &str, flags: &[&str]) -> (String, String, String) {
    let (exit, found) = doctor(store, flags);
    assert_eq!(exit, Some(6), "{found:#?}");
    let bad = found.iter().filter(|each| each["level"] != "ok");
    assert_eq!(bad.count(), 1, "{found:#?}");
    of(&found, code).unwrap_or_else(|| panic!("no {code}: {found:#?}"))
}

/// Runs a remedy as it is printed.
pub fn mend(store: &Store, remedy: &str) {
    store.remedy(remedy);
}

#[test]
fn a_store_that_is_well_has_no_findings() {
    let store = well();
    let (exit, found) = doctor(&store, &[]);
    assert_eq!(exit, Some(0), "{found:#?}");
    let codes: Vec<&str> = found
        .iter()
        .filter_map(|each| each["code"].as_str())
        .collect();
    assert_eq!(
        codes.join(" "),
        "R002 R004 R005 R006 R008 R009 R010 R011 R012 R013 R014 R015 R016 R017 R018 R019 R020 R021 R030 R031 R032 R033 \
         R034 R035 R036 R038 R039"
    );
    assert!(found.iter().all(|each| each["level"] == "ok"), "{found:#?}");
}

#[test]
fn a_schema_that_was_changed_or_is_newer_is_found() {
    let store = well();
    for (spoil, says) in [
        (
            "DROP INDEX rowlock.aside_due",
            "the index aside_due is missing",
        ),
        (
            "DROP INDEX rowlock.job_2_ready",
            "the index job_2_ready is missing",
        ),
        (
            "DROP FUNCTION rowlock.rotate",
            "the function rotate is missing",
        ),
    ] {
        store.sql(spoil);
        let (level, what, remedy) = only(&store, "R002", &[]);
        assert_eq!((level.as_str(), what.as_str()), ("error", says));
        mend(&store, &remedy);
        assert_eq!(doctor(&store, &[]).0, Some(0), "{says}");
    }
    store.sql("UPDATE rowlock.migration SET version = 99 WHERE version = 3");
    let (_, what, _) = only(&store, "R002", &[]);
    assert!(what.contains("install a newer rowlock"), "{what}");
}

#[test]
fn a_switch_that_was_forgotten_is_found_and_cleared() {
    let store = well();
    store.sql("UPDATE rowlock.kind SET switch = 'hold', switch_reason = 'why'");
    let (_, what, remedy) = only(&store, "R008", &[]);
    assert_eq!(what, "kind:echo is set to hold: why");
    mend(&store, &remedy);
    assert_eq!(doctor(&store, &[]).0, Some(0));
}

#[test]
fn clocks_that_are_apart_are_found() {
    let store = well();
    store.sql(LATER);
    let (_, found) = doctor(&store, &[]);
    let (level, what, remedy) = of(&found, "R010").unwrap();
    assert_eq!(level, "warn");
    assert!(
        what.starts_with("the server's clock is ") && what.contains(" ahead of this machine's"),
        "{what}"
    );
    // By hand: the remedy is for the machine's own clock.
    assert_eq!(remedy, "timedatectl set-ntp true");
    store.sql(&LATER.replace(" + interval '2 min'", ""));
    assert_eq!(of(&doctor(&store, &[]).1, "R010"), None);
}

#[test]
fn whoever_keeps_a_segment_from_being_emptied_is_named() {
    let store = well();
    store.ok(&["enqueue", "echo"]);
    // The first segment is closed, and has a job in it.
    store.sql("SELECT setval('rowlock.ring', 9)");
    store.sql(LATER);
    let blocker = |found: &[Value]| of(found, "R012");
    assert_eq!(blocker(&doctor(&store, &[]).1), None);
    let session = store.session();
    session
        .execute("SET application_name = 'metabase'; BEGIN; SELECT count(*) FROM rowlock.job_0")
        .unwrap();
    let (level, what, remedy) = blocker(&doctor(&store, &[]).1).unwrap();
    assert_eq!(level, "warn");
    let who = format!(
        "session {} (application \"metabase\") has held a lock on job_0 for 2 m",
        session.pid()
    );
    assert!(what.starts_with(&who), "{what}");
    assert!(what.contains("its 8 KiB can't be emptied"), "{what}");
    mend(&store, &remedy);
    assert_eq!(blocker(&doctor(&store, &[]).1), None);
}

#[test]
fn a_prepared_transaction_in_the_way_is_named() {
    let store = well();
    store.ok(&["enqueue", "echo"]);
    store.sql("SELECT setval('rowlock.ring', 9)");
    store.sql(LATER);
    store.sql("BEGIN; SELECT count(*) FROM rowlock.job_0; PREPARE TRANSACTION 'it''s forgotten'");
    let (_, what, remedy) = of(&doctor(&store, &[]).1, "R012").unwrap();
    assert!(
        what.starts_with(
            "the prepared transaction \"it's forgotten\" has held a lock on job_0 for 2 m"
        ),
        "{what}"
    );
    mend(&store, &remedy);
    assert_eq!(of(&doctor(&store, &[]).1, "R012"), None);
}

#[test]
fn sequences_that_did_not_come_along_with_a_copy_are_found() {
    let store = well();
    store.ok(&["enqueue", "echo"]);
    // As a copy of the tables alone leaves them.
    store.sql("SELECT setval('rowlock.job_id', 1, false)");
    let (level, what, remedy) = only(&store, "R013", &[]);
    assert_eq!(level, "error");
    assert!(
        what.starts_with("the sequence rowlock.job_id is at 1, and 1 is stored already"),
        "{what}"
    );
    mend(&store, &remedy);
    assert_eq!(doctor(&store, &[]).0, Some(0));
    assert_eq!(store.json(&["enqueue", "echo", "--json"])["id"], 2);
}

#[test]
fn a_worker_that_starts_sets_sequences_right() {
    let store = well();
    store.ok(&["enqueue", "echo", "--in", "1h"]);
    store.sql("SELECT setval('rowlock.job_id', 1, false)");
    store.ok(&["work", "--once", "--quiet"]);
    assert_eq!(doctor(&store, &[]).0, Some(0));
    let next = &store.json(&["enqueue", "echo", "--json"])["id"];
    assert!(next.as_i64() > Some(1), "{next}");
}

#[test]
fn another_isolation_by_default_is_found() {
    let store = well();
    let role = format!("strict_{}", store.database.name());
    store.sql(&format!(
        "CREATE ROLE {role} SUPERUSER LOGIN; ALTER ROLE {role} SET default_transaction_isolation = 'serializable'"
    ));
    let url = store.url_of(&role);
    let (level, what, remedy) = only(&store, "R014", &["--url", &url]);
    assert_eq!(level, "warn");
    assert!(
        what.starts_with("transactions are SERIALIZABLE by default"),
        "{what}"
    );
    store.remedy_as(&role, &remedy);
    assert_eq!(doctor(&store, &["--url", &url]).0, Some(0));
    store.sql(&format!("DROP ROLE {role}"));
}

#[test]
fn a_pooler_that_lets_no_notification_through_is_told_and_is_no_finding() {
    let store = well();
    let pooler = PgBouncer::start(Postgres::shared());
    let url = pooler.url(store.database.name());
    let url = url.replace("postgres@", &format!("postgres:{CANARY}@"));
    let (exit, found) = doctor(&store, &["--url", &url]);
    assert_eq!(exit, Some(0), "{found:#?}");
    // By hand: another URL is the remedy, and the one of this store leads past the pooler.
    assert_eq!(of(&doctor(&store, &[]).1, "R015"), None);
    let (level, what, _) = of(&found, "R015").unwrap();
    assert_eq!(level, "info");
    assert!(what.starts_with("notifications don't arrive"), "{what}");
    // Everything works all the same.
    let mut command = store.command(&["enqueue", "echo", "--url", &url]);
    let queued = checked(&["enqueue"], Process::run(&mut command, ""));
    assert_eq!(
        queued.stdout, "queued 1  echo  queue default\n",
        "{queued:?}"
    );
    let mut command = store.command(&["work", "--once", "--quiet", "--url", &url]);
    assert_eq!(Process::run(&mut command, "").stdout, "{}\n");
}

#[test]
fn a_publication_of_the_ring_is_found_and_leaves_it_out() {
    let store = well();
    store.sql("CREATE TABLE orders (id bigint PRIMARY KEY)");
    let published = |of: &str| store.sql(&format!("CREATE PUBLICATION \"every Thing\" {of}"));
    let mut forms = vec![
        "FOR ALL TABLES WITH (publish = 'insert, delete')",
        "FOR TABLE rowlock.job_0, rowlock.kind, orders",
    ];
    let version: u32 = store
        .session()
        .value("SHOW server_version_num")
        .parse()
        .unwrap();
    if version >= 150_000 {
        forms.push("FOR TABLES IN SCHEMA rowlock, public");
    }
    for form in forms {
        published(form);
        let (exit, found) = doctor(&store, &[]);
        assert_eq!(exit, Some(0), "{found:#?}");
        let (level, what, remedy) = of(&found, "R035").unwrap();
        assert_eq!(level, "info");
        assert!(
            what.starts_with("publication \"every Thing\" has the ring"),
            "{what}"
        );
        mend(&store, &remedy);
        assert_eq!(of(&doctor(&store, &[]).1, "R035"), None, "{form}");
        let left =
            "SELECT string_agg(schemaname || '.' || tablename, ' ') FROM pg_publication_tables";
        assert_eq!(store.session().value(left), "public.orders", "{form}");
        store.sql("DROP PUBLICATION \"every Thing\"");
    }
    // All that an operator does is done under one as well.
    published("FOR ALL TABLES");
    store.ok(&["enqueue", "echo"]);
    for verb in ["pause", "resume"] {
        store.ok(&["queue", verb, "default"]);
    }
    store.ok(&[
        "switch",
        "set",
        "kind:echo",
        "reject",
        "--lose-jobs",
        "--reason",
        "why",
    ]);
    assert!(store.ok(&["enqueue", "echo"]).starts_with("rejected"));
    store.ok(&["switch", "clear", "kind:echo"]);
    store.ok(&["work", "--once", "--quiet"]);
}

#[test]
fn keys_of_jobs_that_are_gone_are_found_and_removed() {
    let store = Store::new(&format!("{ECHO}key = [\"id\"]\n"));
    store.ok(&["apply"]);
    for id in 1..=7 {
        store.ok(&["enqueue", "echo", &format!("{{\"id\":{id}}}")]);
    }
    store.sql("DELETE FROM rowlock.job_0 WHERE unique_key <> '[4]'");
    let again = store.json(&["enqueue", "echo", "{\"id\":3}", "--json"]);
    assert_eq!(again["status"], "duplicate");
    let (level, what, remedy) = only(&store, "R036", &[]);
    assert_eq!(level, "error");
    assert!(
        what.starts_with("6 unique keys are held for jobs that are gone"),
        "{what}"
    );
    assert!(
        what.contains("[1] of echo (job 1)") && what.ends_with("and 1 more"),
        "{what}"
    );
    let unasked = store.run(&["doctor", "--mend", "keys"]);
    assert_eq!(unasked.code, Some(2), "{unasked:?}");
    assert!(
        unasked.stderr.contains("6 unique keys") && unasked.stderr.contains("--yes"),
        "{unasked:?}"
    );
    let kept = store
        .database
        .session()
        .value("SELECT count(*) FROM rowlock.key");
    assert_eq!(kept, "7");
    mend(&store, &format!("{remedy} --yes"));
    assert_eq!(doctor(&store, &[]).0, Some(0));
    let again = store.json(&["enqueue", "echo", "{\"id\":3}", "--json"]);
    assert_eq!(again["status"], "queued");
    let held = store.json(&["enqueue", "echo", "{\"id\":4}", "--json"]);
    assert_eq!(held["status"], "duplicate");
    assert_eq!(
        store.json(&["doctor", "--mend", "keys", "--json"])["removed"],
        0
    );
}

#[test]
fn what_was_stored_past_every_rule_is_shown_safely_and_can_be_removed() {
    let store = well();
    store.ok(&["enqueue", "echo"]);
    let hostile = "E'\\x1b[2J\\nfake'";
    store.sql(&format!(
        "UPDATE rowlock.job_0 SET queue = {hostile}, kind = {hostile}, unique_key = {hostile}, tags = ARRAY[{hostile}],
             trace_context = {hostile};
         INSERT INTO rowlock.lane SELECT DISTINCT queue, kind, priority FROM rowlock.job_0;
         INSERT INTO rowlock.key SELECT kind, unique_key, id + 100 FROM rowlock.job_0"
    ));
    for verb in [
        &["stats"][..],
        &["job", "list"],
        &["job", "show", "1"],
        &["queue", "list"],
        &["switch", "list"],
        &["doctor"],
        &["stats", "--json"],
        &["job", "list", "--json"],
        &["doctor", "--json"],
        &["doctor", "--mend", "keys"],
        &["verify"],
    ] {
        let shown = store.run(verb);
        let text = shown.stdout.clone() + &shown.stderr;
        let raw = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(raw), "{verb:?}: {shown:?}");
        assert!(
            !text.lines().any(|line| line.starts_with("fake")),
            "{verb:?}: {shown:?}"
        );
    }
    store.ok(&["doctor", "--mend", "keys", "--yes"]);
    store.ok(&["job", "delete", "1"]);
    assert_eq!(store.json(&["stats", "--json"])["pending"], 0);
}
