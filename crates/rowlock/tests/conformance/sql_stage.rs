//! Staging in plain SQL keeps the rules of the library's call.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rowlock::job::UniqueUntil;
use rowlock::{Kind, Name, NewJob, Payload, Record};
use serde_json::json;

use super::world::{Client, Field, World, job, name};

/// What two ways of staging must agree on.
fn essence(record: &Record) -> serde_json::Value {
    let mut fields = serde_json::to_value(record).unwrap();
    let map = fields.as_object_mut().unwrap();
    for own in ["id", "idempotency_key", "created_at", "scheduled_at"] {
        map.remove(own);
    }
    fields
}

pub async fn sql_and_call_store_the_same_job(world: World) {
    let site = world.open();
    let mut kind = Kind::new("mail").unwrap();
    kind.queue = name("letters");
    kind.priority = 3;
    kind.max_attempts = 2;
    kind.unique_until = UniqueUntil::Start;
    kind.key = vec![name("to"), name("n")];
    site.rowlock.operate().apply(&[kind]).await.unwrap();
    let payloads = [
        json!({"to": "ada", "n": 1}),
        json!({"to": "\u{e9}\"\\\n", "n": 1.5}),
        json!({"to": true, "n": null}),
        json!({"to": {"b": [1, "x"], "a": null}, "n": [1, 2]}),
        json!({"n": -7, "to": "", "other": [[[]]]}),
        json!({"n": 18_446_744_073_709_551_615_u64, "to": 1e-9}),
    ];
    let mut client = world.home.client();
    for payload in payloads {
        let text = payload.to_string();
        let by_call = site.stage(job("mail").payload_of(&payload).unwrap()).await;
        let by_call = site.job(by_call).await;
        site.engine().delete(vec![by_call.id]).await.unwrap();
        client
            .stage_by_sql(&[("kind", "mail".into()), ("payload", text.as_str().into())])
            .unwrap();
        let by_sql = newest(&site).await;
        assert_eq!(essence(&by_call), essence(&by_sql));
        // The two share one key: staging again through the call finds the holder.
        let again = site
            .rowlock
            .enqueue(&job("mail").payload_of(&payload).unwrap())
            .await
            .unwrap();
        assert_eq!(again.id, Some(by_sql.id));
        // And a duplicate by SQL is silent.
        client
            .stage_by_sql(&[("kind", "mail".into()), ("payload", text.as_str().into())])
            .unwrap();
        assert_eq!(newest(&site).await.id, by_sql.id);
        site.engine().delete(vec![by_sql.id]).await.unwrap();
    }
    let full = job("other")
        .queue(name("q"))
        .priority(-5)
        .max_attempts(7)
        .unwrap()
        .unique("k")
        .unwrap()
        .unique_until(UniqueUntil::Start)
        .tag(name("a"))
        .tag(name("b"));
    let by_call = site.job(site.stage(full).await).await;
    site.engine().delete(vec![by_call.id]).await.unwrap();
    client
        .stage_by_sql(&[
            ("kind", "other".into()),
            ("queue", "q".into()),
            ("priority", Field::Int(-5)),
            ("max_attempts", Field::Int(7)),
            ("unique_key", "k".into()),
            ("unique_until", "start".into()),
            ("tags", "[\"a\", \"b\"]".into()),
            ("scheduled_at", Field::Int(1_000)),
        ])
        .unwrap();
    let by_sql = newest(&site).await;
    assert_eq!(essence(&by_call), essence(&by_sql));
    assert_eq!(by_sql.scheduled_at.as_millisecond(), 1_000);
}

async fn newest(site: &super::world::Site) -> Record {
    let filter = rowlock::engine::Filter {
        limit: 1_000,
        ..Default::default()
    };
    site.rowlock
        .operate()
        .jobs(filter)
        .await
        .unwrap()
        .pop()
        .unwrap()
}

pub async fn sql_refuses_what_the_library_refuses(world: World) {
    let site = world.open();
    let mut keyed = Kind::new("keyed").unwrap();
    keyed.key = vec![name("to")];
    site.rowlock.operate().apply(&[keyed]).await.unwrap();
    let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
    let wide = format!("[{}]", vec!["[]"; 10_000].join(","));
    let huge = format!("\"{}\"", "x".repeat(Payload::MAX_BYTES));
    let mut client = world.home.client();
    let kind = || ("kind", Field::from("mail"));
    let bad: Vec<Vec<(&str, Field)>> = vec![
        vec![("kind", "".into())],
        vec![("kind", "a b".into())],
        vec![("kind", "-a".into())],
        vec![("kind", "x".repeat(64).as_str().into())],
        vec![("kind", "x'; DROP TABLE rowlock_job; --".into())],
        vec![("kind", "a\0b".into())],
        vec![("kind", Field::Int(7))],
        vec![("kind", Field::Bytes(vec![0xff]))],
        vec![("payload", "{}".into())],
        vec![kind(), ("queue", "\u{e9}".into())],
        vec![kind(), ("payload", "{".into())],
        vec![kind(), ("payload", "{a:1}".into())],
        vec![kind(), ("payload", deep.as_str().into())],
        vec![kind(), ("payload", huge.as_str().into())],
        vec![kind(), ("payload", r#"{"a":"\u0000"}"#.into())],
        vec![kind(), ("payload", r#"{"twice":1,"twice":2}"#.into())],
        vec![kind(), ("payload", "[1e400]".into())],
        vec![kind(), ("payload", "\"a\"\0".into())],
        vec![kind(), ("priority", Field::Int(40_000))],
        vec![kind(), ("priority", "high".into())],
        vec![kind(), ("max_attempts", Field::Int(0))],
        vec![kind(), ("scheduled_at", "soon".into())],
        vec![kind(), ("unique_key", "".into())],
        vec![kind(), ("unique_key", "a\0b".into())],
        vec![kind(), ("unique_until", "never".into())],
        vec![kind(), ("tags", "red".into())],
        vec![kind(), ("tags", "[[1]]".into())],
        vec![kind(), ("tags", "[\"a b\"]".into())],
        vec![("kind", "keyed".into())],
        vec![("kind", "keyed".into()), ("payload", "[]".into())],
    ];
    let as_written = client.sees_json_as_written();
    for fields in &bad {
        let shown: String = format!("{fields:?}").chars().take(120).collect();
        if shown.contains(TWICE) && !as_written {
            continue;
        }
        let Err(refused) = client.stage_by_sql(fields) else {
            panic!("{shown} was taken")
        };
        // Where the arguments have types, the database itself refuses some before we can.
        assert!(
            !as_written || refused.contains("rowlock: "),
            "{shown}: {refused}"
        );
    }
    assert_eq!(
        site.rowlock.operate().stats().await.unwrap().total.pending,
        0
    );
    for good in [wide.as_str(), r#"{"a":"\\u0000"}"#, "1", "null", "\"x\""] {
        client
            .stage_by_sql(&[kind(), ("payload", good.into())])
            .unwrap();
    }
}

/// Part of a payload that repeats a field.
const TWICE: &str = "twice";

/// Runs a property over generated inputs, on one store.
fn check<S: Strategy>(inputs: S, holds: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config {
        cases: 400,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config).run(&inputs, holds).unwrap();
}

fn taken(client: &mut dyn Client, kind: &str, payload: &str) -> bool {
    client.begin();
    let fields = [
        ("kind", Field::from(kind)),
        ("payload", Field::from(payload)),
    ];
    let taken = client.stage_by_sql(&fields).is_ok();
    client.rollback();
    taken
}

fn json_like() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:e}")),
        "[ -~]{0,8}".prop_map(|text| json!(text).to_string()),
        "\\PC{0,8}".prop_map(|text| json!(text).to_string()),
        Just("\"\\u0000\"".to_owned()),
        Just("\"\\\\u0000\"".to_owned()),
        Just("nan".to_owned()),
        "[\\[\\]{}:,\" a0\\\\]{0,6}",
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(" , "))),
            prop::collection::vec(("[a-c]", inner), 0..4).prop_map(|fields| {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(key, value)| format!("\"{key}\": {value}"))
                    .collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

pub async fn any_payload_is_taken_by_both_or_by_neither(world: World) {
    let client = std::cell::RefCell::new(world.home.client());
    check(json_like(), |text| {
        let parsed = Payload::parse(&text);
        let by_sql = taken(&mut **client.borrow_mut(), "mail", &text);
        let repeats = |why: &rowlock::Error| why.to_string().contains("appears twice");
        if !client.borrow().sees_json_as_written() && parsed.as_ref().is_err_and(repeats) {
            return Ok(());
        }
        prop_assert_eq!(parsed.is_ok(), by_sql, "{}: {:?}", text, parsed);
        if let Ok(payload) = parsed {
            let new = NewJob::new("mail").unwrap().payload(payload.clone());
            client
                .borrow_mut()
                .stage(&new)
                .map_err(|why| TestCaseError::fail(why.to_string()))?;
            let again = Payload::parse(payload.as_str()).unwrap();
            prop_assert_eq!(again, payload);
        }
        Ok(())
    });
}

pub async fn any_name_is_taken_by_both_or_by_neither(world: World) {
    let client = std::cell::RefCell::new(world.home.client());
    let names = prop_oneof![
        "[a-z0-9_.:-]{0,66}",
        "\\PC{0,70}",
        "[a-z][ '\";%\\\\\\x00-\\x1f]{0,3}"
    ];
    check(names, |text| {
        let known = Name::new(text.clone()).is_ok();
        let rule = !text.is_empty()
            && text.len() <= 63
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_.:-".contains(c))
            && !text.starts_with(['.', ':', '-']);
        prop_assert_eq!(known, rule, "{:?}", text);
        prop_assert_eq!(
            known,
            taken(&mut **client.borrow_mut(), &text, "{}"),
            "{:?}",
            text
        );
        Ok(())
    });
    assert_eq!(client.borrow_mut().integrity(), "ok");
}
