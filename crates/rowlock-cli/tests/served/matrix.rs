//! Every route for every role, made from the document.

use serde_json::{Value, json};

use super::{Ask, Home, OPERATOR, READER, Served, furnish, ok};

/// Everything that a store would show a change in.
pub fn everything(home: &dyn Home) -> String {
    let lists: [&[&str]; 6] = [
        &["job", "list", "--limit", "1000", "--json"],
        &["switch", "list", "--json"],
        &["queue", "list", "--json"],
        &["cron", "list", "--json"],
        &["reconcile", "list", "make", "--json"],
        &["stats", "--json"],
    ];
    let all = lists.map(|args| ok(home, args)).concat();
    // Time goes on by itself.
    let lines = all.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        forget(&mut line);
        line.to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn forget(value: &mut Value) {
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| !name.ends_with("_seconds"));
        object.values_mut().for_each(forget);
    }
}

/// A request for each route of the document, as somebody would make it.
fn requests(document: &Value) -> Vec<Ask> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let mut path = path.clone();
            for parameter in operation["parameters"].as_array().unwrap() {
                if parameter["in"] == "path" {
                    let name = parameter["name"].as_str().unwrap();
                    path = path.replace(&format!("{{{name}}}"), part(name));
                }
            }
            let mut ask = Ask::new(&method.to_ascii_uppercase(), &path);
            if operation["requestBody"].is_object() {
                ask = ask.json(&body(&path).to_string());
            }
            all.push(ask);
        }
    }
    // What removes jobs comes last.
    all.sort_by_key(|ask| (ask.method == "DELETE", ask.path.contains("bulk")));
    all
}

fn part(name: &str) -> &'static str {
    match name {
        "id" => "2",
        "queue" => "default",
        "pair" => "make",
        "cron" => "nightly",
        "target" => "kind",
        _ => "echo",
    }
}

fn body(path: &str) -> Value {
    match path.rsplit('/').next().unwrap_or_default() {
        "jobs" => json!({ "kind": "echo" }),
        "batch" => json!({ "jobs": [{ "kind": "echo" }] }),
        "bulk" => json!({ "action": "delete", "filter": { "kind": "echo" }, "confirm": true }),
        "lift" => json!({ "all": true }),
        _ if path.contains("/switches/") => json!({ "mode": "pause", "reason": "x" }),
        _ if path.contains("/budgets/") => json!({ "max": 1 }),
        _ => json!({}),
    }
}

/// The routes of a server.
fn document(served: &Served) -> Value {
    let ask = Ask::new("GET", "/openapi.json").bearer(READER);
    served.ask(&ask).ok()
}

pub fn every_route_is_for_its_role_and_a_reader_changes_nothing(home: &dyn Home) {
    furnish(home);
    let served = Served::with_tokens(home, &[]);
    let asks = requests(&document(&served));
    assert!(asks.len() >= 30, "{}", asks.len());
    let before = everything(home);
    for ask in &asks {
        let write = ask.method != "GET";
        for who in ["", "Bearer wrong", "Basic eDp5", "Bearer ", "Digest x"] {
            let mut asked = ask.clone();
            if !who.is_empty() {
                asked = asked.with("Authorization", who);
            }
            let answer = served.ask(&asked);
            assert_eq!(answer.status, 401, "{ask:?}");
            assert_eq!(answer.code(), "unauthorized");
            assert!(
                answer.head.contains("\r\nwww-authenticate: basic"),
                "{answer:?}"
            );
        }
        let answer = served.ask(&ask.clone().bearer(READER));
        match write {
            true => assert_eq!(
                (answer.status, answer.code().as_str()),
                (403, "role"),
                "{ask:?}"
            ),
            false => assert!(![401, 403].contains(&answer.status), "{ask:?} {answer:?}"),
        }
        assert!(answer.status < 500, "{ask:?} {answer:?}");
    }
    assert_eq!(everything(home), before);
    let closed = Served::with_tokens(home, &["--read-only"]);
    for ask in asks.iter().filter(|ask| ask.method != "GET") {
        let answer = closed.ask(&ask.clone().bearer(OPERATOR));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "role"),
            "{ask:?}"
        );
    }
    assert_eq!(everything(home), before);
    for ask in &asks {
        let answer = served.ask(&ask.clone().bearer(OPERATOR));
        assert!(
            ![401, 403, 415, 429].contains(&answer.status),
            "{ask:?} {answer:?}"
        );
        assert!(answer.status < 500, "{ask:?} {answer:?}");
        // The examples are good ones, except that a file has no sessions and some things are done once.
        let may_fail = ["/budgets", "/pins", "/resume", "/switches/", "/jobs/2"];
        let fails = may_fail.iter().any(|part| ask.path.contains(part));
        assert!(fails || answer.status < 300, "{ask:?} {answer:?}");
    }
    assert_ne!(everything(home), before);
    let ask = Ask::new("GET", "/stats").with("Authorization", &basic(OPERATOR));
    assert_eq!(served.ask(&ask).status, 200);
}

/// As a browser sends a password.
fn basic(token: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in format!("ada:{token}").as_bytes().chunks(3) {
        let bits = three
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for at in 0..4 {
            let digit = usize::try_from(bits >> (18 - 6 * at) & 63).unwrap();
            text.push(if at > three.len() {
                '='
            } else {
                char::from(DIGITS[digit])
            });
        }
    }
    format!("Basic {text}")
}

pub fn no_secret_is_in_any_answer_or_log(home: &dyn Home) {
    furnish(home);
    let served = Served::with_tokens(home, &[]);
    let mut secrets = home.secrets();
    secrets.extend([OPERATOR.to_owned(), READER.to_owned()]);
    let mut said = Vec::new();
    for ask in requests(&document(&served)) {
        for who in [OPERATOR, READER, "c4nary-operator-012345678"] {
            let answer = served.ask(&ask.clone().bearer(who));
            said.push(format!("{}\n{}", answer.head, answer.body));
        }
    }
    for path in ["/", "/livez", "/readyz", "/metrics"] {
        let answer = served.ask(&Ask::new("GET", &format!("/{path}")).bearer(READER));
        said.push(answer.body);
    }
    said.extend(served.end());
    for text in &said {
        for secret in &secrets {
            assert!(!text.contains(secret), "{text}");
        }
    }
}
