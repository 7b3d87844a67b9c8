//! Pictures of every page, of a store in which much goes on: `scripts/screens` keeps them in docs/screens.
//!
//! A program and no case: nothing is judged, and it takes ten minutes. It has what the cases have to drive a browser.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "whoever wants pictures sees what is missing"
)]

#[path = "../tests/place/mod.rs"]
mod place;
#[path = "../tests/served/mod.rs"]
mod served;
#[path = "../tests/postgres/store.rs"]
#[allow(dead_code, reason = "the cases use the rest")]
mod store;

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rowlock_testbed::{Postgres, Process, Redis};
use serde_json::{Value, json};

use crate::served::Served;
use crate::served::browser::Browser;
use crate::store::Store;

/// What is seen, and what it is called.
const PAGES: [(&str, &str); 14] = [
    ("overview", "/"),
    ("jobs", "/jobs"),
    ("jobs-failed", "/jobs?state=failed&queue=billing"),
    ("job", "/jobs/FAILED"),
    ("job-new", "/jobs/new"),
    (
        "confirm",
        "/jobs/bulk?which=filter&action=retry&state=failed&queue=billing",
    ),
    ("queues", "/queues"),
    ("workers", "/workers"),
    ("pairs", "/pairs"),
    ("pair", "/pairs/create_database"),
    ("drains", "/drains"),
    ("switches", "/switches"),
    ("health", "/health"),
    ("problem", "/jobs/999999"),
];
/// The window, and how much of a long page is kept.
const SIGHTS: [(&str, u32, u32, u32); 2] =
    [("desktop", 1280, 820, 1_500), ("phone", 390, 844, 1_700)];

fn config(redis: &str) -> String {
    format!(
        r#"
[worker]
concurrency = 12
[handlers.send_email]
builtin = "sleep"
queue = "mail"
[handlers.resize_image]
builtin = "sleep"
queue = "media"
[handlers.build_report]
builtin = "sleep"
queue = "reports"
priority = -5
[handlers.charge_card]
exec = ["sh", "charge_card"]
queue = "billing"
max_attempts = 3
backoff = {{ kind = "linear", base = "4s" }}
[handlers.create_database]
builtin = "flaky"
queue = "provision"
key = ["id"]
[handlers.newsletter]
builtin = "noop"
queue = "mail"
[handlers.sync_crm]
builtin = "sleep"
[[drain]]
kinds = ["sync_crm"]
to = "{redis}"
[[pair]]
kind = "create_database"
every = "1m"
key = ["id"]
query = "SELECT id FROM databases WHERE state = 'requested' ORDER BY id"
[[cron]]
name = "nightly_report"
kind = "build_report"
cron = "0 3 * * *"
tz = "Europe/Berlin"
[[cron]]
name = "every_minute"
kind = "send_email"
cron = "* * * * *"
payload = {{ for = "80ms", template = "digest" }}
"#
    )
}

/// Fails as the world does.
const CHARGE_CARD: &str = r#"case $((ROWLOCK_JOB_ID % 9)) in
  0) echo "card_declined: your card has insufficient funds (decline_code: insufficient_funds, charge: ch_3Qx$ROWLOCK_JOB_ID)" >&2; exit 65 ;;
  1|2) printf 'payments.ConnectionError: api.payments.example did not answer within 30 s\n  File "billing/charge.py", line 41, in charge\n    response = client.post("/v1/charges", key=job.id)\n' >&2; exit 75 ;;
  *) sleep 0.2 ;;
esac
"#;

/// Jobs come in waves, some of each kind, for as long as the page is there.
const LOAD: &str = r#"(() => {
  const some = (n) => Array.from({ length: n });
  const pick = (from) => from[Math.floor(Math.random() * from.length)];
  const people = ["ada", "grace", "linus", "barbara", "edsger", "margaret"];
  let tick = 0;
  window.load = setInterval(() => {
    tick += 1;
    const wave = 1 + Math.sin(tick / 25);
    const ms = (base) => Math.round(base * (0.4 + Math.random() ** 3 * 5)) + "ms";
    const jobs = [
      ...some(Math.round(4 * wave)).map(() => ({ kind: "send_email", tags: ["welcome"], payload: { for: ms(60), to: pick(people) + "@example.com", template: pick(["welcome", "receipt", "reset"]) } })),
      ...some(Math.round(2 * wave)).map(() => ({ kind: "resize_image", payload: { for: ms(220), image: "uploads/" + tick + ".jpg", widths: [320, 640, 1280] } })),
      ...(tick % 3 ? [] : [{ kind: "charge_card", tags: ["eu"], payload: { customer: "cus_" + tick, amount: 1990 + tick, currency: "EUR", lines: [{ sku: "seat", quantity: 3 }, { sku: "storage", quantity: 20 }] } }]),
      ...(tick % 20 ? [] : [{ kind: "build_report", payload: { for: "9s", report: "revenue" } }]),
      ...(tick % 5 ? [] : [{ kind: "sync_crm", payload: { for: ms(300), account: tick } }]),
      ...(tick % 15 ? [] : [{ kind: "newsletter", payload: { issue: tick } }]),
    ];
    fetch("/api/v1/jobs/batch", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ jobs }) });
  }, 500);
})()"#;

fn furnish(store: &Store) {
    store.place.write("charge_card", CHARGE_CARD);
    store.ok(&["migrate", "up"]);
    store.sql(
        "CREATE TABLE databases (id integer PRIMARY KEY, state text NOT NULL);
         CREATE INDEX ON databases (id) WHERE state = 'requested';
         INSERT INTO databases SELECT n, 'requested' FROM generate_series(1, 12) AS n",
    );
    store.ok(&["apply"]);
    let switches: [&[&str]; 2] = [
        &[
            "kind:newsletter",
            "hold",
            "--reason",
            "wrong template in issue 42",
        ],
        &[
            "queue:imports",
            "pause",
            "--reason",
            "the feed's provider is down",
        ],
    ];
    for switch in switches {
        let by = ["--by", "ada", "--for", "2h"];
        store.ok(&[&["switch", "set"], switch, &by].concat());
    }
    store.ok(&["budget", "set", "analytics", "--max", "1"]);
    store.ok(&[
        "enqueue",
        "newsletter",
        r#"{"issue":42}"#,
        "--queue",
        "imports",
    ]);
    let later = r#"{"for":"1s","report":"quarter"}"#;
    store.ok(&["enqueue", "build_report", later, "--in", "6h"]);
}

/// A window that is as high as what is in it, so that what sticks to its edges is there.
fn shoot(browser: &mut Browser, to: &Path, (width, scheme): (u32, &str), (high, most): (u32, u32)) {
    let tall = browser.look("document.documentElement.scrollHeight");
    let tall = u32::try_from(tall.as_u64().unwrap_or(0)).unwrap_or(most);
    browser.sight_of((width, tall.clamp(high, most)), scheme);
    let shot = browser.call("Page.captureScreenshot", json!({ "format": "png" }));
    let png = STANDARD.decode(shot["data"].as_str().unwrap());
    std::fs::write(to, png.unwrap()).unwrap();
    browser.sight_of((width, high), scheme);
}

/// Where the pictures go, and for how many seconds jobs have come before.
fn wanted() -> (PathBuf, u64) {
    let folder = std::env::var_os("ROWLOCK_SCREENS").expect("use scripts/screens");
    let seconds = std::env::var("ROWLOCK_SCREENS_AFTER").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    (PathBuf::from(folder), seconds.unwrap_or(540))
}

fn main() {
    let (folder, seconds) = wanted();
    let (server, redis) = (Postgres::start_own(), Redis::start());
    let store = Store::on(&server, &config(&redis.url()));
    furnish(&store);
    let served = Served::of(&mut store.command(&["dev", "--listen", "127.0.0.1:0"]));
    let _worker = store.start(&["work"]);
    let _from_redis = store.start(&["work", "--from", &redis.url()]);
    let session = store.session();
    session
        .execute("SET application_name = 'metabase'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM databases")
        .unwrap();
    let mut busy = Browser::open();
    let url = |path: &str| format!("http://{}{path}", served.address);
    busy.go(&url("/switches"));
    busy.act(LOAD);
    busy.tell(&format!(
        "new Promise((done) => setTimeout(done, {}))",
        seconds * 500
    ));
    // In the middle Redis forgets everything, and gets it again.
    redis.command(&["FLUSHALL"]);
    busy.tell(&format!(
        "new Promise((done) => setTimeout(done, {}))",
        seconds * 500
    ));
    let failed = served
        .get("/jobs?state=failed&kind=charge_card&order=newest")
        .ok();
    let jobs = failed["items"].as_array().unwrap();
    let told = |job: &&Value| job["errors"].as_array().unwrap().len() > 1;
    let failed = jobs.iter().find(told).or(jobs.first()).unwrap()["id"].to_string();
    let mut browser = Browser::open();
    std::fs::create_dir_all(&folder).unwrap();
    let hidden = json!({ "hidden": true });
    browser.call("Emulation.setScrollbarsHidden", hidden);
    for (sight, width, high, most) in SIGHTS {
        for scheme in ["light", "dark"] {
            browser.sight_of((width, high), scheme);
            for (name, path) in PAGES {
                browser.go(&url(&path.replace("FAILED", &failed)));
                if browser.look("!!document.querySelector('[data-live]')") == true {
                    browser.wait("document.querySelector('#pulse').textContent === 'live'");
                }
                let to = folder.join(format!("{name}-{sight}-{scheme}.png"));
                shoot(&mut browser, &to, (width, scheme), (high, most));
            }
            browser.go(&url("/"));
            browser.press("?");
            browser.wait("document.querySelector('#help').open");
            let to = folder.join(format!("keys-{sight}-{scheme}.png"));
            shoot(&mut browser, &to, (width, scheme), (high, high));
        }
    }
    dismiss(served.process);
}

/// The others go with the program.
fn dismiss(process: Process) {
    process.signal("TERM");
    process.wait();
}
