//! Pairs as SQLite has them: queries that are told to stop, what JSON can't hold, counting by trigger.

use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::engine::sqlite::{Sqlite, source};
use rowlock::engine::{Batch, From, Lead, Leading, Operate, Schedule, Ticked};
use rowlock::job::{Kind, Name};
use rowlock::reconcile::States;
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{Error, Pair};

use super::home::File;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A table of databases that want to be made, and the pair that finds them.
fn setup(rows: usize) -> (File, Sqlite, Pair) {
    let home = File::new();
    home.connect()
        .execute_batch(&format!(
            "CREATE TABLE databases (id INTEGER PRIMARY KEY, state TEXT, note);
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
             INSERT INTO databases SELECT i, 'pending', 'note ' || i FROM n"
        ))
        .unwrap();
    let engine = Sqlite::open(home.address(), Clock::system()).unwrap();
    let mut kind = Kind::new("create_database").unwrap();
    kind.key = vec![name("id")];
    block(engine.apply(&[kind])).unwrap();
    let pair = Pair::new(
        name("create_database"),
        vec![name("id")],
        "SELECT id, note FROM databases WHERE state = 'pending'",
    );
    block(engine.declare_pairs(std::slice::from_ref(&pair), false)).unwrap();
    (home, engine, pair)
}

pub fn block<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(future)
}

fn batch(pair: &Pair, cursor: Option<String>, limit: usize) -> Batch {
    Batch {
        pair: pair.clone(),
        shard: 0,
        token: None,
        from: From::Here { cursor, limit },
        seed: 0.0,
        dry: false,
    }
}

fn tick(engine: &Sqlite, pair: &Pair, limit: usize) -> Ticked {
    block(engine.tick(batch(pair, None, limit))).unwrap()
}

pub fn a_query_that_takes_too_long_is_stopped_and_holds_nobody_up() {
    let (_home, engine, pair) = setup(3);
    let mut endless = pair.clone();
    endless.query = "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)
                     SELECT max(id) AS id FROM n"
        .to_owned();
    endless.timeout = Duration::from_millis(100);
    for _ in 0..2 {
        let why = block(engine.tick(batch(&endless, None, 10))).unwrap_err();
        assert_eq!(why.to_string(), "timed out after 100ms");
        let why = block(engine.source().ask(&endless, &["[1]".to_owned()])).unwrap_err();
        assert_eq!(why.to_string(), "timed out after 100ms");
    }
    assert_eq!(tick(&engine, &pair, 10).enqueued, 3);
}

pub fn a_query_that_nobody_waits_for_any_more_is_stopped() {
    let (_home, engine, pair) = setup(3);
    let mut endless = pair.clone();
    endless.query = "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)
                     SELECT max(id) AS id FROM n"
        .to_owned();
    endless.timeout = Duration::from_secs(3_600);
    block(async {
        let asked = engine.tick(batch(&endless, None, 10));
        let gone = Clock::system()
            .timeout(Duration::from_millis(50), asked)
            .await;
        assert!(gone.is_none());
    });
    // It would wait behind the other one.
    assert_eq!(tick(&engine, &pair, 10).enqueued, 3);
}

pub fn what_json_can_not_hold_is_told_with_the_remedy() {
    let (home, engine, pair) = setup(2);
    home.connect()
        .execute_batch("UPDATE databases SET note = x'00ff' WHERE id = 2")
        .unwrap();
    let done = tick(&engine, &pair, 10);
    let why = done.broken.unwrap();
    assert!(
        why.contains("[2]") && why.contains("hex(column)"),
        "{why:?}"
    );
    assert_eq!(done.enqueued, 1);
}

pub fn a_row_that_breaks_a_rule_is_named_and_the_others_get_their_jobs() {
    let (home, engine, pair) = setup(3);
    home.connect()
        .execute_batch("UPDATE databases SET note = 9e999 WHERE id = 2")
        .unwrap();
    let why = tick(&engine, &pair, 10).broken.unwrap();
    assert!(why.contains("[2]"), "{why}");
    assert_eq!(block(engine.stats()).unwrap().total.pending, 2);
}

pub fn the_words_of_the_database_are_handed_on() {
    let (_home, engine, mut pair) = setup(1);
    for (query, words) in [
        ("SELECT id FROM nowhere", "no such table: nowhere"),
        ("SELECT id FROM databases WHERE", "syntax error"),
        ("SELECT state FROM databases", "no column id"),
        ("SELECT id FROM databases WHERE state = ?1", "parameter"),
        ("SELECT json_extract('{', '$.a') AS id", "malformed JSON"),
    ] {
        pair.query = query.to_owned();
        let why = block(engine.tick(batch(&pair, None, 10))).unwrap_err();
        assert!(matches!(why, Error::Invalid(_)), "{query}: {why:?}");
        assert!(why.to_string().contains(words), "{query}: {why}");
    }
}

pub fn rows_without_a_key_stop_no_batch() {
    let (home, engine, mut pair) = setup(0);
    home.connect()
        .execute_batch(
            "CREATE TABLE loose (a, b);
             INSERT INTO loose VALUES (NULL, 1), (NULL, 2), (NULL, 3), (1, NULL), (1, NULL), (1, 7),
                                      (2, 8), (2, 8), (2, 9)",
        )
        .unwrap();
    let mut kind = Kind::new("create_database").unwrap();
    kind.key = vec![name("a"), name("b")];
    block(engine.forget_pair(&pair.name)).unwrap();
    block(engine.apply(&[kind])).unwrap();
    pair.key = vec![name("a"), name("b")];
    pair.query = "SELECT a, b FROM loose".to_owned();
    let (mut cursor, mut all) = (None, Ticked::default());
    for _ in 0..20 {
        let done = block(engine.tick(batch(&pair, cursor, 1))).unwrap();
        all.enqueued += done.enqueued;
        all.without_key += done.without_key;
        all.repeated += done.repeated;
        cursor = done.cursor;
        if !done.more {
            break;
        }
    }
    assert_eq!(cursor.as_deref(), Some("[2,9]"));
    assert_eq!((all.enqueued, all.repeated), (3, 1));
    assert!(all.without_key > 0);
}

pub fn a_batch_of_several_transactions_is_counted_as_one() {
    let (_home, engine, pair) = setup(5_000);
    let done = tick(&engine, &pair, 4_999);
    assert_eq!((done.found, done.enqueued, done.more), (4_999, 4_999, true));
    let again = tick(&engine, &pair, 5_000);
    assert_eq!((again.live, again.enqueued, again.more), (4_999, 1, false));
}

pub fn an_enqueue_by_sql_that_a_switch_refuses_is_counted_once() {
    let (home, engine, pair) = setup(0);
    let enqueue = |id: i64| {
        let sql = "INSERT INTO rowlock_enqueue (kind, payload) VALUES ('create_database', ?1)";
        let payload = format!("{{\"id\":{id}}}");
        home.connect().execute(sql, [payload]).unwrap();
    };
    let set = |target, of: &str, mode: Option<Mode>| {
        block(engine.switch(target, &name(of), mode.map(Setting::new))).unwrap();
    };
    let rejected = || {
        let on = block(engine.switches()).unwrap();
        on.iter()
            .map(|on| (on.target, on.rejected))
            .collect::<Vec<_>>()
    };
    set(Target::Queue, "default", Some(Mode::Reject));
    enqueue(1);
    assert_eq!(rejected(), [(Target::Queue, 1)]);
    set(Target::Kind, pair.kind.as_str(), Some(Mode::Reject));
    enqueue(2);
    assert_eq!(rejected(), [(Target::Kind, 1), (Target::Queue, 1)]);
    set(Target::Kind, pair.kind.as_str(), None);
    enqueue(3);
    assert_eq!(rejected(), [(Target::Queue, 2)]);
    set(Target::Queue, "default", Some(Mode::Hold));
    enqueue(4);
    assert_eq!(rejected(), [(Target::Queue, 0)]);
    assert_eq!(block(engine.stats()).unwrap().total.pending, 1);
}

pub fn rows_of_another_file_need_no_tables_of_ours() {
    let (home, engine, pair) = setup(0);
    let folder = rowlock_testbed::folder();
    let path = folder.path().join("app.db");
    let url = format!("sqlite:{}", path.display());
    let there = source(&url).unwrap();
    let missing = block(there.derive(&pair, 0, None, 10)).unwrap_err();
    assert!(matches!(missing, Error::Unreachable(_)), "{missing:?}");
    assert!(!path.exists());
    let theirs = rusqlite::Connection::open(&path).unwrap();
    theirs
        .execute_batch(
            "CREATE TABLE databases (id INTEGER PRIMARY KEY, state TEXT, note);
             INSERT INTO databases VALUES (1, 'pending', 'a'), (2, 'made', 'b'), (3, 'pending', NULL)",
        )
        .unwrap();
    let lines = block(there.derive(&pair, 0, None, 1)).unwrap();
    assert_eq!((lines.found, lines.more), (1, true));
    assert_eq!(lines.lines[0].payload, r#"{"id":1,"note":"a"}"#);
    let keys = ["[1]", "[2]", "[\"1\"]", "x", "[]"].map(str::to_owned);
    let wanted = block(there.ask(&pair, &keys)).unwrap();
    assert_eq!(wanted, [true, false, true, true, true]);
    let mut batch = batch(&pair, None, 10);
    batch.from = From::Lines(lines);
    assert_eq!(block(engine.tick(batch)).unwrap().enqueued, 1);
    drop((home, there));
}

pub fn a_column_that_comes_later_is_in_the_next_payload() {
    let (home, engine, mut pair) = setup(1);
    pair.query = "SELECT * FROM databases".to_owned();
    let columns = |engine: &Sqlite| block(engine.source().columns(&pair)).unwrap().len();
    assert_eq!(columns(&engine), 3);
    home.connect()
        .execute_batch("ALTER TABLE databases ADD COLUMN size INTEGER")
        .unwrap();
    assert_eq!(columns(&engine), 4);
}

pub fn a_post_is_read_without_a_write() {
    let (home, engine, _pair) = setup(0);
    let rival = home.connect();
    rival.execute_batch("BEGIN IMMEDIATE").unwrap();
    let posts = block(engine.lead(Leading::default())).unwrap();
    assert_eq!(posts.posts.len(), 1);
}

pub fn the_remedy_makes_the_remark_go_away() {
    for query in [
        "SELECT id FROM databases WHERE state = 'pending'",
        "SELECT d.id, note FROM databases AS d WHERE d.state = 'pending' AND d.note IS NOT NULL",
        "select \"the id\" AS id from \"odd names\" where state = 'x' -- why",
    ] {
        let (home, engine, mut pair) = setup(50);
        let on = home.connect();
        on.execute_batch("CREATE TABLE \"odd names\" (\"the id\" TEXT, state TEXT)")
            .unwrap();
        pair.query = query.to_owned();
        let found = block(engine.source().examine(&pair)).unwrap();
        let remedies: Vec<String> = found
            .plans
            .iter()
            .filter_map(|plan| plan.remedy.clone())
            .filter(|remedy| remedy.starts_with("CREATE INDEX"))
            .collect();
        assert!(!remedies.is_empty(), "{query}: {:?}", found.plans);
        on.execute_batch(&remedies[0]).unwrap();
        let found = block(engine.source().examine(&pair)).unwrap();
        assert_eq!(found.plans, [], "{query}: {remedies:?}");
    }
}

pub fn states_that_nobody_claims_are_counted() {
    let (home, engine, pair) = setup(3);
    home.connect()
        .execute_batch(
            "INSERT INTO databases (state) VALUES ('odd'), ('odd'), (NULL), ('made'), ('broken')",
        )
        .unwrap();
    let pair = pair.states(States {
        table: "databases".to_owned(),
        column: "state".to_owned(),
        pending: vec!["pending".to_owned(), "broken".to_owned()],
        terminal: vec!["made".to_owned()],
        other: Vec::new(),
    });
    let found = block(engine.source().examine(&pair)).unwrap();
    let counted = |list: &[(&str, u64)]| -> Vec<(String, u64)> {
        list.iter().map(|(s, n)| ((*s).to_owned(), *n)).collect()
    };
    assert_eq!(found.unclaimed, counted(&[("NULL", 1), ("odd", 2)]));
    assert_eq!(found.missed, counted(&[("broken", 1)]));
}
