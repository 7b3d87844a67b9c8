//! What a pair's query must be, and what is said about one that isn't.

use rowlock::engine::{From, Leading, Ticked};
use rowlock::error::Error;
use rowlock::job::UniqueUntil;
use rowlock::reconcile::tick_by_hand;
use rowlock::{Cron, Kind, MINUTE, Pair};

use super::pairs::{
    QUERY, batch, databases, declare, ended, live, pair, posts, row, set_up, take, tick,
};
use super::world::{World, name};

pub async fn rows_without_a_key_of_their_own_make_a_tick_fail(world: World) {
    let mut client = world.home.client();
    client.execute("CREATE TABLE odd (id integer, todo integer)");
    client.execute("INSERT INTO odd VALUES (1, 1), (NULL, 1), (2, 1), (2, 1), (3, 0)");
    for (query, words) in [
        ("SELECT id FROM odd WHERE todo = 1", "no key"),
        (
            "SELECT id FROM odd WHERE todo = 1 AND id IS NOT NULL",
            "repeat a key",
        ),
    ] {
        let pair = pair(query);
        let site = world.open();
        declare(&site, &pair).await;
        let why = tick_by_hand(&site.rowlock, &pair, false, |_| {})
            .await
            .unwrap_err();
        assert!(why.to_string().contains(words), "{why}");
        assert_eq!(live(&site).await.len(), 2, "the others have their jobs");
        let seen = row(&site).await;
        assert!(seen.error.unwrap().contains(words));
        assert_eq!(seen.last_success, None);
    }
}

pub async fn a_row_that_can_not_become_a_job_starves_no_other(world: World) {
    let mut client = world.home.client();
    client.execute("CREATE TABLE wide (id integer PRIMARY KEY, body text)");
    let long = "x".repeat(1_100_000);
    client.execute(&format!(
        "INSERT INTO wide VALUES (1, 'x'), (2, '{long}'), (3, 'x'), (4, '{long}'), (5, 'x')"
    ));
    let pair = pair("SELECT id, body FROM wide");
    let site = world.open();
    declare(&site, &pair).await;
    let there = site.rowlock.lead().source();
    let lines = there.derive(&pair, 0, None, 10).await.unwrap();
    for from in [
        From::Here {
            cursor: None,
            limit: 3,
        },
        From::Here {
            cursor: Some("[3]".to_owned()),
            limit: 3,
        },
        From::Lines(lines),
    ] {
        let ticked = site.rowlock.lead().tick(batch(&pair, from)).await.unwrap();
        let key = ticked.broken.as_deref().unwrap_or_default();
        let expected = if ticked.more || ticked.found == 5 {
            "[2]"
        } else {
            "[4]"
        };
        assert!(key.contains(expected), "{ticked:?}");
    }
    let keys: Vec<_> = live(&site)
        .await
        .into_iter()
        .map(|job| job.unique_key)
        .collect();
    assert_eq!(keys, ["[1]", "[3]", "[5]"].map(|key| Some(key.to_owned())));
}

pub async fn rows_without_a_part_of_their_key_end_no_walk(world: World) {
    let mut client = world.home.client();
    client.execute("CREATE TABLE loose (a integer, b integer)");
    client.execute("INSERT INTO loose VALUES (1, NULL), (1, NULL), (2, 1), (3, 1)");
    let key = vec![name("a"), name("b")];
    let pair = Pair::new(name("create"), key, "SELECT a, b FROM loose").batch(2);
    let site = world.open();
    declare(&site, &pair).await;
    for _ in 0..2 {
        let why = tick_by_hand(&site.rowlock, &pair, false, |_| {})
            .await
            .unwrap_err();
        assert!(why.to_string().contains("2 of 4 rows have no key"), "{why}");
        assert_eq!(live(&site).await.len(), 2);
    }
    let there = site.rowlock.lead().source();
    let (mut cursor, mut keys, mut keyless) = (None, Vec::new(), 0);
    loop {
        let lines = there.derive(&pair, 0, cursor.as_deref(), 2).await.unwrap();
        keyless += lines.without_key;
        keys.extend(lines.lines.into_iter().map(|line| line.key));
        cursor = lines.cursor;
        if !lines.more {
            break;
        }
    }
    assert_eq!(
        (keys, keyless),
        (vec!["[2,1]".to_owned(), "[3,1]".to_owned()], 2)
    );
}

pub async fn rows_of_another_database_come_in_bearable_parts(world: World) {
    let mut client = world.home.client();
    client.execute("CREATE TABLE wide (id integer PRIMARY KEY, body text)");
    let long = "x".repeat(1_000_000);
    client.execute(&format!("INSERT INTO wide VALUES (1, '{long}')"));
    for n in [1, 2, 4, 8, 16, 32] {
        client.execute(&format!("INSERT INTO wide SELECT id + {n}, body FROM wide"));
    }
    let site = world.open();
    let there = site.rowlock.lead().source();
    let pair = pair("SELECT id, body FROM wide");
    let first = there.derive(&pair, 0, None, 100).await.unwrap();
    assert_eq!((first.found, first.lines.len(), first.more), (34, 34, true));
    assert_eq!(first.cursor.as_deref(), Some("[34]"));
    let last = there.derive(&pair, 0, Some("[34]"), 100).await.unwrap();
    assert_eq!((last.found, last.lines.len(), last.more), (30, 30, false));
}

pub async fn a_changed_pair_is_due_at_once(world: World) {
    let first = pair(QUERY).batch(5);
    let site = set_up(&world, 1, &first).await;
    let token = take(&site, (None, 0)).await;
    let post = async || posts(&site, Leading::default()).await.remove(0);
    let later = world.clock.now() + MINUTE;
    let mut end = ended(&first, token, Ok(Ticked::default()));
    end.due_at = Some(later);
    end.cursor = Some("[1]".to_owned());
    let lead = site.rowlock.lead();
    lead.tick_end(end.clone()).await.unwrap();
    declare(&site, &first).await;
    assert_eq!(post().await.due_at, Some(later), "nothing has changed");
    declare(&site, &first.clone().batch(6)).await;
    let seen = post().await;
    assert_eq!((seen.due_at, seen.cursor.as_deref()), (None, Some("[1]")));
    lead.tick_end(end).await.unwrap();
    declare(&site, &pair("SELECT id FROM databases").batch(6)).await;
    let seen = post().await;
    assert_eq!(
        (seen.due_at, seen.cursor),
        (None, None),
        "another query begins anew"
    );
}

pub async fn a_declaration_that_can_not_be_read_stops_no_other(world: World) {
    let good = pair(QUERY).states(rowlock::reconcile::States::default());
    let site = set_up(&world, 1, &good).await;
    for bad in ["a_bad", "z_bad"] {
        declare(&site, &pair(QUERY).name(name(bad))).await;
    }
    let newer = |declared: String| declared.replacen('{', r#"{"of_a_later_version":{"a":1},"#, 1);
    let declared = serde_json::to_string(&good).unwrap();
    let states = declared.replace(r#""table":"#, r#""of_a_later_version":1,"table":"#);
    let mut client = world.home.client();
    client.execute("UPDATE rowlock_pair SET declared = '{}' WHERE name <> 'create'");
    client.execute(&format!(
        "UPDATE rowlock_pair SET declared = '{}' WHERE name = 'create'",
        newer(states).replace('\'', "''")
    ));
    let schedule = site.rowlock.schedule();
    let pairs = schedule.pairs().await.unwrap();
    let pairs: Vec<Pair> = pairs.into_iter().map(|row| row.pair).collect();
    assert_eq!(pairs, [good]);
    let crons = ["a_bad", "good"].map(|each| Cron::new(name(each), name("report"), "* * * * *"));
    let due = crons.clone().map(|cron| (cron, world.clock.now()));
    schedule.declare_crons(&due, false).await.unwrap();
    client.execute("UPDATE rowlock_cron SET declared = '{}' WHERE name = 'a_bad'");
    client.execute(&format!(
        "UPDATE rowlock_cron SET declared = '{}' WHERE name = 'good'",
        newer(serde_json::to_string(&crons[1]).unwrap())
    ));
    let (_, found) = schedule.crons().await.unwrap();
    let found: Vec<Cron> = found.into_iter().map(|row| row.cron).collect();
    assert_eq!(found, crons[1..]);
    // Who declares it again can read it again.
    declare(&site, &pair(QUERY).name(name("a_bad"))).await;
    assert_eq!(schedule.pairs().await.unwrap().len(), 2);
}

pub async fn a_query_that_fails_leaves_the_last_good_tick(world: World) {
    let pair = pair(QUERY);
    let site = set_up(&world, 1, &pair).await;
    tick(&site, &pair).await;
    let good = world.clock.now();
    world.advance(MINUTE);
    world.home.client().execute("DROP TABLE databases");
    let why = tick_by_hand(&site.rowlock, &pair, false, |_| {})
        .await
        .unwrap_err();
    assert!(matches!(why, Error::Invalid(_)), "{why:?}");
    let seen = row(&site).await;
    assert!(
        seen.error.clone().unwrap().contains("databases"),
        "{seen:?}"
    );
    assert_eq!(seen.last_success, Some(good));
    assert_eq!(seen.age, MINUTE);
}

pub async fn a_query_that_can_not_be_keyed_is_refused(world: World) {
    databases(&world, 1);
    let site = world.open();
    let source = site.rowlock.lead().source();
    for (query, word) in [
        ("SELECT name FROM databases", "id"),
        ("SELECT nothing FROM databases", "nothing"),
        ("SELECT id FROM nowhere", "nowhere"),
        ("SELECT id FORM databases", "databases"),
    ] {
        let why = source.columns(&pair(query)).await.unwrap_err();
        assert!(matches!(why, Error::Invalid(_)), "{query}: {why:?}");
        assert!(why.to_string().contains(word), "{query}: {why}");
    }
    let columns = source.columns(&pair(QUERY)).await.unwrap();
    assert_eq!(columns[0].name, "id");
    // And the key must be the kind's.
    site.engine()
        .add_kinds(&[Kind::new("create").unwrap()])
        .await
        .unwrap();
    let why = site
        .rowlock
        .schedule()
        .declare_pairs(&[pair(QUERY)], true)
        .await
        .unwrap_err();
    assert!(matches!(why, Error::Invalid(_)), "{why:?}");
}

pub async fn a_kind_is_not_changed_under_its_pair(world: World) {
    let pair = pair(QUERY).name(name("makes"));
    let site = set_up(&world, 1, &pair).await;
    let operate = site.rowlock.operate();
    let stored = operate.kinds().await.unwrap().remove(0);
    let (mut other_key, mut early, mut patient) = (stored.clone(), stored.clone(), stored.clone());
    other_key.key = vec![name("name")];
    early.unique_until = UniqueUntil::Start;
    patient.max_attempts = 99;
    for wrong in [other_key.clone(), early] {
        let another = Kind::new("another").unwrap();
        let why = operate.apply(&[another, wrong]).await.unwrap_err();
        assert!(matches!(&why, Error::Invalid(_)), "{why:?}");
        let remedy = "rowlock reconcile remove makes";
        assert!(why.to_string().contains(remedy), "{why}");
    }
    assert_eq!(operate.kinds().await.unwrap(), [stored]);
    operate.apply(&[patient]).await.unwrap();
    let schedule = site.rowlock.schedule();
    schedule.forget_pair(&pair.name).await.unwrap();
    operate.apply(&[other_key]).await.unwrap();
}

pub async fn declaring_again_says_what_differs(world: World) {
    let first = pair(QUERY).shards(3);
    let site = set_up(&world, 1, &first).await;
    assert_eq!(posts(&site, Leading::default()).await.len(), 3);
    let second = pair("SELECT id FROM databases WHERE state = 'new'").shards(2);
    let schedule = site.rowlock.schedule();
    let drift = schedule
        .declare_pairs(std::slice::from_ref(&second), false)
        .await
        .unwrap();
    let rowlock::engine::Applied::Changed(differences) = &drift[0] else {
        panic!("{drift:?}");
    };
    assert!(
        differences.iter().any(|line| line.starts_with("query: ")),
        "{differences:?}"
    );
    assert_eq!(row(&site).await.pair, first, "the table rules");
    schedule
        .declare_pairs(std::slice::from_ref(&second), true)
        .await
        .unwrap();
    assert_eq!(row(&site).await.pair, second);
    assert_eq!(posts(&site, Leading::default()).await.len(), 2);
    schedule.forget_pair(&second.name).await.unwrap();
    assert!(schedule.pairs().await.unwrap().is_empty());
    assert!(posts(&site, Leading::default()).await.is_empty());
    let gone = schedule.forget_pair(&second.name).await;
    assert!(matches!(gone, Err(Error::NotFound(_))), "{gone:?}");
}

pub async fn states_that_nobody_claims_are_named_with_their_rows(world: World) {
    let states = rowlock::reconcile::States {
        table: "databases".to_owned(),
        column: "state".to_owned(),
        pending: vec!["pending".to_owned(), "partial".to_owned()],
        terminal: vec!["ready".to_owned()],
        other: vec!["theirs".to_owned()],
    };
    let pair = pair(QUERY).states(states);
    let site = set_up(&world, 3, &pair).await;
    world.home.client().execute(
        "INSERT INTO databases VALUES (10, NULL, 'partial'), (11, NULL, 'partial'), (12, NULL, 'lost'), \
         (13, NULL, 'ready'), (14, NULL, 'theirs')",
    );
    let found = site.rowlock.lead().source().examine(&pair).await.unwrap();
    assert_eq!(found.unclaimed, [("lost".to_owned(), 1)]);
    assert_eq!(found.missed, [("partial".to_owned(), 2)]);
    assert!(found.plans.is_empty(), "{found:?}");
    let lead = site.rowlock.lead();
    lead.uncovered(&pair.name, found.unclaimed).await.unwrap();
    assert_eq!(row(&site).await.uncovered, [("lost".to_owned(), 1)]);
}

pub async fn what_is_due_by_its_time_needs_an_index_on_it(world: World) {
    let mut client = world.home.client();
    client.execute(
        "CREATE TABLE policies (id bigint PRIMARY KEY, note text, next_run_at timestamp NOT NULL)",
    );
    client.execute("INSERT INTO policies VALUES (1, 'x', '2020-01-01 00:00:00')");
    let site = world.open();
    let source = site.rowlock.lead().source();
    let pair = pair("SELECT id FROM policies WHERE next_run_at <= CURRENT_TIMESTAMP");
    let found = source.examine(&pair).await.unwrap();
    let remark = found.plans.first().expect("a remark");
    let remedy = remark.remedy.clone().expect("a remedy");
    assert!(
        remedy.ends_with("ON policies (next_run_at, id)"),
        "{remedy}"
    );
    client.execute(&remedy);
    let found = source.examine(&pair).await.unwrap();
    assert!(found.plans.is_empty(), "{found:?}");
    // Nothing could be an index of what is random.
    let mut random = pair;
    random.query = "SELECT id FROM policies WHERE note = 'x' AND random() <> 0".to_owned();
    for plan in source.examine(&random).await.unwrap().plans {
        let remedy = plan.remedy.unwrap_or_default();
        assert!(!remedy.contains("random"), "{remedy}");
    }
}

pub async fn a_query_without_an_index_is_named_with_the_one_that_helps(world: World) {
    let mut client = world.home.client();
    client.execute("CREATE TABLE jobless (id bigint PRIMARY KEY, state text NOT NULL)");
    let pair = pair("SELECT id FROM jobless WHERE state = 'pending'");
    let site = world.open();
    let source = site.rowlock.lead().source();
    let found = source.examine(&pair).await.unwrap();
    let remark = found.plans.first().expect("a remark");
    assert!(remark.what.contains("jobless"), "{remark:?}");
    let remedy = remark.remedy.clone().expect("a remedy");
    assert!(remedy.starts_with("CREATE INDEX"), "{remedy}");
    client.execute(&remedy);
    let found = source.examine(&pair).await.unwrap();
    assert!(found.plans.is_empty(), "{found:?}");
}

pub async fn a_query_that_writes_is_refused_wherever_it_is_run(world: World) {
    let site = set_up(&world, 3, &pair(QUERY)).await;
    let tables = site.rowlock.lead().source();
    for query in [
        "DELETE FROM databases RETURNING id",
        "INSERT INTO databases VALUES (9, 'x', 'pending') RETURNING id",
        "UPDATE databases SET state = 'x' RETURNING id",
        "WITH gone AS (DELETE FROM databases RETURNING id) SELECT id FROM gone",
        "SELECT id FROM databases) AS w; DELETE FROM databases; SELECT id FROM (SELECT 1 AS id",
    ] {
        let pair = pair(query);
        let keys = ["[1]".to_owned()];
        let here = || From::Here {
            cursor: None,
            limit: 5,
        };
        let mut dry = batch(&pair, here());
        dry.dry = true;
        let lead = site.rowlock.lead();
        let paths = [
            ("tick", lead.tick(batch(&pair, here())).await.map(drop)),
            ("dry tick", lead.tick(dry).await.map(drop)),
            ("rows", tables.derive(&pair, 0, None, 5).await.map(drop)),
            ("question", tables.ask(&pair, &keys).await.map(drop)),
            ("columns", tables.columns(&pair).await.map(drop)),
            ("plans", tables.examine(&pair).await.map(drop)),
        ];
        for (path, ran) in paths {
            assert!(ran.is_err(), "{path}: {query}");
        }
    }
    assert_eq!(
        tick(&site, &pair(QUERY)).await.found,
        3,
        "all are as they were"
    );
}
