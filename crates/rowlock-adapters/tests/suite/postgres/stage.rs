//! Staging in the application's transaction.

use std::sync::Arc;
use std::time::Duration;

use rowlock::job::{Backoff, UniqueUntil};
use rowlock::{Enqueued, Error, JobId, Name, NewJob, Status};

use super::driver::{Driver, End, Steps};
use super::store::Store;
use crate::stage::{create, job, odd_payload, queued};

fn both(notes: &str, jobs: &str) -> (String, String) {
    (notes.to_owned(), jobs.to_owned())
}

/// A kind whose key is a field of the payload.
const KEYED: &str = "INSERT INTO rowlock.kind (kind, key_fields) VALUES ('keyed', '{to}')";

pub async fn nobody_sees_the_row_or_the_job_before_the_commit(with: Arc<dyn Driver>) {
    let store = Store::new();
    let claim = || {
        let claim = store.claim("create");
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(claim))
    };
    let look = || {
        assert_eq!(store.seen(), both("0", "0"));
        assert!(claim().is_empty());
    };
    let steps = Steps {
        after: &look,
        ..Steps::to(End::Commit)
    };
    let staged = with.stage(store.url(), &[create(7)], steps).await;
    let id = queued(&staged.unwrap()[0]);
    let claimed = claim();
    assert_eq!(store.seen(), both("1", "1"));
    assert_eq!((claimed.len(), claimed[0].id), (1, id));
    assert_eq!(claimed[0].payload.as_str(), r#"{"id":7}"#);
}

pub async fn a_rollback_leaves_neither_the_row_nor_the_job(with: Arc<dyn Driver>) {
    let store = Store::new();
    let steps = Steps::to(End::Rollback);
    let staged = with.stage(store.url(), &[create(7)], steps).await;
    queued(&staged.unwrap()[0]);
    assert_eq!(store.seen(), both("0", "0"));
    // Its key is free, too.
    let steps = Steps::to(End::Commit);
    let again = with.stage(store.url(), &[create(7)], steps).await;
    queued(&again.unwrap()[0]);
}

pub async fn a_batch_is_staged_in_order(with: Arc<dyn Driver>) {
    let store = Store::new();
    let jobs: Vec<NewJob> = (0..30).map(create).collect();
    let steps = Steps::to(End::Commit);
    let staged = with.stage(store.url(), &jobs, steps).await.unwrap();
    let ids: Vec<JobId> = staged.iter().map(queued).collect();
    assert!(ids.is_sorted() && ids.len() == 30, "{ids:?}");
    assert_eq!(store.seen(), both("1", "30"));
    let none = with.stage(store.url(), &[], steps).await.unwrap();
    assert!(none.is_empty());
}

pub async fn a_refused_batch_leaves_nothing(with: Arc<dyn Driver>) {
    let store = Store::new();
    store.execute(KEYED);
    let jobs = [job("plain"), job("keyed")];
    let steps = Steps::to(End::Commit);
    let staged = with.stage(store.url(), &jobs, steps).await;
    assert!(
        matches!(staged, Err(Error::InvalidAt { index: 1, .. })),
        "{staged:?}"
    );
    assert_eq!(store.seen(), both("0", "0"));
}

pub async fn a_duplicate_is_answered_with_its_holder(with: Arc<dyn Driver>) {
    let store = Store::new();
    let jobs = [create(7), create(8), create(7)];
    let steps = Steps::to(End::Commit);
    let staged = with.stage(store.url(), &jobs, steps).await.unwrap();
    let duplicate = Enqueued {
        id: Some(queued(&staged[0])),
        status: Status::Duplicate,
    };
    assert_eq!(staged[2], duplicate);
    let again = with.stage(store.url(), &[create(7)], steps).await;
    assert_eq!(again.unwrap(), [duplicate]);
    assert_eq!(store.seen(), both("2", "2"));
}

pub async fn a_missing_key_field_is_named(with: Arc<dyn Driver>) {
    let store = Store::new();
    store.execute(KEYED);
    let steps = Steps::to(End::Commit);
    let staged = with.stage(store.url(), &[job("keyed")], steps).await;
    let Err(Error::Invalid(why)) = staged else {
        panic!("{staged:?}");
    };
    assert!(why.contains("\"to\""), "{why}");
}

pub async fn a_database_without_our_tables_is_refused_with_the_remedy(with: Arc<dyn Driver>) {
    let store = Store::bare();
    let steps = Steps::to(End::Commit);
    let staged = with.stage(store.url(), &[create(7)], steps).await;
    let Err(Error::Schema(why)) = staged else {
        panic!("{staged:?}");
    };
    assert!(why.contains("rowlock migrate up"), "{why}");
}

pub async fn a_lock_that_is_not_to_be_had_means_try_again(with: Arc<dyn Driver>) {
    let store = Store::new();
    // Somebody has the key, and hasn't committed.
    let taken = "BEGIN; SELECT * FROM rowlock.enqueue('create', '{}', unique_key => 'k')";
    store.execute(taken);
    let steps = Steps {
        prelude: "SET LOCAL lock_timeout = '10ms'",
        ..Steps::to(End::Commit)
    };
    let wanted = job("create").unique("k").unwrap();
    let staged = with.stage(store.url(), &[wanted], steps).await;
    assert!(matches!(staged, Err(Error::Unavailable(_))), "{staged:?}");
}

pub async fn a_transaction_that_has_failed_is_refused_with_the_remedy(with: Arc<dyn Driver>) {
    let store = Store::new();
    let steps = Steps {
        prelude: "SELECT 1 / 0",
        ..Steps::to(End::Commit)
    };
    let staged = with.stage(store.url(), &[create(7)], steps).await;
    let Err(Error::Invalid(why)) = staged else {
        panic!("{staged:?}");
    };
    assert!(why.contains("roll it back"), "{why}");
}

pub async fn every_setting_of_a_job_arrives(with: Arc<dyn Driver>) {
    let store = Store::new();
    let full = job("full")
        .payload_of(&odd_payload())
        .unwrap()
        .queue(Name::new("slow").unwrap())
        .priority(-3)
        .max_attempts(9)
        .unwrap()
        .delay(Duration::from_secs(3600))
        .unique("key:1")
        .unwrap()
        .unique_until(UniqueUntil::Start)
        .backoff(Backoff::Fixed {
            base: Duration::from_secs(2),
            jitter: 0.0,
        });
    let steps = Steps::to(End::Commit);
    let jobs = std::slice::from_ref(&full);
    let staged = with.stage(store.url(), jobs, steps).await.unwrap();
    let by_driver = store.job(queued(&staged[0])).await;
    let other = Store::new();
    let id = other.open().await.enqueue(&full).await.unwrap().id.unwrap();
    let by_engine = other.job(id).await;
    let seen = |job: &rowlock::Record| {
        let text = (job.payload.as_str().to_owned(), job.unique_key.clone());
        (text, job.queue.clone(), job.priority, job.max_attempts)
    };
    assert_eq!(seen(&by_driver), seen(&by_engine));
    let columns = "SELECT until_start || backoff::text FROM rowlock.job";
    assert_eq!(store.session.value(columns), other.session.value(columns));
    assert!(by_driver.scheduled_at > by_driver.created_at);
}
