//! Ticks: a job for every row that needs one, and none for those that are held back.

use std::time::Duration;

use rowlock::engine::{Batch, Duty, Filter, From, Leading, PairRow, Post, Take, TickEnd, Ticked};
use rowlock::error::{Error, Result};
use rowlock::job::{Backoff, Token};
use rowlock::reconcile::tick_by_hand;
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{JobState, Kind, MINUTE, Pair, Record};

use super::world::{Home, Site, World, job, name};

pub const QUERY: &str = "SELECT id FROM databases WHERE state = 'pending'";

/// A table of the application's, with so many rows that need work.
pub fn databases(world: &World, pending: i64) {
    databases_at(&*world.home, pending);
}

pub fn databases_at(home: &dyn Home, pending: i64) {
    let mut client = home.client();
    client
        .execute("CREATE TABLE databases (id bigint PRIMARY KEY, name text, state text NOT NULL)");
    client.execute("CREATE INDEX databases_pending ON databases (id) WHERE state = 'pending'");
    insert_at(home, 1, pending);
}

pub fn insert(world: &World, from: i64, to: i64) {
    insert_at(&*world.home, from, to);
}

pub fn insert_at(home: &dyn Home, from: i64, to: i64) {
    let rows: Vec<String> = (from..=to)
        .map(|id| format!("({id}, 'db{id}', 'pending')"))
        .collect();
    for some in rows.chunks(5_000) {
        let values = some.join(", ");
        home.client()
            .execute(&format!("INSERT INTO databases VALUES {values}"));
    }
}

pub fn kind_of(text: &str) -> Kind {
    let mut kind = Kind::new(text).unwrap();
    kind.key = vec![name("id")];
    kind.backoff = Backoff::Fixed {
        base: Duration::ZERO,
        jitter: 0.0,
    };
    kind
}

pub fn pair(query: &str) -> Pair {
    Pair::new(name("create"), vec![name("id")], query)
}

/// The pair that leaders in processes of their own declare.
pub fn pair_of_rivals() -> Pair {
    pair(QUERY).batch(10).every(Duration::from_millis(100))
}

pub async fn declare(site: &Site, pair: &Pair) {
    let mut kind = kind_of(pair.kind.as_str());
    kind.key.clone_from(&pair.key);
    site.engine().add_kinds(&[kind]).await.unwrap();
    let schedule = site.rowlock.schedule();
    schedule
        .declare_pairs(std::slice::from_ref(pair), true)
        .await
        .unwrap();
}

/// A site with rows and a pair over them.
pub async fn set_up(world: &World, pending: i64, pair: &Pair) -> Site {
    databases(world, pending);
    let site = world.open();
    declare(&site, pair).await;
    site
}

pub async fn tick(site: &Site, pair: &Pair) -> Ticked {
    tick_by_hand(&site.rowlock, pair, false, |_| {})
        .await
        .unwrap()
}

pub async fn row(site: &Site) -> PairRow {
    let rows = site.rowlock.schedule().pairs().await.unwrap();
    rows.into_iter().next().expect("a pair")
}

pub async fn live(site: &Site) -> Vec<Record> {
    let filter = Filter {
        state: Some(JobState::Pending),
        limit: 100_000,
        ..Filter::default()
    };
    site.rowlock.operate().jobs(filter).await.unwrap()
}

fn counts(ticked: &Ticked) -> (u64, u64, u64) {
    (ticked.found, ticked.enqueued, ticked.live)
}

pub async fn a_row_without_a_live_job_gets_one(world: World) {
    let pair = pair(
        "SELECT id, name, state = 'x' AS odd, NULL AS void FROM databases WHERE state = 'pending'",
    );
    let site = set_up(&world, 3, &pair).await;
    assert_eq!(counts(&tick(&site, &pair).await), (3, 3, 0));
    assert_eq!(counts(&tick(&site, &pair).await), (3, 0, 3));
    let jobs = live(&site).await;
    assert_eq!(jobs.len(), 3);
    assert_eq!(jobs[1].unique_key.as_deref(), Some("[2]"));
    let payload: serde_json::Value = jobs[1].payload.to().unwrap();
    assert_eq!(
        (&payload["id"], &payload["name"]),
        (&2.into(), &"db2".into())
    );
    assert!(payload["void"].is_null() && payload.get("void").is_some());
    // The same key as an enqueue of the application's has.
    let again = job("create")
        .payload_of(&serde_json::json!({"id": 2}))
        .unwrap();
    let answer = site.rowlock.enqueue(&again).await.unwrap();
    assert_eq!(answer.id, Some(jobs[1].id), "{answer:?}");
    let seen = row(&site).await;
    assert_eq!((seen.found, seen.enqueued, seen.ticks), (3, 0, 2));
    assert_eq!(seen.last_success, Some(world.clock.now()));
}

pub async fn an_enqueue_that_was_lost_is_found_and_counted(world: World) {
    let pair = pair(QUERY);
    let site = set_up(&world, 10, &pair).await;
    for id in [1, 2, 3, 5, 6, 7, 9, 10] {
        let direct = job("create")
            .payload_of(&serde_json::json!({ "id": id }))
            .unwrap();
        site.stage(direct).await;
    }
    let ticked = tick(&site, &pair).await;
    assert_eq!((ticked.enqueued, ticked.lost), (2, 2));
    assert_eq!(row(&site).await.lost_enqueues, 2);
    tick(&site, &pair).await;
    assert_eq!(row(&site).await.lost_enqueues, 2, "each is counted once");
    // Where only ticks enqueue, nothing is lost.
    declare(&site, &pair.clone().scheduler_only()).await;
    insert(&world, 11, 12);
    let ticked = tick(&site, &pair.scheduler_only()).await;
    assert_eq!((ticked.enqueued, ticked.lost), (2, 0));
}

pub async fn a_dry_tick_counts_and_changes_nothing(world: World) {
    let pair = pair(QUERY);
    let site = set_up(&world, 25, &pair).await;
    let ticked = tick_by_hand(&site.rowlock, &pair, true, |_| {})
        .await
        .unwrap();
    assert_eq!(counts(&ticked), (25, 25, 0));
    assert_eq!(ticked.sample.len(), 10);
    assert_eq!(ticked.sample[0], "[1]");
    assert!(live(&site).await.is_empty());
    assert_eq!(row(&site).await.last_success, None);
}

pub async fn batches_go_on_from_their_key(world: World) {
    let pair = pair(QUERY).batch(10);
    let site = set_up(&world, 95, &pair).await;
    assert_eq!(counts(&tick(&site, &pair).await), (95, 95, 0));
    let keys: Vec<_> = live(&site)
        .await
        .into_iter()
        .map(|job| job.unique_key)
        .collect();
    let expected: Vec<_> = (1..=95).map(|id| Some(format!("[{id}]"))).collect();
    assert_eq!(keys, expected, "by key, each once");
}

pub async fn keys_may_be_texts_and_several_columns(world: World) {
    let mut client = world.home.client();
    client.execute("CREATE TABLE part (region text NOT NULL, no integer NOT NULL, todo integer, PRIMARY KEY (region, no))");
    client.execute("INSERT INTO part VALUES ('b''x', 2, 1), ('b''x', 10, 1), ('a\"', 3, 1), ('ä', 1, 1), ('z', 1, 0)");
    let key = vec![name("region"), name("no")];
    let pair = Pair::new(
        name("create"),
        key,
        "SELECT region, no FROM part WHERE todo = 1",
    )
    .batch(1);
    let site = world.open();
    declare(&site, &pair).await;
    assert_eq!(counts(&tick(&site, &pair).await), (4, 4, 0));
    assert_eq!(counts(&tick(&site, &pair).await), (4, 0, 4));
    let source = site.rowlock.lead().source();
    let keys: Vec<String> = [
        r#"["b'x",10]"#,
        r#"["z",1]"#,
        r#"["ä",1]"#,
        r#"["ä",null]"#,
        r#"["a\"",3]"#,
    ]
    .into_iter()
    .map(str::to_owned)
    .collect();
    let wanted = source.ask(&pair, &keys).await.unwrap();
    assert_eq!(
        wanted,
        [true, false, true, true, true],
        "what can't be asked is wanted"
    );
}

pub async fn a_key_that_is_spelled_otherwise_is_wanted(world: World) {
    let mut client = world.home.client();
    client.execute("CREATE TABLE spelled (a integer, b text, c numeric, d boolean)");
    client.execute("INSERT INTO spelled VALUES (7, '7', 7, true), (8, 'a b', 8.5, false)");
    let site = world.open();
    let source = site.rowlock.lead().source();
    for (columns, keys) in [
        (
            "a",
            &["[7]", "[\"7\"]", "[ 7 ]", "7", "[7,7]", "[null]"][..],
        ),
        ("b", &["[7]", "[\"7\"]", "[\"a b\"]"][..]),
        ("c", &["[7]", "[7.0]", "[8.50]", "[\"7\"]"][..]),
        ("d", &["[true]", "[false]"][..]),
        ("a, b", &["[7, \"7\"]", "[\"8\", \"a b\"]", "[7,7]"][..]),
    ] {
        let key = columns.split(", ").map(name).collect();
        let query = format!("SELECT {columns} FROM spelled");
        let pair = Pair::new(name("create"), key, query);
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let wanted = source.ask(&pair, &keys).await.unwrap();
        assert_eq!(wanted, vec![true; keys.len()], "{columns}: {keys:?}");
        let others = ["[9]", "[9,\"9\"]"].map(str::to_owned);
        if columns != "d" {
            let width = columns.split(", ").count();
            let wanted = source.ask(&pair, &others[width - 1..width]).await.unwrap();
            assert_eq!(wanted, [false], "{columns}");
        }
    }
}

pub async fn shards_share_the_rows(world: World) {
    let pair = pair(QUERY).shards(4).batch(7);
    let site = set_up(&world, 200, &pair).await;
    let lead = site.rowlock.lead();
    let mut each = Vec::new();
    for shard in 0..4 {
        let mut cursor = None;
        let mut found = 0;
        loop {
            let ticked = lead
                .tick(Batch {
                    pair: pair.clone(),
                    shard,
                    token: None,
                    from: From::Here { cursor, limit: 7 },
                    seed: 0.0,
                    dry: false,
                })
                .await
                .unwrap();
            found += ticked.enqueued;
            if !ticked.more {
                break;
            }
            cursor = ticked.cursor;
        }
        each.push(found);
    }
    assert_eq!(each.iter().sum::<u64>(), 200, "{each:?}");
    assert!(each.iter().all(|found| *found > 20), "{each:?}");
    assert_eq!(live(&site).await.len(), 200);
}

pub async fn a_window_is_filled_evenly(world: World) {
    const BUCKETS: usize = 30;
    let window = Duration::from_secs(30 * 60);
    let pair = pair(QUERY).jitter(window);
    let site = set_up(&world, 10_000, &pair).await;
    let began = world.clock.now();
    let batch = Batch {
        pair: pair.clone(),
        shard: 0,
        token: None,
        from: From::Here {
            cursor: None,
            limit: 10_000,
        },
        seed: 0.25,
        dry: false,
    };
    let ticked = site.rowlock.lead().tick(batch).await.unwrap();
    assert_eq!(ticked.enqueued, 10_000);
    let mut buckets = [0_f64; BUCKETS];
    for job in live(&site).await {
        let after = Duration::try_from(began.duration_until(job.scheduled_at)).unwrap();
        assert!(after <= window, "{after:?}");
        let share = after.as_secs_f64() / window.as_secs_f64();
        buckets[((share * BUCKETS as f64) as usize).min(BUCKETS - 1)] += 1.0;
    }
    let expected = 10_000.0 / BUCKETS as f64;
    let chi: f64 = buckets
        .iter()
        .map(|n| (n - expected).powi(2) / expected)
        .sum();
    // 29 degrees of freedom: chance alone passes this once in a hundred.
    assert!(chi < 49.6, "{chi}: {buckets:?}");
}

pub async fn posts(site: &Site, leading: Leading) -> Vec<Post> {
    site.rowlock.lead().lead(leading).await.unwrap().posts
}

pub async fn take(site: &Site, seen: (Option<Token>, i64)) -> Token {
    let token = Token::random().unwrap();
    let duty = Duty::Pair(name("create"), 0);
    let leading = Leading {
        holder: "somebody".to_owned(),
        take: vec![Take { duty, seen, token }],
        ..Leading::default()
    };
    posts(site, leading).await;
    token
}

/// A batch by hand.
pub fn batch(pair: &Pair, from: From) -> Batch {
    Batch {
        pair: pair.clone(),
        shard: 0,
        token: None,
        from,
        seed: 0.0,
        dry: false,
    }
}

fn led(pair: &Pair, token: Token) -> Batch {
    let from = From::Here {
        cursor: None,
        limit: 100,
    };
    Batch {
        token: Some(token),
        ..batch(pair, from)
    }
}

pub fn ended(pair: &Pair, token: Token, outcome: Result<Ticked, String>) -> TickEnd {
    TickEnd {
        pair: pair.name.clone(),
        shard: 0,
        token: Some(token),
        outcome,
        took: Duration::from_millis(5),
        cursor: None,
        due_at: None,
    }
}

pub async fn a_leader_that_was_replaced_writes_nothing(world: World) {
    let pair = pair(QUERY);
    let site = set_up(&world, 3, &pair).await;
    let first = take(&site, (None, 0)).await;
    let post = posts(&site, Leading::default()).await.remove(0);
    assert_eq!((post.token, post.beat), (Some(first), 0));
    // Somebody else saw another state: too late.
    let late = take(&site, (None, 0)).await;
    let post = posts(&site, Leading::default()).await.remove(0);
    assert_ne!(post.token, Some(late));
    let keep = vec![(post.duty.clone(), first)];
    let post = posts(
        &site,
        Leading {
            keep,
            ..Leading::default()
        },
    )
    .await
    .remove(0);
    assert_eq!(post.beat, 1);
    let second = take(&site, (Some(first), 1)).await;
    let lead = site.rowlock.lead();
    let refused = lead.tick(led(&pair, first)).await;
    assert!(matches!(refused, Err(Error::LeaseLost)), "{refused:?}");
    let refused = lead
        .tick_end(ended(&pair, first, Ok(Ticked::default())))
        .await;
    assert!(matches!(refused, Err(Error::LeaseLost)), "{refused:?}");
    assert!(live(&site).await.is_empty());
    assert_eq!(row(&site).await.ticks, 0);
    assert_eq!(lead.tick(led(&pair, second)).await.unwrap().enqueued, 3);
    lead.tick_end(ended(&pair, second, Ok(Ticked::default())))
        .await
        .unwrap();
    // Its beat doesn't count, and it can't give up what isn't its own.
    let keep = vec![(post.duty.clone(), first)];
    let leave = keep.clone();
    let post = posts(
        &site,
        Leading {
            keep,
            leave,
            ..Leading::default()
        },
    )
    .await
    .remove(0);
    assert_eq!((post.token, post.beat), (Some(second), 0));
}

pub async fn switches_hold_for_ticks(world: World) {
    let pair = pair(QUERY);
    let site = set_up(&world, 4, &pair).await;
    let schedule = site.rowlock.schedule();
    let reject = Some(Setting {
        reason: Some("the cloud is down".to_owned()),
        by: Some("ada".to_owned()),
        until: Some(world.clock.now() + MINUTE),
        ..Setting::new(Mode::Reject)
    });
    schedule
        .switch(Target::Kind, &pair.kind, reject)
        .await
        .unwrap();
    let ticked = tick(&site, &pair).await;
    assert_eq!((ticked.enqueued, ticked.rejected), (0, 4));
    let direct = || {
        job("create")
            .payload_of(&serde_json::json!({"id": 1}))
            .unwrap()
    };
    site.rowlock.enqueue(&direct()).await.unwrap();
    let on = schedule.switches().await.unwrap().remove(0);
    assert_eq!((on.target, on.rejected), (Target::Kind, 5));
    assert_eq!(on.by.as_deref(), Some("ada"));
    // It forgets itself.
    world.advance(MINUTE);
    assert!(schedule.switches().await.unwrap().is_empty());
    let hold = Some(Setting::new(Mode::Hold));
    schedule
        .switch(Target::Queue, &name("default"), hold)
        .await
        .unwrap();
    assert_eq!(tick(&site, &pair).await.enqueued, 4);
    let stats = site.rowlock.operate().stats().await.unwrap();
    assert_eq!(stats.total.held, 4);
    schedule
        .switch(Target::Queue, &name("default"), None)
        .await
        .unwrap();
    let why = schedule.switch(Target::Queue, &name("default"), None).await;
    assert!(matches!(why, Err(Error::NotFound(_))), "{why:?}");
    let pause = || Some(Setting::new(Mode::Pause));
    let why = schedule
        .switch(Target::Pair, &name("nobody"), pause())
        .await;
    assert!(matches!(why, Err(Error::NotFound(_))), "{why:?}");
    schedule
        .switch(Target::Pair, &pair.name, pause())
        .await
        .unwrap();
    assert_eq!(row(&site).await.switch.unwrap().mode, Mode::Pause);
}
