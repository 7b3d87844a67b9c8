//! Hostile text: it is only text, whatever field it comes in.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rowlock::{Name, NewJob, Payload};
use serde_json::json;

use super::world::{Field, World};

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("'; DROP TABLE canary; --".to_owned()),
        Just("\"); DELETE FROM canary; --".to_owned()),
        Just("$.\"a\") OR 1=1 --".to_owned()),
        Just("*/ UPDATE canary SET alive = 0; /*".to_owned()),
        Just("%s%n ?1 :kind @x $1 \\".to_owned()),
        "[ -~]{1,40}",
        "\\PC{1,40}",
        ".{1,20}",
    ]
}

pub async fn hostile_text_is_only_text(world: World) {
    let client = std::cell::RefCell::new(world.home.client());
    client
        .borrow_mut()
        .execute("CREATE TABLE canary (alive INTEGER)");
    client.borrow_mut().execute("INSERT INTO canary VALUES (1)");
    let config = Config {
        cases: 300,
        failure_persistence: None,
        ..Config::default()
    };
    let ran = TestRunner::new(config).run(&hostile(), |text| {
        let mut client = client.borrow_mut();
        let valid = Name::new(text.clone()).is_ok();
        for column in ["kind", "queue"] {
            let mut fields = vec![("kind", Field::from("mail"))];
            fields.retain(|(name, _)| *name != column);
            fields.push((column, Field::from(text.as_str())));
            prop_assert_eq!(
                client.stage_by_sql(&fields).is_ok(),
                valid,
                "{} {:?}",
                column,
                &text
            );
        }
        let payload = Payload::of(&json!({ "text": text, "a": [text] }));
        let key = NewJob::new("mail").unwrap().unique(text.clone());
        prop_assert_eq!(payload.is_ok(), !text.contains('\0'));
        prop_assert_eq!(key.is_ok(), !text.contains('\0'));
        if let (Ok(payload), Ok(job)) = (payload, key) {
            let staged = client.stage(&job.payload(payload));
            prop_assert!(staged.is_ok(), "{:?}", staged);
        }
        Ok(())
    });
    ran.unwrap();
    let site = world.open();
    for found in site
        .rowlock
        .operate()
        .jobs(rowlock::engine::Filter {
            limit: 10_000,
            ..Default::default()
        })
        .await
        .unwrap()
    {
        if let Some(key) = &found.unique_key {
            let stored: serde_json::Value = found.payload.to().unwrap();
            assert_eq!(
                stored["text"],
                json!(key),
                "the text came back as it went in"
            );
        }
    }
    // It would fail if the table were gone or empty.
    client.borrow_mut().execute(
        "CREATE TABLE proof AS SELECT 1 / (SELECT count(*) FROM canary WHERE alive = 1) AS one",
    );
    client
        .borrow_mut()
        .execute("CREATE TABLE again (one INTEGER NOT NULL)");
    client
        .borrow_mut()
        .execute("INSERT INTO again SELECT one FROM proof");
    assert_eq!(client.borrow_mut().integrity(), "ok");
}
