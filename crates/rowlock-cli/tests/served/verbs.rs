//! The verbs of the command line, over HTTP.

use serde_json::{Value, json};

use super::{Ask, Home, Served, furnish, ok};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

pub fn a_job_is_added_seen_and_changed_as_on_the_command_line(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    let trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
    let body = r#"{"kind":"echo","payload":{"b":1,"a":2},"tags":["red"],"unique_key":"k"}"#;
    let ask = Ask::new("POST", "/jobs")
        .json(body)
        .with("traceparent", trace);
    let added = served.ask(&ask);
    assert_eq!(added.status, 201, "{added:?}");
    let id = added.json()["id"].as_i64().unwrap();
    assert_eq!(
        added.json(),
        json!({ "id": id, "status": "queued", "warning": null })
    );
    let again = served.post("/jobs", body).ok();
    assert_eq!(
        (&again["id"], &again["status"]),
        (&json!(id), &json!("duplicate"))
    );
    let shown = served.get(&format!("/jobs/{id}")).ok();
    assert_eq!(
        shown,
        parsed(&ok(home, &["job", "show", &id.to_string(), "--json"]))
    );
    assert_eq!(shown["trace_context"], trace);
    let unknown = served.post("/jobs", r#"{"kind":"stranger"}"#).ok();
    assert!(
        unknown["warning"]
            .as_str()
            .unwrap()
            .contains("nobody is known"),
        "{unknown}"
    );
    let batch = r#"{"jobs":[{"kind":"echo"},{"kind":"echo","unique_key":"k"}]}"#;
    let batch = served.post("/jobs/batch", batch).ok();
    assert_eq!(
        batch["items"][1],
        json!({ "id": id, "status": "duplicate" })
    );
    let bad = served.post(
        "/jobs/batch",
        r#"{"jobs":[{"kind":"echo"},{"kind":"a b"}]}"#,
    );
    assert_eq!(bad.status, 400);
    assert!(bad.body.contains("job 2 of the batch"), "{bad:?}");
    let path = format!("/jobs/{id}");
    let cancelled = served.post(&format!("{path}/cancel"), "{}").ok();
    assert_eq!(cancelled, json!({ "id": id, "status": "cancelled" }));
    assert_eq!(
        served.post(&format!("{path}/cancel"), "{}").code(),
        "conflict"
    );
    assert_eq!(
        served.post(&format!("{path}/retry"), "").ok()["status"],
        "retried"
    );
    assert_eq!(
        served.ask(&Ask::new("DELETE", &path)).ok()["status"],
        "deleted"
    );
    let gone = served.get(&path);
    assert_eq!((gone.status, gone.code().as_str()), (404, "not_found"));
    assert_eq!(served.post("/jobs/999/retry", "{}").status, 404);
}

pub fn many_jobs_are_counted_first_and_changed_when_confirmed(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    let jobs: Vec<Value> = (0..450)
        .map(|n| json!({ "kind": "bulk", "payload": n }))
        .collect();
    served
        .post("/jobs/batch", &json!({ "jobs": jobs }).to_string())
        .ok();
    let filter = json!({ "kind": "bulk" });
    let ask = |action: &str, confirm: bool| {
        let body = json!({ "action": action, "filter": filter, "confirm": confirm });
        served.post("/jobs/bulk", &body.to_string()).ok()
    };
    let counted = json!({
        "action": "cancel", "confirmed": false, "count": 450, "capped": false, "next": null,
    });
    assert_eq!(ask("cancel", false), counted);
    assert_eq!(
        served.get("/jobs?kind=bulk&state=cancelled").ok()["items"],
        json!([])
    );
    let done = ask("cancel", true);
    assert_eq!(
        (&done["changed"], &done["next"]),
        (&json!({ "cancelled": 450 }), &Value::Null)
    );
    // A list goes the other way: from its cursor other jobs would be changed.
    let body = json!({ "action": "delete", "filter": filter, "confirm": true, "cursor": "n200" });
    assert_eq!(served.post("/jobs/bulk", &body.to_string()).status, 400);
    // What has ended is left alone, and retry means failed unless another state is named.
    assert_eq!(ask("cancel", true)["changed"], json!({}));
    assert_eq!(ask("retry", true)["changed"], json!({}));
    assert_eq!(ask("delete", true)["changed"], json!({ "deleted": 450 }));
    let ids = json!({ "action": "cancel", "ids": [2, 2, 999], "confirm": true });
    let named = served.post("/jobs/bulk", &ids.to_string()).ok();
    assert_eq!(
        (&named["changed"], &named["missing"]),
        (&json!({ "cancelled": 1 }), &json!(1))
    );
    let all = json!({ "action": "delete", "all": true });
    assert_eq!(
        served.post("/jobs/bulk", &all.to_string()).ok()["confirmed"],
        false
    );
}

pub fn cursors_walk_every_job_once_while_jobs_are_added(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    let jobs: Vec<Value> = (0..95).map(|_| json!({ "kind": "walk" })).collect();
    let added = served
        .post("/jobs/batch", &json!({ "jobs": jobs }).to_string())
        .ok();
    let ids = |list: &Value| -> Vec<i64> {
        let list = list["items"].as_array().unwrap().iter();
        list.map(|job| job["id"].as_i64().unwrap()).collect()
    };
    let wanted = ids(&added);
    for order in ["oldest", "newest"] {
        let mut seen = Vec::new();
        let mut path = format!("/jobs?kind=walk&limit=10&order={order}");
        for _ in 0..15 {
            let page = served.get(&path).ok();
            seen.extend(ids(&page));
            served.post("/jobs", r#"{"kind":"walk"}"#).ok();
            let Some(next) = page["next"].as_str() else {
                break;
            };
            path = format!("/jobs?kind=walk&limit=10&cursor={next}");
        }
        let mut once = seen.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), seen.len(), "{order}: {seen:?}");
        assert!(
            wanted.iter().all(|id| seen.contains(id)),
            "{order}: {seen:?}"
        );
    }
}

pub fn queues_switches_crons_and_pairs_are_run_and_stopped(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    let item = |path: &str, field: &str, name: &str| -> Value {
        let list = served.get(path).ok();
        let mut items = list["items"].as_array().unwrap().iter();
        items
            .find(|each| each[field] == name)
            .cloned()
            .unwrap_or_default()
    };
    served
        .post("/queues/default/pause", r#"{"reason":"provider is down"}"#)
        .ok();
    let queue = item("/queues", "queue", "default");
    assert_eq!(
        (&queue["paused"], &queue["reason"]),
        (&json!(true), &json!("provider is down"))
    );
    assert_eq!(
        (&queue["pending"], &queue["capped"]),
        (&json!(3), &json!(false))
    );
    served.post("/queues/default/resume", "{}").ok();
    assert_eq!(served.post("/queues/default/resume", "{}").status, 404);
    assert_eq!(item("/queues", "queue", "mail")["paused"], true);
    let stats = served.get("/stats").ok();
    assert_eq!(
        (&stats["pending"], &stats["cancelled"]),
        (&json!(3), &json!(1))
    );
    let switch = Ask::new("PUT", "/switches/pair/make");
    let set = switch.json(r#"{"mode":"pause","reason":"x","for":"1h"}"#);
    let set = served.ask(&set).ok();
    assert!(
        set["warnings"][0]
            .as_str()
            .unwrap()
            .contains("THE PAIR make"),
        "{set}"
    );
    let on = item("/switches", "name", "make");
    assert_eq!(
        (&on["by"], &on["until"]),
        (&json!("api (operator)"), &set["until"])
    );
    assert_eq!(served.post("/pairs/make/run", "{}").code(), "conflict");
    let dry = served.post("/pairs/make/run", r#"{"dry_run":true}"#).ok();
    assert_eq!(
        (&dry["found"], &dry["enqueued"], &dry["dry"]),
        (&json!(1), &json!(1), &json!(true))
    );
    let clear = Ask::new("DELETE", "/switches/pair/make");
    assert_eq!(served.ask(&clear).ok()["mode"], Value::Null);
    assert_eq!(served.ask(&clear).status, 404);
    let run = served.post("/pairs/make/run", "{}").ok();
    assert_eq!(
        (&run["enqueued"], &dry["keys"]),
        (&json!(1), &json!(["[7]"]))
    );
    assert_eq!(served.post("/pairs/make/run", "{}").ok()["live"], 1);
    assert_eq!(served.get("/pairs/make").ok()["name"], "make");
    assert_eq!(served.get("/pairs/mak").status, 404);
    assert_eq!(served.get("/pairs/make/keys").ok()["next"], Value::Null);
    assert_eq!(
        served.post("/pairs/make/lift", r#"{"keys":["7"]}"#).status,
        404
    );
    assert_eq!(
        served.post("/pairs/make/lift", r#"{"all":true}"#).status,
        200
    );
    let ran = served.post("/crons/nightly/run", "{}").ok();
    assert_eq!(ran["status"], "queued");
    served.post("/crons/nightly/pause", "{}").ok();
    assert_eq!(item("/crons", "name", "nightly")["paused"], true);
    let on = served.post("/crons/nightly/resume", "{}").ok();
    assert_eq!(on["next_at"], item("/crons", "name", "nightly")["next_at"]);
    assert_eq!(item("/kinds", "name", "echo")["queue"], "default");
    assert_eq!(served.get("/workers").ok()["items"], json!([]));
    assert_eq!(served.get("/jobs/running").ok()["items"], json!([]));
    assert_eq!(served.get("/routes").ok()["items"], json!([]));
    let checkup = served.get("/doctor").ok();
    let codes = checkup["findings"].as_array().unwrap().iter();
    assert!(
        codes.clone().any(|each| each["code"] == "R008"),
        "{checkup}"
    );
    // Nor does a page read a whole file, or say that it is well.
    assert!(codes.clone().all(|each| each["code"] != "R001"));
    // Nobody looks through everything again for each who asks.
    assert_eq!(
        served.get("/doctor").ok()["looked_at"],
        checkup["looked_at"]
    );
}

pub fn too_many_changes_at_once_have_to_wait(home: &dyn Home) {
    furnish(home);
    let (_folder, mut command) = slow(home);
    let served = Served::of(&mut command);
    let answers = hurry(&served);
    let refused: Vec<_> = answers.iter().filter(|each| each.status == 429).collect();
    assert!(!refused.is_empty(), "{answers:?}");
    for answer in refused {
        assert_eq!(answer.code(), "too_many");
        assert!(answer.head.contains("retry-after: 1"), "{answer:?}");
    }
    assert!(answers.iter().any(|each| each.status == 201), "{answers:?}");
    // Looking costs nothing.
    served.get("/stats").ok();
}

/// A server that takes one change a second.
pub fn slow(home: &dyn Home) -> (rowlock_testbed::TempDir, std::process::Command) {
    let folder = rowlock_testbed::folder();
    let path = folder.path().join("slow.toml");
    let text = format!("{}\n[dashboard]\nwrites_per_second = 1\n", super::CONFIG);
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    let mut command = home.command(&["dashboard", "--bind", "127.0.0.1:0", "--config", &path]);
    if !has_url(&command) {
        command.args(["--url", "sqlite:rowlock.db"]);
    }
    (folder, command)
}

/// Whatever the machine's pace: of so many at once some come too early.
pub fn hurry(served: &Served) -> Vec<super::Answer> {
    let post = Ask::new("POST", "/jobs").json(r#"{"kind":"echo"}"#);
    let sent: Vec<_> = (0..20).map(|_| served.send(&post)).collect();
    sent.into_iter().map(super::Answer::from).collect()
}

fn has_url(command: &std::process::Command) -> bool {
    command
        .get_envs()
        .any(|(name, value)| name == "ROWLOCK_URL" && value.is_some())
}
