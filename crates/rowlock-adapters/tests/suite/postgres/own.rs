//! What only one driver has, and what none of them may forget.

use std::sync::Arc;

use diesel::connection::Connection as _;
use diesel_async::AsyncConnection as _;
use libtest_mimic::Trial;
use rowlock::engine::postgres::Schema;
use rowlock::{Context, Error, NewJob, Outcome};
use sea_orm::TransactionTrait as _;
use sqlx::Connection as _;

use super::complete::work;
use super::store::{NOTE, Store, migrate};
use super::{through_sea_orm, through_tokio_postgres};
use crate::complete::kind;
use crate::plain;

/// Names them.
macro_rules! own {
    ($($case:ident),*) => {
        pub fn trials() -> Vec<Trial> {
            vec![$(plain(concat!("postgres::", stringify!($case)), $case)),*]
        }
    };
}

own!(
    plain_sql_stages_in_its_transaction,
    completing_outside_a_transaction_is_refused,
    every_form_of_a_connection_stages,
    a_savepoint_outlives_a_refusal,
    another_schema_is_named_by_on
);

fn job() -> NewJob {
    NewJob::new("note").unwrap()
}

fn plain_sql_stages_in_its_transaction() {
    let store = Store::new();
    let other = rowlock_testbed::Session::open(store.url());
    let both = |notes: &str, jobs: &str| (notes.to_owned(), jobs.to_owned());
    for (end, notes, jobs) in [("ROLLBACK", "0", "0"), ("COMMIT", "1", "1")] {
        other.execute("BEGIN").unwrap();
        other.execute(NOTE).unwrap();
        let rows = other
            .query("SELECT * FROM rowlock.enqueue('mail')")
            .unwrap();
        assert_eq!(rows[0][1].as_deref(), Some("queued"));
        assert_eq!(store.seen(), both("0", "0"));
        other.execute(end).unwrap();
        assert_eq!(store.seen(), both(notes, jobs));
    }
    let claimed = crate::runtime().block_on(store.claim("mail"));
    assert_eq!(claimed.len(), 1);
}

fn completing_outside_a_transaction_is_refused() {
    let store = Arc::new(Store::new());
    crate::runtime().block_on(async {
        store.open().await.enqueue(&job()).await.unwrap();
        let inside = Arc::clone(&store);
        let handler = move |cx: Context| {
            let store = Arc::clone(&inside);
            async move {
                let url = store.url();
                let mut diesel = diesel::PgConnection::establish(url).unwrap();
                let refused = cx.complete_in_blocking(&mut diesel);
                assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
                drop(diesel);
                let connect = diesel_async::AsyncPgConnection::establish(url);
                let mut diesel = connect.await.unwrap();
                let refused = cx.complete_in(&mut diesel).await;
                assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
                assert_eq!(store.state(cx.id), "processing");
                Outcome::Done
            }
        };
        let tally = work(&store, kind(), handler).await;
        assert_eq!((tally.settled, tally.lost), (1, 0));
    });
}

fn every_form_of_a_connection_stages() {
    let store = Store::new();
    let job = job();
    let mut diesel = diesel::PgConnection::establish(store.url()).unwrap();
    rowlock::enqueue_blocking(&mut diesel, &job).unwrap();
    crate::runtime().block_on(async {
        let rowlock = store.open().await;
        rowlock::enqueue(&rowlock, &job).await.unwrap();
        let mut client = through_tokio_postgres::connect(store.url()).await;
        rowlock::enqueue(&client, &job).await.unwrap();
        rowlock::enqueue(&mut client, &job).await.unwrap();
        let mut tx = client.transaction().await.unwrap();
        rowlock::enqueue(&tx, &job).await.unwrap();
        rowlock::enqueue(&mut tx, &job).await.unwrap();
        tx.commit().await.unwrap();
        let mut sqlx = sqlx::PgConnection::connect(store.url()).await.unwrap();
        rowlock::enqueue(&mut sqlx, &job).await.unwrap();
        let mut tx = sqlx.begin().await.unwrap();
        rowlock::enqueue(&mut *tx, &job).await.unwrap();
        rowlock::enqueue(&mut tx, &job).await.unwrap();
        tx.commit().await.unwrap();
        let diesel = diesel_async::AsyncPgConnection::establish(store.url());
        rowlock::enqueue(&mut diesel.await.unwrap(), &job)
            .await
            .unwrap();
        let sea_orm = through_sea_orm::connect(store.url()).await;
        rowlock::enqueue(&sea_orm, &job).await.unwrap();
        let mut tx = sea_orm.begin().await.unwrap();
        rowlock::enqueue(&tx, &job).await.unwrap();
        rowlock::enqueue(&mut tx, &job).await.unwrap();
        tx.commit().await.unwrap();
    });
    assert_eq!(store.seen().1, "13");
}

/// A refusal ends the transaction, as every error in PostgreSQL does, but not what came before a
/// savepoint.
fn a_savepoint_outlives_a_refusal() {
    let store = Store::new();
    store.execute("INSERT INTO rowlock.kind (kind, key_fields) VALUES ('keyed', '{to}')");
    let keyed = NewJob::new("keyed").unwrap();
    crate::runtime().block_on(async {
        let mut sqlx = sqlx::PgConnection::connect(store.url()).await.unwrap();
        let mut tx = sqlx.begin().await.unwrap();
        sqlx::query(NOTE).execute(&mut *tx).await.unwrap();
        let mut savepoint = tx.begin().await.unwrap();
        let refused = rowlock::enqueue(&mut savepoint, &keyed).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        savepoint.rollback().await.unwrap();
        tx.commit().await.unwrap();
    });
    assert_eq!(store.seen(), ("1".to_owned(), "0".to_owned()));
}

fn another_schema_is_named_by_on() {
    let store = Arc::new(Store::new());
    let schema = Schema::new("jobs_of_ours").unwrap();
    let address = store.address().schema(schema.clone());
    migrate(&address);
    let job = job();
    let mut diesel = diesel::PgConnection::establish(store.url()).unwrap();
    rowlock::enqueue_blocking(schema.on(&mut diesel), &job).unwrap();
    crate::runtime().block_on(async {
        let client = through_tokio_postgres::connect(store.url()).await;
        rowlock::enqueue(schema.on(&client), &job).await.unwrap();
        let mut sqlx = sqlx::PgConnection::connect(store.url()).await.unwrap();
        rowlock::enqueue(schema.on(&mut sqlx), &job).await.unwrap();
        let diesel = diesel_async::AsyncPgConnection::establish(store.url());
        let mut diesel = diesel.await.unwrap();
        rowlock::enqueue(schema.on(&mut diesel), &job)
            .await
            .unwrap();
        let sea_orm = through_sea_orm::connect(store.url()).await;
        rowlock::enqueue(schema.on(&sea_orm), &job).await.unwrap();
        let count = "SELECT count(*) FROM jobs_of_ours.jobs";
        assert_eq!(
            (store.session.value(count).as_str(), store.seen().1.as_str()),
            ("5", "0")
        );
    });
}
