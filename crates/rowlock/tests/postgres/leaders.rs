//! What leaders do beside each other, and what becomes of keys whose jobs ended badly.

use std::time::Duration;

use rowlock::engine::postgres::source;
use rowlock::engine::{Duty, Fire, Fired, From, Leading, Take, TickEnd, Ticked};
use rowlock::error::Error;
use rowlock::job::{Cron, Token};
use rowlock::reconcile::tick_by_hand;
use rowlock::settle::Verdict;
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{JobState, Kind, Status};
use rowlock_testbed::until;

use super::home::wait;
use super::pairs::{Desk, QUERY, TABLE};
use super::small::Small;
use crate::conformance::world::{Home, error, job, name};

/// Takes the post of the desk's pair.
async fn take(desk: &Desk) -> Token {
    let token = Token::random().unwrap();
    let duty = Duty::Pair(desk.pair.name.clone(), 0);
    let posts = desk.lead().lead(Leading::default()).await.unwrap().posts;
    let post = posts.iter().find(|post| post.duty == duty).unwrap();
    let take = Take {
        duty: duty.clone(),
        seen: (post.token, post.beat),
        token,
    };
    let asked = Leading {
        holder: "somebody".to_owned(),
        take: vec![take],
        ..Leading::default()
    };
    let posts = desk.lead().lead(asked).await.unwrap().posts;
    let post = posts.iter().find(|post| post.duty == duty).unwrap();
    assert_eq!((post.token, post.beat), (Some(token), 0));
    token
}

fn all() -> From {
    From::Here {
        cursor: None,
        limit: 20,
    }
}

pub async fn a_leader_that_lost_its_post_stages_nothing(small: Small) {
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    let old = take(&desk).await;
    let new = take(&desk).await;
    let mut batch = desk.batch(all());
    batch.token = Some(old);
    let lost = desk.lead().tick(batch.clone()).await.unwrap_err();
    assert!(matches!(lost, Error::LeaseLost), "{lost:?}");
    assert!(desk.keys().is_empty());
    let end = |token| TickEnd {
        pair: desk.pair.name.clone(),
        shard: 0,
        token: Some(token),
        outcome: Ok(Ticked::default()),
        took: Duration::from_millis(3),
        cursor: None,
        due_at: None,
    };
    let lost = desk.lead().tick_end(end(old)).await.unwrap_err();
    assert!(matches!(lost, Error::LeaseLost), "{lost:?}");
    batch.token = Some(new);
    assert_eq!(desk.lead().tick(batch).await.unwrap().enqueued, 20);
    desk.lead().tick_end(end(new)).await.unwrap();
    let row = desk.schedule().pairs().await.unwrap().remove(0);
    assert_eq!((row.ticks, row.leader.as_deref()), (1, Some("somebody")));
    assert_eq!(row.age, Duration::ZERO);
}

pub async fn a_long_tick_holds_up_no_beat(small: Small) {
    let query = "SELECT id FROM databases, pg_sleep(3600)";
    let desk = Desk::new(small, TABLE, &["id"], query).await;
    let token = take(&desk).await;
    let mut batch = desk.batch(all());
    batch.token = Some(token);
    batch.pair.timeout = Duration::from_secs(120);
    let keep = Leading {
        keep: vec![(Duty::Pair(desk.pair.name.clone(), 0), token)],
        ..Leading::default()
    };
    let lead = desk.lead();
    let ticked = std::thread::scope(|scope| {
        let ticking = scope.spawn(|| wait(lead.tick(batch)));
        let running = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()
                       AND wait_event = 'PgSleep'";
        let pid = until("the tick runs", || {
            desk.small.side.query(running).unwrap().pop()?.pop()?
        });
        assert_eq!(wait(lead.lead(keep)).unwrap().posts[0].beat, 1);
        let cancel = format!("SELECT pg_cancel_backend({pid})");
        desk.small.side.execute(&cancel).unwrap();
        ticking.join().unwrap()
    });
    assert!(ticked.unwrap_err().is_transient());
}

pub async fn what_failed_or_was_called_off_is_left_alone(small: Small) {
    let mut desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    desk.pair.hold_back = Duration::from_secs(60);
    desk.declare(&desk.pair).await;
    let mut kind = Kind::new("create").unwrap();
    kind.key = desk.pair.key.clone();
    // Nothing is kept of what ends.
    kind.retention.failed = Duration::ZERO;
    let operate = desk.site.rowlock.operate();
    operate.apply(&[kind]).await.unwrap();
    assert_eq!(desk.tick(None, 2).await.lost, 2);
    let worker = desk.site.join().await;
    let jobs = desk.site.claim(&worker, &["create"], 1).await;
    let fails = Verdict::Fail(error(&jobs[0], &desk.world));
    desk.site.settle(&jobs[0], fails).await;
    let other = desk.small.number("SELECT id FROM rowlock.job LIMIT 1") as i64;
    let other = rowlock::JobId(other);
    desk.site.engine().cancel(vec![other]).await.unwrap();
    let schedule = desk.schedule();
    let held = schedule.held_back(&desk.pair.name, None, 10);
    let held: Vec<(String, u32, bool)> = held
        .await
        .unwrap()
        .into_iter()
        .map(|key| (key.reason, key.n, key.not_before.is_some()))
        .collect();
    assert_eq!(held.len(), 2, "{held:?}");
    assert!(held.contains(&("failed".to_owned(), 1, true)), "{held:?}");
    assert!(
        held.contains(&("cancelled".to_owned(), 1, false)),
        "{held:?}"
    );
    let ticked = desk.tick(None, 2).await;
    assert_eq!((ticked.held_back, ticked.enqueued), (2, 0));
    assert_eq!(desk.schedule().pairs().await.unwrap()[0].held_back, 2);
    desk.world.advance(Duration::from_secs(61));
    let ticked = desk.tick(None, 2).await;
    assert_eq!((ticked.enqueued, ticked.lost, ticked.held_back), (1, 0, 1));
    // The second time in a row it is longer; another run of what was called off lifts that.
    let jobs = desk.site.claim(&worker, &["create"], 1).await;
    let fails = Verdict::Fail(error(&jobs[0], &desk.world));
    desk.site.settle(&jobs[0], fails).await;
    desk.site.engine().redrive(vec![other]).await.unwrap();
    let keys = schedule.held_back(&desk.pair.name, None, 10);
    let keys = keys.await.unwrap();
    let until = desk.world.clock.now() + Duration::from_secs(240);
    assert_eq!(keys.len(), 1);
    assert_eq!((keys[0].n, keys[0].not_before), (2, Some(until)));
    assert_eq!(
        desk.schedule().lift(&desk.pair.name, None).await.unwrap(),
        1
    );
}

pub async fn what_still_wants_work_is_held_back_the_second_time(small: Small) {
    let mut desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    desk.pair.hold_back = Duration::from_secs(60);
    desk.declare(&desk.pair).await;
    let still = || {
        let (lead, pair) = (desk.lead(), desk.pair.name.clone());
        async move {
            lead.still_wanted(&pair, vec!["[1]".to_owned()])
                .await
                .unwrap()
        }
    };
    assert_eq!(still().await, 0);
    assert_eq!(desk.tick(None, 1).await.enqueued, 1);
    assert_eq!(still().await, 0, "its new job may be for something new");
    desk.small
        .side
        .execute("DELETE FROM rowlock.key; DELETE FROM rowlock.job")
        .unwrap();
    assert_eq!((still().await, still().await), (1, 1));
    let schedule = desk.schedule();
    let key = schedule.held_back(&desk.pair.name, None, 1);
    let key = key.await.unwrap().remove(0);
    let until = desk.world.clock.now() + Duration::from_secs(240);
    assert_eq!((key.reason.as_str(), key.n), ("ineffective", 2));
    assert_eq!(key.not_before, Some(until));
    assert_eq!(desk.schedule().pairs().await.unwrap()[0].ineffective, 2);
}

pub async fn what_a_switch_refuses_is_counted(small: Small) {
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    let (schedule, side) = (desk.schedule(), &desk.small.side);
    let kind = name("create");
    let reject = || Some(Setting::new(Mode::Reject));
    schedule
        .switch(Target::Kind, &kind, reject())
        .await
        .unwrap();
    let ticked = desk.tick(None, 5).await;
    assert_eq!((ticked.rejected, ticked.enqueued), (5, 0));
    let many = "SELECT rowlock.enqueue('create', jsonb_build_object('id', n)) FROM generate_series(1, 1200) AS n";
    side.execute(many).unwrap();
    let count = || async { schedule.switches().await.unwrap()[0].rejected };
    assert_eq!(count().await, 1_205);
    side.execute("SELECT rowlock.tidy()").unwrap();
    assert_eq!(
        desk.small.number("SELECT count(*) FROM rowlock.switched"),
        1
    );
    assert_eq!(count().await, 1_205);
    schedule
        .switch(Target::Kind, &kind, reject())
        .await
        .unwrap();
    assert_eq!(count().await, 0);
    schedule.switch(Target::Kind, &kind, None).await.unwrap();
    assert!(schedule.switches().await.unwrap().is_empty());
    let gone = schedule
        .switch(Target::Kind, &kind, None)
        .await
        .unwrap_err();
    assert!(matches!(gone, Error::NotFound(_)), "{gone:?}");
    schedule
        .switch(
            Target::Queue,
            &name("default"),
            Some(Setting::new(Mode::Hold)),
        )
        .await
        .unwrap();
    assert_eq!(desk.tick(None, 5).await.enqueued, 5);
    assert_eq!(
        desk.small
            .number("SELECT count(*) FROM rowlock.aside WHERE held"),
        5
    );
}

pub async fn rows_of_another_database_get_their_jobs(small: Small) {
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    desk.site
        .stage(job("create").payload(rowlock::Payload::of(&serde_json::json!({"id": 3})).unwrap()))
        .await;
    let other = source(&desk.small.own.url()).unwrap();
    let lines = other.derive(&desk.pair, 0, None, 5).await.unwrap();
    let mut batch = desk.batch(From::Lines(lines));
    batch.dry = true;
    let ticked = desk.lead().tick(batch.clone()).await.unwrap();
    assert_eq!((ticked.enqueued, ticked.live, ticked.more), (4, 1, true));
    assert_eq!(ticked.sample, ["[1]", "[2]", "[4]", "[5]"]);
    assert_eq!(desk.keys(), ["[3]"]);
    batch.dry = false;
    let ticked = desk.lead().tick(batch).await.unwrap();
    assert_eq!((ticked.found, ticked.enqueued, ticked.live), (5, 4, 1));
    assert_eq!(ticked.cursor.as_deref(), Some("[5]"));
    assert_eq!(desk.keys(), ["[1]", "[2]", "[3]", "[4]", "[5]"]);
}

pub async fn a_tick_of_a_cron_makes_one_job(small: Small) {
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    let (schedule, lead) = (desk.schedule(), desk.lead());
    let cron = Cron::new(name("nightly"), name("sweep"), "0 3 * * *");
    let at = desk.world.clock.now();
    let next_at = at + Duration::from_secs(60);
    let crons = [(cron.clone(), at)];
    schedule.declare_crons(&crons, false).await.unwrap();
    let fire = |token| Fire {
        cron: cron.clone(),
        token,
        expected: at,
        ticks: vec![at],
        next_at,
    };
    let by_hand = lead.fire(fire(None)).await.unwrap();
    assert_eq!(by_hand.ticks[0].1.status, Status::Queued);
    let lost = lead.fire(fire(Some(Token::random().unwrap()))).await;
    assert!(matches!(lost, Err(Error::LeaseLost)), "{lost:?}");
    let token = Token::random().unwrap();
    let take = Take {
        duty: Duty::Cron,
        seen: (None, 0),
        token,
    };
    let leading = Leading {
        take: vec![take],
        ..Leading::default()
    };
    lead.lead(leading).await.unwrap();
    assert_eq!(
        lead.fire(fire(Some(token))).await.unwrap(),
        Fired::default()
    );
    let row = schedule.crons().await.unwrap().1.remove(0);
    let id = by_hand.ticks[0].1.id;
    assert_eq!((row.next_at, row.last), (next_at, Some((at, id))));
    assert_eq!(desk.site.state(id.unwrap()).await, JobState::Pending);
    schedule.forget_cron(&cron.name).await.unwrap();
    let posts = lead.lead(Leading::default()).await.unwrap().posts;
    assert!(posts.iter().all(|post| post.duty != Duty::Cron));
}

pub async fn an_open_enqueue_of_a_key_holds_up_no_other_row(small: Small) {
    let tables = "CREATE TABLE databases (id bigint PRIMARY KEY, name text, state text NOT NULL);
        INSERT INTO databases SELECT n, 'db ' || n, 'pending' FROM generate_series(1, 10001) AS n";
    let desk = Desk::new(small, tables, &["id"], QUERY).await;
    let rival = desk.small.own.session();
    let enqueue = "SELECT rowlock.enqueue('create', '{\"id\":5000}')";
    rival.execute(&format!("BEGIN; {enqueue}")).unwrap();
    let whole = || tick_by_hand(&desk.site.rowlock, &desk.pair, false, |_| {});
    let ticked = whole().await.unwrap();
    assert_eq!(
        (ticked.found, ticked.enqueued),
        (10_001, 10_000),
        "{ticked:?}"
    );
    // Left to whoever was enqueuing it; who thinks better of it is found out by the next tick.
    rival.execute("ROLLBACK").unwrap();
    let ticked = whole().await.unwrap();
    assert_eq!((ticked.enqueued, ticked.lost), (1, 1), "{ticked:?}");
    // A table that nobody can read is no table without rows.
    rival
        .execute("BEGIN; LOCK TABLE databases IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let why = whole().await.unwrap_err();
    assert!(why.to_string().contains("locked"), "{why}");
    rival.execute("ROLLBACK").unwrap();
}
