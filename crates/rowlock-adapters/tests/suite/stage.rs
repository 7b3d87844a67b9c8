//! Staging in the application's transaction.

use std::sync::Arc;
use std::time::Duration;

use rowlock::job::{Backoff, UniqueUntil};
use rowlock::{Enqueued, Error, Job, JobId, Name, NewJob, Status};
use serde::{Deserialize, Serialize};

use crate::driver::{Driver, End};
use crate::file::File;

#[derive(Serialize, Deserialize)]
struct Create {
    id: i64,
}

impl Job for Create {
    const KIND: &'static str = "create";
    const KEY: &'static [&'static str] = &["id"];
}

pub fn create(id: i64) -> NewJob {
    rowlock::Enqueueable::new_job(&Create { id }).unwrap()
}

pub fn job(kind: &str) -> NewJob {
    NewJob::new(kind).unwrap()
}

pub fn queued(answer: &Enqueued) -> JobId {
    assert_eq!(answer.status, Status::Queued);
    answer.id.unwrap()
}

pub async fn a_commit_keeps_the_row_and_the_job(with: Arc<dyn Driver>) {
    let file = File::new();
    let staged = with.stage(&file.path, "", &[create(7)], End::Commit).await;
    let id = queued(&staged.unwrap()[0]);
    assert_eq!((file.notes(), file.jobs()), (1, 1));
    let stored = file.job(id).await;
    assert_eq!(stored.kind.as_str(), "create");
    assert_eq!(stored.payload.as_str(), r#"{"id":7}"#);
}

pub async fn a_rollback_leaves_neither_the_row_nor_the_job(with: Arc<dyn Driver>) {
    let file = File::new();
    let staged = with
        .stage(&file.path, "", &[create(7)], End::Rollback)
        .await;
    queued(&staged.unwrap()[0]);
    assert_eq!((file.notes(), file.jobs()), (0, 0));
}

pub async fn a_batch_is_staged_in_order(with: Arc<dyn Driver>) {
    let file = File::new();
    let jobs: Vec<NewJob> = (0..30).map(create).collect();
    let staged = with.stage(&file.path, "", &jobs, End::Commit).await;
    let ids: Vec<JobId> = staged.unwrap().iter().map(queued).collect();
    assert!(ids.is_sorted() && ids.len() == 30, "{ids:?}");
    assert_eq!((file.notes(), file.jobs()), (1, 30));
}

pub async fn a_refused_batch_leaves_nothing_and_the_callers_row_stays(with: Arc<dyn Driver>) {
    let file = File::new();
    file.execute("INSERT INTO rowlock_kind (kind, key_fields) VALUES ('keyed', '[\"to\"]')");
    let jobs = [job("plain"), job("keyed")];
    let staged = with.stage(&file.path, "", &jobs, End::Commit).await;
    assert!(
        matches!(staged, Err(Error::InvalidAt { index: 1, .. })),
        "{staged:?}"
    );
    assert_eq!((file.notes(), file.jobs()), (1, 0));
}

pub async fn a_duplicate_is_answered_with_its_holder(with: Arc<dyn Driver>) {
    let file = File::new();
    let jobs = [create(7), create(8), create(7)];
    let staged = with
        .stage(&file.path, "", &jobs, End::Commit)
        .await
        .unwrap();
    let holder = queued(&staged[0]);
    let duplicate = Enqueued {
        id: Some(holder),
        status: Status::Duplicate,
    };
    assert_eq!(staged[2], duplicate);
    let again = with.stage(&file.path, "", &[create(7)], End::Commit).await;
    assert_eq!(again.unwrap(), [duplicate]);
    assert_eq!(file.jobs(), 2);
}

pub async fn a_missing_key_field_is_named(with: Arc<dyn Driver>) {
    let file = File::new();
    file.execute("INSERT INTO rowlock_kind (kind, key_fields) VALUES ('keyed', '[\"to\"]')");
    let staged = with
        .stage(&file.path, "", &[job("keyed")], End::Commit)
        .await;
    let Err(Error::Invalid(why)) = staged else {
        panic!("{staged:?}");
    };
    assert!(why.contains("\"to\""), "{why}");
}

pub async fn an_attached_file_is_refused_with_the_remedy(with: Arc<dyn Driver>) {
    let (app, jobs) = (File::bare(), File::new());
    for batch in [vec![create(7)], vec![create(7), create(8)]] {
        let staged = with
            .stage(&app.path, &jobs.attach(), &batch, End::Commit)
            .await;
        let Err(Error::Schema(why)) = staged else {
            panic!("{staged:?}");
        };
        assert!(why.contains("url = \"sqlite:app.db\""), "{why}");
    }
    assert_eq!((app.notes(), jobs.jobs()), (2, 0));
}

pub async fn a_locked_file_means_try_again(with: Arc<dyn Driver>) {
    let file = File::new();
    let other = file.connect();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let impatient = "PRAGMA busy_timeout = 0";
    let staged = with
        .stage(&file.path, impatient, &[create(7)], End::Rollback)
        .await;
    assert!(matches!(staged, Err(Error::Unavailable(_))), "{staged:?}");
}

pub async fn every_setting_of_a_job_arrives(with: Arc<dyn Driver>) {
    let file = File::new();
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
    let staged = with
        .stage(&file.path, "", std::slice::from_ref(&full), End::Commit)
        .await;
    let by_driver = file.job(queued(&staged.unwrap()[0])).await;
    let other = File::new();
    let id = other.open().enqueue(&full).await.unwrap().id.unwrap();
    let by_engine = other.job(id).await;
    let seen = |job: &rowlock::Record| {
        let text = (job.payload.as_str().to_owned(), job.unique_key.clone());
        (text, job.queue.clone(), job.priority, job.max_attempts)
    };
    assert_eq!(seen(&by_driver), seen(&by_engine));
    let columns = "SELECT unique_until || backoff FROM rowlock_job";
    let rest = |file: &File| -> String {
        let row = file.connect();
        row.query_row(columns, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(rest(&file), rest(&other));
    assert!(by_driver.scheduled_at > by_driver.created_at);
}

/// A payload beyond ASCII.
pub fn odd_payload() -> std::collections::BTreeMap<&'static str, &'static str> {
    [("name", "Ζoë \u{1f980} \"quoted\"")].into()
}
