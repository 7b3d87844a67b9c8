//! Whatever is sent, it is refused as the sender's mistake and not as ours.

use super::{Ask, Home, Served, furnish};

pub fn hostile_input_is_the_senders_mistake(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let long = "x".repeat(70_000);
    for path in [
        "/jobs?cursor=x",
        "/jobs?cursor=a-1",
        "/jobs?cursor=a99999999999999999999",
        "/jobs?cursor=n1&order=oldest",
        "/jobs?cursor=%00",
        "/jobs?limit=0",
        "/jobs?limit=99999999999999999999",
        "/jobs?limit=1e9",
        "/jobs?limit=-1",
        "/jobs?state=nonsense",
        "/jobs?state=%27;DROP%20TABLE%20x",
        "/jobs?queue=%3Cscript%3E",
        "/jobs?key=%00",
        "/jobs?key=%ff%fe",
        "/jobs?since=yesterday",
        "/jobs?since=99999-01-01T00:00:00Z",
        "/jobs?colour=red",
        "/jobs?limit=1&limit=2",
        "/jobs/0",
        "/jobs/-1",
        "/jobs/007",
        "/jobs/99999999999999999999",
        "/jobs/%00",
        "/jobs/1%2F..",
        "/pairs/%3Cimg%3E",
        "/pairs/make/keys?after=%00",
        "/pairs/make/keys?limit=501",
        "/../../etc/passwd",
        "/jobs/",
        "//api/v1",
        "//api/v2/jobs",
    ] {
        let answer = served.get(path);
        assert!((400..500).contains(&answer.status), "{path} {answer:?}");
        answer.code();
        // What is repeated of it is no page.
        assert!(answer.head.contains("content-type: application/json"));
    }
    for (path, body) in [
        ("/jobs", String::new()),
        ("/jobs", "{".to_owned()),
        ("/jobs", "[]".to_owned()),
        ("/jobs", "{\"kind\":7}".to_owned()),
        ("/jobs", "{\"kind\":\"a b\"}".to_owned()),
        ("/jobs", "{\"kind\":\"echo\",\"colour\":1}".to_owned()),
        (
            "/jobs",
            "{\"kind\":\"echo\",\"payload\":\"a\\u0000b\"}".to_owned(),
        ),
        ("/jobs", format!("{{\"kind\":\"echo\",\"payload\":{deep}}}")),
        (
            "/jobs",
            format!("{{\"kind\":\"echo\",\"unique_key\":\"{long}\"}}"),
        ),
        ("/jobs", "{\"kind\":\"echo\",\"max_attempts\":0}".to_owned()),
        (
            "/jobs",
            "{\"kind\":\"echo\",\"scheduled_at\":\"99999-01-01T00:00:00Z\"}".to_owned(),
        ),
        (
            "/jobs/batch",
            "{\"jobs\":[{\"kind\":\"echo\"},{\"kind\":\"\"}]}".to_owned(),
        ),
        ("/jobs/batch", deep.clone()),
        ("/jobs/bulk", deep),
        ("/jobs/bulk", "{\"action\":\"delete\"}".to_owned()),
        (
            "/jobs/bulk",
            "{\"action\":\"delete\",\"filter\":{}}".to_owned(),
        ),
        ("/jobs/bulk", "{\"action\":\"eat\",\"all\":true}".to_owned()),
        (
            "/jobs/bulk",
            "{\"action\":\"delete\",\"ids\":[0]}".to_owned(),
        ),
        (
            "/jobs/bulk",
            "{\"action\":\"delete\",\"filter\":{\"sort\":\"x\"}}".to_owned(),
        ),
        ("/jobs/1/retry", "{\"x\":1}".to_owned()),
        ("/queues/a%20b/pause", "{}".to_owned()),
        (
            "/queues/default/pause",
            "{\"reason\":\"a\\u0000b\"}".to_owned(),
        ),
        ("/pairs/make/lift", "{}".to_owned()),
        ("/crons/nobody/run", "{}".to_owned()),
    ] {
        let answer = served.post(path, &body);
        let shown: String = body.chars().take(60).collect();
        assert!(
            (400..500).contains(&answer.status),
            "{path} {shown} {answer:?}"
        );
        answer.code();
    }
    let switch = Ask::new("PUT", "/switches/kind/echo");
    for body in [
        "{\"mode\":\"hold\"}",
        "{\"mode\":\"hold\",\"reason\":\" \"}",
        "{\"mode\":\"hold\",\"reason\":\"x\",\"for\":\"1h\",\"until\":\"2030-01-31T09:00:00Z\"}",
        "{\"mode\":\"hold\",\"reason\":\"x\",\"until\":\"2001-01-31T09:00:00Z\"}",
        "{\"mode\":\"reject\",\"reason\":\"x\"}",
    ] {
        let answer = served.ask(&switch.clone().json(body));
        assert_eq!(answer.status, 400, "{body} {answer:?}");
    }
    let huge = "x".repeat(9 * 1024 * 1024);
    let ask = Ask::new("POST", "/jobs").json(&format!("\"{huge}\""));
    assert_eq!(served.ask(&ask).status, 413);
    // What a job contains is text, whatever it looks like.
    let markup = r#"{"kind":"echo","payload":"<script>alert(1)</script>"}"#;
    let id = served.post("/jobs", markup).ok()["id"].clone();
    let shown = served.get(&format!("/jobs/{id}"));
    assert_eq!(shown.json()["payload"], "<script>alert(1)</script>");
    assert!(shown.head.contains("content-type: application/json"));
    // And it still answers.
    served.get("/stats").ok();
}
