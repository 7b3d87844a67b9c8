//! Unique keys: one live job per key.

use rowlock::job::UniqueUntil;
use rowlock::settle::Verdict;
use rowlock::{Kind, NewJob, Outcome, Status};
use serde_json::{Value, json};

use super::world::{World, error, failed, job, name};

async fn keyed(world: &World) -> super::world::Site {
    let site = world.open();
    let mut kind = Kind::new("mail").unwrap();
    kind.key = vec![name("to"), name("n")];
    site.rowlock.operate().apply(&[kind]).await.unwrap();
    site
}

fn mail(to: Value, n: Value) -> NewJob {
    job("mail").payload_of(&json!({"to": to, "n": n})).unwrap()
}

pub async fn a_duplicate_is_answered_with_its_holder(world: World) {
    let site = keyed(&world).await;
    let first = site.stage(mail(json!("ada"), json!(1))).await;
    let again = site
        .rowlock
        .enqueue(&mail(json!("ada"), json!(1)))
        .await
        .unwrap();
    assert_eq!((again.id, again.status), (Some(first), Status::Duplicate));
    let other = site
        .rowlock
        .enqueue(&mail(json!("ada"), json!(2)))
        .await
        .unwrap();
    assert_eq!(other.status, Status::Queued);

    let first = site.stage(job("call").unique("x").unwrap()).await;
    let again = site
        .rowlock
        .enqueue(&job("call").unique("x").unwrap())
        .await
        .unwrap();
    assert_eq!((again.id, again.status), (Some(first), Status::Duplicate));
}

pub async fn a_key_until_finished_is_freed_by_every_end(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let again = || async {
        let answer = site
            .rowlock
            .enqueue(&job("call").unique("x").unwrap())
            .await;
        answer.unwrap().status
    };
    assert_eq!(again().await, Status::Queued);
    for end in ["done", "not needed", "fail", "cancelled", "sent"] {
        assert_eq!(again().await, Status::Duplicate, "pending, before {end}");
        let claimed = site.claim_one(&worker, &["call"]).await;
        assert_eq!(again().await, Status::Duplicate, "running, before {end}");
        let verdict = match end {
            "done" => Verdict::Done,
            "not needed" => Verdict::NotNeeded,
            "fail" => Verdict::Fail(error(&claimed, &world)),
            "cancelled" => Verdict::Cancelled,
            _ if site.dispatch().capabilities().drained => Verdict::Done,
            _ => Verdict::Sent,
        };
        site.settle(&claimed, verdict).await;
        assert_eq!(again().await, Status::Queued, "after {end}");
    }
    let pending = site
        .rowlock
        .enqueue(&job("call").unique("x").unwrap())
        .await
        .unwrap();
    site.engine()
        .cancel(vec![pending.id.unwrap()])
        .await
        .unwrap();
    assert_eq!(again().await, Status::Queued, "after a cancel");
}

pub async fn a_key_until_start_is_freed_at_the_claim_and_not_taken_again(world: World) {
    let site = world.open();
    let worker = site.join().await;
    let new = || {
        job("call")
            .unique("x")
            .unwrap()
            .unique_until(UniqueUntil::Start)
    };
    let first = site.stage(new()).await;
    let again = site.rowlock.enqueue(&new()).await.unwrap();
    assert_eq!((again.id, again.status), (Some(first), Status::Duplicate));

    let claimed = site.claim_one(&worker, &["call"]).await;
    let second = site.rowlock.enqueue(&new()).await.unwrap();
    assert_eq!(second.status, Status::Queued);
    // The retry of the first would collide if it took its key again.
    site.finish(&claimed, failed()).await;
    assert_eq!(site.job(first).await.unique_key.as_deref(), Some("x"));
    let third = site.rowlock.enqueue(&new()).await.unwrap();
    assert_eq!((third.id, third.status), (second.id, Status::Duplicate));
}

pub async fn keys_belong_to_their_kind(world: World) {
    let site = world.open();
    site.stage(job("call").unique("x").unwrap()).await;
    let other = site
        .rowlock
        .enqueue(&job("mail").unique("x").unwrap())
        .await
        .unwrap();
    assert_eq!(other.status, Status::Queued);
}

pub async fn a_missing_key_field_is_invalid(world: World) {
    let site = keyed(&world).await;
    let lacks = job("mail").payload_of(&json!({"to": "ada"})).unwrap();
    let refused = site.rowlock.enqueue(&lacks).await.unwrap_err().to_string();
    assert!(refused.contains("\"n\""), "{refused}");
    let no_object = job("mail").payload_of(&json!([1, 2])).unwrap();
    assert!(site.rowlock.enqueue(&no_object).await.is_err());
    // An explicit key needs no fields.
    let explicit = job("mail").unique("own").unwrap();
    assert_eq!(
        site.rowlock.enqueue(&explicit).await.unwrap().status,
        Status::Queued
    );
}

pub async fn values_of_different_types_are_different_keys(world: World) {
    let site = keyed(&world).await;
    let values = [
        json!(1),
        json!("1"),
        json!(true),
        json!("true"),
        json!(null),
        json!("null"),
        json!(1.5),
        json!(18_446_744_073_709_551_615_u64),
        json!(18_446_744_073_709_551_614_u64),
        json!([1]),
        json!({"a": 1}),
        json!("[1]"),
        json!(""),
        json!("\",\""),
    ];
    for value in &values {
        let answer = site
            .rowlock
            .enqueue(&mail(json!("ada"), value.clone()))
            .await
            .unwrap();
        assert_eq!(answer.status, Status::Queued, "{value}");
    }
    for value in &values {
        let answer = site
            .rowlock
            .enqueue(&mail(json!("ada"), value.clone()))
            .await
            .unwrap();
        assert_eq!(answer.status, Status::Duplicate, "{value}");
    }
}

pub async fn a_long_key_is_a_key(world: World) {
    let site = keyed(&world).await;
    let worker = site.join().await;
    let long = |end: &str| mail(json!("x".repeat(100_000) + end), json!(1));
    let first = site.stage(long("a")).await;
    let again = site.rowlock.enqueue(&long("a")).await.unwrap();
    assert_eq!((again.id, again.status), (Some(first), Status::Duplicate));
    let other = site.rowlock.enqueue(&long("b")).await.unwrap();
    assert_eq!(other.status, Status::Queued);
    let claimed = site.claim_one(&worker, &["mail"]).await;
    site.finish(&claimed, Outcome::Done).await;
    assert_eq!(
        site.rowlock.enqueue(&long("a")).await.unwrap().status,
        Status::Queued
    );
}
