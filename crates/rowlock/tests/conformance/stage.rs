//! Stage: jobs come in.

use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::{Error, JobState, Kind, Status};

use super::world::{Field, World, job, name};

pub async fn five_jobs_wait_as_pending(world: World) {
    let site = world.open();
    let ids = site.stage_many("mail", 5).await;
    for id in ids {
        let found = site.job(id).await;
        assert_eq!(found.state, JobState::Pending);
        assert_eq!((found.attempt, found.max_attempts), (0, 5));
        assert_eq!(found.queue.as_str(), "default");
        assert_eq!(found.payload.as_str(), "{}");
        assert_eq!(found.scheduled_at, world.clock.now());
    }
}

pub async fn an_immediate_job_is_immediate_at_any_time_of_day(world: World) {
    let worker = world.open().join().await;
    for minute in (0..24 * 60).step_by(97) {
        let start = format!("2101-03-04T{:02}:{:02}:00Z", minute / 60, minute % 60);
        let site = world.open_with(Clock::manual(start.parse().unwrap()));
        let id = site.stage(job("mail")).await;
        assert_eq!(site.claim_one(&worker, &["mail"]).await.id, id, "{start}");
    }
}

pub async fn a_delayed_job_waits_for_its_time(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let id = site
        .stage(job("mail").delay(Duration::from_secs(600)))
        .await;
    world.advance(Duration::from_millis(599_999));
    assert!(site.claim(&worker, &["mail"], 10).await.is_empty());
    world.advance(Duration::from_millis(1));
    assert_eq!(site.claim_one(&worker, &["mail"]).await.id, id);
}

fn mail_kind() -> Kind {
    let mut kind = Kind::new("mail").unwrap();
    kind.queue = name("letters");
    kind.priority = 7;
    kind.max_attempts = 3;
    kind.key = vec![name("to")];
    kind
}

pub async fn what_a_call_leaves_open_comes_from_the_kind_table(world: World) {
    let site = world.open();
    site.rowlock.operate().apply(&[mail_kind()]).await.unwrap();
    let to_ada = job("mail")
        .payload_of(&serde_json::json!({"to": "ada"}))
        .unwrap();
    let found = site.job(site.stage(to_ada.clone()).await).await;
    assert_eq!(found.queue.as_str(), "letters");
    assert_eq!((found.priority, found.max_attempts), (7, 3));
    assert_eq!(found.unique_key.as_deref(), Some("[\"ada\"]"));

    let own = to_ada
        .queue(name("slow"))
        .priority(-2)
        .unique("own")
        .unwrap()
        .max_attempts(9)
        .unwrap();
    let found = site.job(site.stage(own).await).await;
    assert_eq!(found.queue.as_str(), "slow");
    assert_eq!((found.priority, found.max_attempts), (-2, 9));
    assert_eq!(found.unique_key.as_deref(), Some("own"));
}

pub async fn a_declaration_counts_only_while_the_kind_has_no_row(world: World) {
    let site = world.open();
    let declared = rowlock::NewJob::of_kind(mail_kind())
        .payload_of(&serde_json::json!({"to": "ada"}))
        .unwrap();
    let found = site.job(site.stage(declared.clone()).await).await;
    assert_eq!(found.queue.as_str(), "letters");
    assert_eq!(found.unique_key.as_deref(), Some("[\"ada\"]"));

    let plain = Kind::new("mail").unwrap();
    site.rowlock.operate().apply(&[plain]).await.unwrap();
    let found = site.job(site.stage(declared).await).await;
    assert_eq!(found.queue.as_str(), "default");
    assert_eq!((found.priority, found.max_attempts), (0, 5));
    assert_eq!(found.unique_key, None);
}

pub async fn a_batch_is_staged_whole_or_not_at_all(world: World) {
    let site = world.open();
    site.rowlock.operate().apply(&[mail_kind()]).await.unwrap();
    let good = job("mail")
        .payload_of(&serde_json::json!({"to": "ada"}))
        .unwrap();
    let refused = site.rowlock.enqueue_many(vec![good, job("mail")]).await;
    assert!(
        matches!(refused, Err(Error::InvalidAt { index: 1, .. })),
        "{refused:?}"
    );
    assert_eq!(
        site.rowlock.operate().stats().await.unwrap().total.pending,
        0
    );
}

pub async fn rolled_back_staging_leaves_nothing(world: World) {
    let site = world.open();
    let mut client = world.home.client();
    client.execute("CREATE TABLE users (name TEXT)");
    client.begin();
    client.execute("INSERT INTO users VALUES ('ada')");
    client.stage(&job("mail")).unwrap();
    client
        .stage_by_sql(&[("kind", Field::from("mail"))])
        .unwrap();
    client.rollback();
    let stats = site.rowlock.operate().stats().await.unwrap();
    assert_eq!(stats.total.pending, 0);
    assert_eq!(stats.queues.len(), 0);
}

pub async fn committed_staging_is_there_and_invisible_before(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let mut client = world.home.client();
    client.execute("CREATE TABLE users (name TEXT)");
    client.begin();
    client.execute("INSERT INTO users VALUES ('ada')");
    let by_call = client.stage(&job("mail")).unwrap();
    client
        .stage_by_sql(&[("kind", Field::from("mail"))])
        .unwrap();
    assert_eq!(
        site.rowlock.operate().stats().await.unwrap().total.pending,
        0
    );
    client.commit();
    assert_eq!(by_call.status, Status::Queued);
    let claimed = site.claim(&worker, &["mail"], 10).await;
    assert_eq!(claimed.len(), 2);
    assert!(claimed.iter().any(|job| Some(job.id) == by_call.id));
}

pub async fn a_rejecting_switch_stores_nothing_and_says_so(world: World) {
    let site = world.open();
    site.rowlock
        .operate()
        .apply(&[Kind::new("mail").unwrap()])
        .await
        .unwrap();
    let mut client = world.home.client();
    client.execute("UPDATE rowlock_kind SET switch = 'reject' WHERE kind = 'mail'");
    let answer = site.rowlock.enqueue(&job("mail")).await.unwrap();
    assert_eq!((answer.id, answer.status), (None, Status::Rejected));
    // The caller's own transaction goes on.
    client.begin();
    client
        .stage_by_sql(&[("kind", Field::from("mail"))])
        .unwrap();
    assert_eq!(client.stage(&job("mail")).unwrap().status, Status::Rejected);
    client.commit();
    assert_eq!(
        site.rowlock.operate().stats().await.unwrap().total.pending,
        0
    );
}

pub async fn a_holding_switch_stores_and_keeps_it_from_claims(world: World) {
    let site = world.open();
    let worker = site.join().await;
    site.rowlock
        .operate()
        .apply(&[Kind::new("mail").unwrap()])
        .await
        .unwrap();
    let mut client = world.home.client();
    client.execute("UPDATE rowlock_kind SET switch = 'hold' WHERE kind = 'mail'");
    let answer = site.rowlock.enqueue(&job("mail")).await.unwrap();
    assert_eq!(answer.status, Status::Held);
    assert!(site.claim(&worker, &["mail"], 10).await.is_empty());
    let stats = site.rowlock.operate().stats().await.unwrap();
    assert_eq!((stats.total.pending, stats.total.held), (1, 1));
    client.execute("UPDATE rowlock_kind SET switch = NULL");
    assert_eq!(Some(site.claim_one(&worker, &["mail"]).await.id), answer.id);
}

pub async fn an_expired_switch_is_no_switch(world: World) {
    let site = world.open();
    let worker = site.join().await;
    site.rowlock
        .operate()
        .apply(&[Kind::new("mail").unwrap()])
        .await
        .unwrap();
    let mut client = world.home.client();
    let until = client.time(world.clock.now() + Duration::from_secs(60));
    client.execute(&format!(
        "UPDATE rowlock_kind SET switch = 'reject', switch_until = {until}"
    ));
    let answer = site.rowlock.enqueue(&job("mail")).await.unwrap();
    assert_eq!(answer.status, Status::Rejected);
    world.advance(Duration::from_secs(61));
    let answer = site.rowlock.enqueue(&job("mail")).await.unwrap();
    assert_eq!(answer.status, Status::Queued);
    assert_eq!(Some(site.claim_one(&worker, &["mail"]).await.id), answer.id);
}

pub async fn ids_rise_and_are_never_used_again(world: World) {
    let site = world.open();
    let first = site.stage(job("mail")).await;
    let second = site.stage(job("mail")).await;
    assert!(second > first);
    site.engine().delete(vec![first, second]).await.unwrap();
    assert!(site.is_gone(second).await);
    assert!(site.stage(job("mail")).await > second);
}
