//! The dashboard's pages, read as a browser without a script would: links, forms, and nothing else.

use std::collections::BTreeSet;

use super::matrix::everything;
use super::{Answer, Ask, Home, OPERATOR, READER, Served, furnish, ok};

/// What would run if anything were more than text.
const MARKUP: &str = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>";

/// A form of a page: its method, its action and its fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    method: String,
    action: String,
    fields: Vec<(String, String)>,
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&quot;", "\"").replace("&amp;", "&")
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    Some(unescaped(rest.split('"').next()?))
}

fn links(page: &str) -> BTreeSet<String> {
    let tags = page.split("<a ").skip(1);
    let hrefs = tags.filter_map(|tag| attribute(&format!(" {tag}"), "href"));
    hrefs.filter(|href| !href.starts_with('#')).collect()
}

/// Its forms, filled in as they come.
fn forms(page: &str) -> Vec<Form> {
    let parts = page.split("<form").skip(1);
    let forms = parts.map(|part| {
        let (head, rest) = part.split_once('>').unwrap();
        let body = rest.split("</form>").next().unwrap();
        let fields = body.split("<input").skip(1).filter_map(|tag| {
            let tag = tag.split('>').next()?;
            let ticked = tag.contains(" checked") || !tag.contains("\"radio\"");
            let plain = ticked && !tag.contains("\"checkbox\"");
            let value = attribute(tag, "value").unwrap_or_default();
            plain.then_some((attribute(tag, "name")?, value))
        });
        Form {
            method: attribute(head, "method").unwrap(),
            action: attribute(head, "action").unwrap_or_default(),
            fields: fields.collect(),
        }
    });
    forms.filter(|form| form.method != "dialog").collect()
}

fn spelled(fields: &[(String, String)]) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02x}"),
    };
    let spell = |text: &str| text.bytes().map(byte).collect::<String>();
    let pairs = fields
        .iter()
        .map(|(name, value)| format!("{}={}", spell(name), spell(value)));
    pairs.collect::<Vec<_>>().join("&")
}

impl Form {
    fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.retain(|(own, _)| own != name);
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    fn ask(&self) -> Ask {
        let mut ask = Ask::new("POST", &format!("/{}", self.action));
        ask.body = spelled(&self.fields);
        ask.with("Content-Type", "application/x-www-form-urlencoded")
    }
}

fn get(served: &Served, path: &str, token: &str) -> Answer {
    served.ask(&Ask::new("GET", &format!("/{path}")).bearer(token))
}

/// Every page that links lead to from the first.
fn crawl(served: &Served, token: &str) -> Vec<(String, Answer)> {
    let (mut left, mut seen) = (vec!["/".to_owned()], Vec::<(String, Answer)>::new());
    while let Some(path) = left.pop() {
        if seen.iter().any(|(own, _)| *own == path) {
            continue;
        }
        let answer = get(served, &path, token);
        left.extend(links(&answer.body));
        seen.push((path, answer));
        assert!(seen.len() < 300, "{seen:#?}");
    }
    seen
}

fn is_guarded(answer: &Answer) {
    for header in [
        "content-security-policy: default-src 'none'; style-src 'self'; script-src 'self'",
        "x-content-type-options: nosniff",
        "x-frame-options: deny",
        "referrer-policy: same-origin",
        "cache-control: no-store",
        "content-type: text/html; charset=utf-8",
    ] {
        assert!(answer.head.contains(header), "{header}: {answer:?}");
    }
    for forbidden in [
        "<script>",
        " style=\"",
        " onclick",
        "javascript:",
        "unsafe-inline",
    ] {
        assert!(!answer.body.contains(forbidden), "{forbidden}: {answer:?}");
    }
}

pub fn every_link_of_every_page_leads_to_a_page(home: &dyn Home) {
    furnish(home);
    let served = Served::with_tokens(home, &[]);
    let pages = crawl(&served, OPERATOR);
    for path in [
        "/",
        "/jobs",
        "/jobs/1",
        "/jobs/new",
        "/queues",
        "/workers",
        "/pairs",
        "/pairs/make",
    ]
    .into_iter()
    .chain([
        "/drains",
        "/switches",
        "/health",
        "/jobs?state=cancelled",
        "/jobs?kind=echo",
    ]) {
        assert!(
            pages.iter().any(|(own, _)| own == path),
            "nothing leads to {path}"
        );
    }
    for (path, answer) in &pages {
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        is_guarded(answer);
        for (_, rest) in answer
            .body
            .match_indices("/assets/")
            .map(|(at, _)| answer.body.split_at(at))
        {
            let asset = get(&served, rest.split('"').next().unwrap(), "");
            assert_eq!(asset.status, 200, "{path}");
            assert!(asset.head.contains("immutable"), "{asset:?}");
        }
    }
    // What a search form asks for is a page too.
    for (_, answer) in &pages {
        for form in forms(&answer.body)
            .iter()
            .filter(|form| form.method == "get")
        {
            let asked = get(
                &served,
                &format!("{}?{}", form.action, spelled(&form.fields)),
                OPERATOR,
            );
            assert!([200, 400].contains(&asked.status), "{form:?} {asked:?}");
            is_guarded(&asked);
        }
    }
    assert_eq!(get(&served, "/jobs?id=2", OPERATOR).status, 303);
    for (path, status) in [
        ("/nowhere", 404),
        ("/jobs/99999", 404),
        ("/jobs/x", 400),
        ("/jobs?since=x", 400),
    ] {
        let answer = get(&served, path, OPERATOR);
        assert_eq!(answer.status, status, "{path} {answer:?}");
        is_guarded(&answer);
        assert!(!answer.body.contains("/api/v1"), "{answer:?}");
    }
}

pub fn every_page_is_for_its_role_and_a_reader_changes_nothing(home: &dyn Home) {
    furnish(home);
    let served = Served::with_tokens(home, &[]);
    let pages = crawl(&served, OPERATOR);
    let mut changes: Vec<Form> = Vec::new();
    for (path, answer) in &pages {
        let unknown = get(&served, path, "wrong");
        assert_eq!(unknown.status, 401, "{path}");
        assert!(
            unknown.head.contains("www-authenticate: basic"),
            "{unknown:?}"
        );
        is_guarded(&unknown);
        assert!(!unknown.body.contains("<nav"), "{unknown:?}");
        let read = get(&served, path, READER);
        let expected = if path == "/jobs/new" { 403 } else { 200 };
        assert_eq!(read.status, expected, "{path}");
        assert!(!read.body.contains("method=\"post\""), "{path}: {read:?}");
        changes.extend(
            forms(&answer.body)
                .into_iter()
                .filter(|form| form.method == "post"),
        );
    }
    changes.sort();
    changes.dedup();
    assert!(changes.len() >= 15, "{changes:#?}");
    let before = everything(home);
    let own = format!("http://{}", served.address);
    for form in &changes {
        let ours = form
            .ask()
            .with("Origin", &own)
            .with("Sec-Fetch-Site", "same-origin");
        let status = |ask: &Ask| served.ask(ask).status;
        assert_eq!(status(&ours.clone().bearer("wrong")), 401, "{form:?}");
        // Whose form it is counts too: this one is the operator's.
        assert_eq!(status(&ours.clone().bearer(READER)), 403, "{form:?}");
        let foreign = form.ask().with("Origin", "http://evil.example");
        assert_eq!(status(&foreign.bearer(OPERATOR)), 403, "{form:?}");
        let foreign = form.ask().with("Sec-Fetch-Site", "cross-site");
        assert_eq!(status(&foreign.bearer(OPERATOR)), 403, "{form:?}");
        let forged = form.clone().with("seal", "0123456789abcdef").ask();
        assert_eq!(status(&forged.bearer(OPERATOR)), 403, "{form:?}");
        let unsealed = form.clone().with("seal", "").ask();
        assert_eq!(status(&unsealed.bearer(OPERATOR)), 403, "{form:?}");
        let mut json = form.ask();
        json.headers.clear();
        assert_eq!(status(&json.json("{}").bearer(OPERATOR)), 415, "{form:?}");
    }
    let closed = Served::with_tokens(home, &["--read-only"]);
    for form in &changes {
        assert_eq!(
            closed.ask(&form.ask().bearer(OPERATOR)).status,
            403,
            "{form:?}"
        );
    }
    assert_eq!(everything(home), before);
}

pub fn a_form_without_its_seal_would_be_missed(home: &dyn Home) {
    if !cfg!(feature = "test-hooks") {
        return;
    }
    furnish(home);
    let folder = rowlock_testbed::folder();
    let path = folder.path().join("seal");
    std::fs::write(
        &path,
        "about = \"x\"\ncaught_by = []\nswitch = \"web.seal\"\n",
    )
    .unwrap();
    let mut command = home.command(&["dashboard", "--bind", "127.0.0.1:0"]);
    let served = Served::of(command.env("ROWLOCK_MUTANT", path));
    let mut pause = Ask::new("POST", "//queues/default/pause");
    pause.body = "reason=x".to_owned();
    let pause = pause.with("Content-Type", "application/x-www-form-urlencoded");
    assert_eq!(served.ask(&pause).status, 303);
    assert_eq!(Served::open(home).ask(&pause).status, 403);
}

pub fn markup_in_every_field_is_text_on_every_page(home: &dyn Home) {
    furnish(home);
    let payload =
        serde_json::json!({ MARKUP: [MARKUP, { "deep": [[MARKUP]] }], "long": MARKUP.repeat(50) });
    let payload = payload.to_string();
    ok(home, &["enqueue", "fail", &payload, "--unique", MARKUP]);
    ok(home, &["enqueue", "fail", &payload]);
    ok(home, &["work", "--once"]);
    ok(
        home,
        &[
            "switch",
            "set",
            "kind:made",
            "hold",
            "--reason",
            MARKUP,
            "--by",
            MARKUP,
        ],
    );
    ok(home, &["queue", "pause", "default", "--reason", MARKUP]);
    ok(
        home,
        &["switch", "set", "pair:make", "pause", "--reason", MARKUP],
    );
    let served = Served::open(home);
    let mut pages = crawl(&served, "");
    assert!(
        pages
            .iter()
            .any(|(_, page)| page.body.contains("&lt;img src=x onerror=alert(1)&gt;"))
    );
    let markup = spelled(&[(String::new(), MARKUP.to_owned())]);
    let markup = markup.trim_start_matches('=');
    for path in [
        "/jobs?key=",
        "/jobs?kind=",
        "/jobs?queue=",
        "/jobs?tag=",
        "/jobs?state=",
        "/jobs?note=",
        "/jobs?cursor=",
    ]
    .into_iter()
    .chain([
        "/jobs/",
        "/pairs/",
        "/",
        "/jobs/bulk?action=",
        "/jobs/bulk?which=filter&key=",
        "/jobs/bulk?id=",
    ]) {
        let path = format!("{path}{markup}");
        pages.push((path.clone(), get(&served, &path, "")));
    }
    for (path, page) in &pages {
        is_guarded(page);
        assert!(page.status < 500, "{path} {page:?}");
        for sign in ["<img", "<script>", "onerror=alert(1)>", "\"'>"] {
            assert!(!page.body.contains(sign), "{sign} on {path}: {page:?}");
        }
    }
    let told = |part: &str, path: &str| {
        let page = pages.iter().find(|(own, _)| own == path);
        let (_, page) = page.unwrap_or_else(|| panic!("nothing leads to {path}"));
        assert!(page.body.contains(part), "{part} on {path}: {page:?}");
    };
    for path in [
        "/jobs/5",
        "/jobs",
        "/queues",
        "/switches",
        "/health",
        "/pairs/make",
    ] {
        told("&lt;img src=x", path);
    }
}

/// Sends a page's form; the answer is the page that it leads to.
fn press(served: &Served, page: &str, action: &str, fields: &[(&str, &str)]) -> String {
    let shown = get(served, page, "");
    let form = forms(&shown.body)
        .into_iter()
        .find(|form| form.method == "post" && form.action == action);
    let form = form.unwrap_or_else(|| panic!("no form {action} on {page}: {shown:?}"));
    let form = fields
        .iter()
        .fold(form, |form, (name, value)| form.with(name, value));
    let answer = served.ask(&form.ask());
    assert_eq!(answer.status, 303, "{form:?} {answer:?}");
    let to = answer
        .head
        .lines()
        .find_map(|line| line.strip_prefix("location: "));
    let next = get(served, to.unwrap(), "");
    assert_eq!(next.status, 200, "{next:?}");
    let note = next
        .body
        .split("<p class=\"note")
        .nth(1)
        .unwrap_or_else(|| panic!("{next:?}"));
    note.split("</p>").next().unwrap().to_owned()
}

pub fn every_button_does_what_it_says(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    let says = |page: &str, action: &str, fields: &[(&str, &str)], words: &str| {
        let note = press(&served, page, action, fields);
        assert!(note.contains(words), "{words}: {note}");
        note
    };
    let payload = "{\"n\":1.50,\r\n \"to\":\"<b>\"}";
    let mut fields = vec![("kind", "echo"), ("payload", payload), ("in", "2h")];
    fields.extend([("tags", "one two"), ("key", "k")]);
    says("/jobs/new", "/jobs/new", &fields, "Job 5 is added");
    let job = served.get("/jobs/5").ok();
    assert_eq!(
        (&job["unique_key"], &job["tags"]),
        (&"k".into(), &serde_json::json!(["one", "two"]))
    );
    says("/jobs/new", "/jobs/new", &fields, "Job 5 has the same key");
    let bob = [("payload", "{\"to\":\"bob\"}")];
    let note = says("/jobs/2", "/jobs/2/again", &bob, "is added");
    let id: String = note.chars().filter(char::is_ascii_digit).collect();
    let job = format!("/jobs/{id}");
    assert_eq!(served.get(&job).ok()["payload"]["to"], "bob");
    for (verb, words) in [
        ("cancel", "is cancelled"),
        ("retry", "waits again"),
        ("delete", "is deleted"),
    ] {
        says(&job, &format!("{job}/{verb}"), &[], words);
    }
    assert_eq!(served.get(&job).status, 404);
    let all = "/jobs/bulk?which=filter&action=cancel&kind=echo";
    says(all, "/jobs/bulk", &[], "3 cancelled");
    let some = "/jobs/bulk?action=retry&id=1&id=2";
    says(some, "/jobs/bulk", &[], "2 retried");
    let why = [("reason", "tired")];
    says("/queues", "/queues/default/pause", &why, "is paused");
    assert!(ok(home, &["queue", "list"]).contains("tired"));
    says("/queues", "/queues/default/resume", &[], "goes on");
    let mut switch = vec![("target", "kind"), ("name", "echo"), ("for", "30m")];
    switch.extend([("mode", "hold"), ("reason", "wrong")]);
    let words = "Switch hold of kind echo is on";
    says("/switches", "/switches/set", &switch, words);
    let listed = ok(home, &["switch", "list"]);
    assert!(
        listed.contains("wrong") && listed.contains("dashboard (operator)"),
        "{listed}"
    );
    for (page, action, words) in [
        (
            "/switches",
            "/switches/kind/echo/clear",
            "kind echo goes on",
        ),
        ("/pairs/make", "/pairs/make/dry", "1 would be added"),
        ("/pairs/make", "/pairs/make/run", "1 added"),
        ("/pairs/make", "/pairs/make/pause", "is paused"),
        ("/pairs/make", "/pairs/make/resume", "goes on"),
        ("/pairs", "/crons/nightly/run", "is queued"),
        ("/pairs", "/crons/nightly/pause", "Cron nightly is paused"),
        ("/pairs", "/crons/nightly/resume", "goes on, next at 2"),
    ] {
        says(page, action, &[("reason", "x")], words);
    }
}
