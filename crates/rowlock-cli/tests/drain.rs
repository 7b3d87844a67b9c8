//! Jobs that go on to Redis: from the database to workers that have none, and back.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use place::Place;
use rowlock_testbed::{Process, Redis, until};
use serde_json::Value;

const KINDS: &str =
    "[handlers.echo]\nbuiltin = \"noop\"\n[handlers.send_email]\nbuiltin = \"noop\"\n";

/// A store whose kind send_email goes to a Redis.
fn drained(redis: &Redis) -> Place {
    let place = Place::with_config(&format!("{KINDS}{}", drain_to(&redis.url())));
    place.ok(&["apply"]);
    place
}

fn drain_to(url: &str) -> String {
    format!("[[drain]]\nkinds = [\"send_email\"]\nto = \"{url}\"\n")
}

/// What `drain status` says of the one route there is.
fn status(place: &Place) -> Value {
    place.json(&["drain", "status", "--json"])
}

fn wait_for(place: &Place, what: &str, number: u64) -> Value {
    until(&format!("{what} is {number}"), || {
        Some(status(place)).filter(|status| status[what] == number)
    })
}

/// A drain that has sent so many jobs, which nobody takes.
fn sent(place: &Place, jobs: u64) -> Process {
    for _ in 0..jobs {
        place.ok(&["enqueue", "send_email"]);
    }
    let drain = place.start(&["drain", "run"]);
    wait_for(place, "ready", jobs);
    drain
}

#[test]
fn jobs_go_through_redis_to_a_worker_without_a_database() {
    let redis = Redis::start();
    let place = drained(&redis);
    assert_eq!(status(&place)["drained"], false);
    let mut drain = sent(&place, 3);
    let started = drain.line_with("  drain      redis to redis://127.0.0.1:");
    assert!(started.ends_with(", kinds send_email"), "{started}");
    let told = status(&place);
    let fields: Vec<_> = told.as_object().unwrap().keys().collect();
    let expected = [
        "drained",
        "error",
        "kinds",
        "lag_seconds",
        "pushed",
        "queues",
        "ready",
        "reports",
        "resent",
        "route",
        "sent",
        "taken",
        "to",
        "unsent",
        "workers",
    ];
    assert_eq!(fields, expected);
    assert_eq!(
        (&told["sent"], &told["unsent"], &told["drained"]),
        (&3.into(), &0.into(), &true.into())
    );
    // A worker of the database leaves them alone.
    place.ok(&["enqueue", "echo"]);
    let direct = place.ok(&["work", "--once", "--quiet", "--json"]);
    assert_eq!(direct, "{\"lost\":0,\"settled\":1}\n");
    let elsewhere = Place::with_config(KINDS);
    let worked = elsewhere.run(&["work", "--from", &redis.url(), "--once", "--json"]);
    assert_eq!(worked.stdout, "{\"lost\":0,\"settled\":3}\n", "{worked:?}");
    assert!(
        worked.stderr.contains("  from       redis://"),
        "{worked:?}"
    );
    assert!(!elsewhere.path("rowlock.db").exists());
    wait_for(&place, "sent", 0);
    assert_eq!(place.json(&["stats", "--json"])["completed"], 4);
    let shown = place.ok(&["drain", "status"]);
    assert!(shown.starts_with("ROUTE  KINDS       QUEUES  "), "{shown}");
    drain.signal("TERM");
    let (code, lines) = drain.wait();
    assert_eq!(code, Some(0), "{lines:?}");
    let last = lines.last().unwrap();
    assert!(last.ends_with("stopped sent=3 settled=3 lost=0"), "{last}");
}

#[test]
fn a_job_that_was_sent_says_so() {
    let redis = Redis::start();
    let place = drained(&redis);
    let _drain = sent(&place, 1);
    let shown = place.ok(&["job", "show", "1"]);
    assert!(shown.contains("  sent "), "{shown}");
    assert!(shown.contains("\n  sent      by route redis\n"), "{shown}");
    assert!(!shown.contains("runs"), "{shown}");
    let job = place.json(&["job", "show", "1", "--json"]);
    assert_eq!(job["locked_by"], "drain:redis");
    let cancelled = place.ok(&["job", "cancel", "1"]);
    assert_eq!(cancelled, "asked 1 to stop\n");
    let over = until("the cancel is applied", || {
        let job = place.json(&["job", "show", "1", "--json"]);
        Some(job).filter(|job| job["state"] == "cancelled")
    });
    assert_eq!(over["attempt"], 1);
}

#[test]
fn without_a_route_there_is_nothing_to_drain() {
    let place = Place::with_config(KINDS);
    let refused = place.run(&["drain", "run"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for word in ["./rowlock.toml has no [[drain]]", "to = \"redis://"] {
        assert!(refused.stderr.contains(word), "{refused:?}");
    }
    assert!(!place.path("rowlock.db").exists());
    place.ok(&["apply"]);
    let none = place.run(&["drain", "status"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""), "{none:?}");
    assert!(none.stderr.contains("every job goes directly"), "{none:?}");
    assert_eq!(place.run(&["drain", "recall", "redis"]).code, Some(3));
    place.write(
        "rowlock.toml",
        format!("{KINDS}{}", drain_to("redis://127.0.0.1:1/0")),
    );
    let refused = place.run(&["drain", "run", "rediss"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(
        refused.stderr.contains("did you mean redis?"),
        "{refused:?}"
    );
    let unwritten = place.run(&["drain", "status"]);
    assert!(
        unwritten
            .stderr
            .contains("nothing goes by redis yet: `rowlock apply`"),
        "{unwritten:?}"
    );
}

#[test]
fn apply_says_where_jobs_go_and_which_route_is_left_over() {
    let place = Place::with_config(&format!("{KINDS}{}", drain_to("redis://127.0.0.1:1/0")));
    let applied = place.ok(&["apply"]);
    let line = "changed    route redis  kind send_email: \"direct\" -> \"redis\"\n";
    assert!(applied.ends_with(line), "{applied}");
    assert!(place.ok(&["apply"]).ends_with("unchanged  route redis\n"));
    place.write("rowlock.toml", KINDS);
    let applied = place.ok(&["apply"]);
    let line = "route redis is not in rowlock.toml and jobs still go by it; `rowlock drain recall redis` ends it\n";
    assert!(applied.ends_with(line), "{applied}");
    let recalled = place.ok(&["drain", "recall", "redis"]);
    assert_eq!(
        recalled,
        "recalled redis: kind send_email goes directly again, 0 jobs went back\n"
    );
    assert!(!place.ok(&["apply"]).contains("route"));
}

#[test]
fn what_nobody_would_miss_is_not_sent_to_sidekiq() {
    let pair = "[[pair]]\nkind = \"send_email\"\nevery = \"1m\"\nkey = [\"id\"]\nquery = \"SELECT id FROM mails\"\n";
    let drain = "[[drain]]\nkinds = [\"send_email\"]\nto = \"sidekiq+redis://127.0.0.1:1/0\"\n";
    let class = "[drain.sidekiq.send_email]\nclass = \"SendEmailJob\"\n";
    let place = Place::with_config(&[KINDS, drain, class].concat());
    for verb in [&["apply"][..], &["drain", "run"]] {
        let refused = place.run(verb);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        for word in ["route sidekiq: ", "lossy = true", "nothing was written"] {
            assert!(refused.stderr.contains(word), "{refused:?}");
        }
    }
    assert_eq!(place.ok(&["drain", "status", "--json"]), "");
    place.write(
        "rowlock.toml",
        [KINDS, drain, "lossy = true\n", class].concat(),
    );
    place.ok(&["apply"]);
    assert_eq!(status(&place)["to"], "sidekiq+redis://127.0.0.1:1/0");
    place.sql("CREATE TABLE mails (id INTEGER PRIMARY KEY)");
    place.write("rowlock.toml", [KINDS, drain, class, pair].concat());
    place.ok(&["apply"]);
}

#[test]
fn a_route_that_is_given_up_loses_nothing() {
    let redis = Redis::start();
    let place = drained(&redis);
    let drain = sent(&place, 3);
    let refused = place.run(&["drain", "recall", "redis"]);
    assert_eq!(refused.code, Some(7), "{refused:?}");
    assert!(refused.stderr.contains("holds 3 jobs"), "{refused:?}");
    assert_eq!(status(&place)["sent"], 3);
    drain.signal("KILL");
    drain.wait();
    let recalled = place.run(&["drain", "recall", "redis", "--yes", "--json"]);
    assert_eq!(
        recalled.stdout, "{\"returned\":3,\"route\":\"redis\"}\n",
        "{recalled:?}"
    );
    for word in ["may run again", "still has a [[drain]] redis"] {
        assert!(recalled.stderr.contains(word), "{recalled:?}");
    }
    // Nobody takes them there any more.
    assert_eq!(redis.command(&["HLEN", "rowlock:{jobs}:held"]), "0");
    assert_eq!(place.ok(&["drain", "status", "--json"]), "");
    let worked = place.ok(&["work", "--once", "--quiet", "--json"]);
    assert_eq!(worked, "{\"lost\":0,\"settled\":3}\n");
    let job = place.json(&["job", "show", "3", "--json"]);
    assert_eq!(
        (&job["state"], &job["attempt"]),
        (&"completed".into(), &1.into())
    );
}

#[test]
fn a_route_is_given_up_without_its_redis() {
    let redis = Redis::start();
    let place = drained(&redis);
    let drain = sent(&place, 2);
    redis.kill();
    drain.signal("KILL");
    drain.wait();
    let told = status(&place);
    assert_eq!((&told["sent"], &told["ready"]), (&2.into(), &Value::Null));
    assert!(
        told["error"].as_str().unwrap().contains("can't reach"),
        "{told}"
    );
    let recalled = place.run(&["drain", "recall", "redis", "--yes"]);
    assert_eq!(recalled.code, Some(0), "{recalled:?}");
    assert!(
        recalled.stdout.ends_with(", 2 jobs went back\n"),
        "{recalled:?}"
    );
    assert!(
        recalled.stderr.contains("the sink is left as it is"),
        "{recalled:?}"
    );
    assert_eq!(place.json(&["stats", "--json"])["pending"], 2);
}

#[test]
fn no_output_shows_the_password_of_redis() {
    let redis = Redis::start_with(&["--requirepass", "s3cret"]);
    let open = redis.url().replace("redis://", "redis://:s3cret@");
    let place = Place::with_config(&format!("{KINDS}{}", drain_to(&redis.url())));
    let started = place.run(&["apply"]);
    assert_eq!(started.code, Some(0), "{started:?}");
    place.ok(&["enqueue", "send_email"]);
    let told = status(&place);
    assert!(
        told["error"].as_str().unwrap().contains("password"),
        "{told}"
    );
    let mut command = place.command(&["drain", "run", "-v"]);
    let mut drain = Process::start(command.env("ROWLOCK_DRAIN_REDIS", &open));
    drain.line_with("the sink is there");
    let status = until("the job was sent", || {
        let mut status = place.command(&["drain", "status", "--json"]);
        let told = Process::run(status.env("ROWLOCK_DRAIN_REDIS", &open), "");
        told.stdout.contains("\"ready\":1").then_some(told)
    });
    let mut work = place.command(&["work", "--once", "-v"]);
    let worked = Process::run(work.env("ROWLOCK_FROM", &open), "");
    assert!(worked.stderr.contains("settled job=1"), "{worked:?}");
    let mut doctor = place.command(&["doctor"]);
    let doctor = Process::run(doctor.env("ROWLOCK_DRAIN_REDIS", &open), "");
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    drain.signal("TERM");
    let (_, lines) = drain.wait();
    let all = format!("{lines:?}{worked:?}{status:?}{doctor:?}");
    assert!(!all.contains("s3cret"), "{all}");
    let mut wrong = place.command(&["drain", "status"]);
    let wrong = Process::run(wrong.env("ROWLOCK_DRAIN_REDIS", "mysql://:s3cret@x"), "");
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(!wrong.stderr.contains("s3cret"), "{wrong:?}");
}

#[test]
fn a_worker_of_redis_leads_nothing_and_needs_a_redis() {
    let redis = Redis::start();
    let place = Place::with_config(&format!(
        "{KINDS}[[cron]]\nname = \"nightly\"\nkind = \"echo\"\ncron = \"0 3 * * *\"\n"
    ));
    let worked = place.run(&["work", "--from", &redis.url(), "--once"]);
    assert_eq!(worked.code, Some(0), "{worked:?}");
    assert!(
        worked
            .stderr
            .contains("are led by a drain or a worker with a database"),
        "{worked:?}"
    );
    for (from, word) in [
        ("sidekiq+redis://127.0.0.1:1/0", "run by Sidekiq"),
        ("postgres://ada:s3cret@db", "write redis://"),
        ("rediss://:s3cret@db", "write redis://"),
    ] {
        let refused = place.run(&["work", "--from", from]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(word), "{refused:?}");
        assert!(!refused.stderr.contains("s3cret"), "{refused:?}");
    }
    redis.kill();
    let alone = place.run(&["work", "--from", &redis.url(), "--once"]);
    assert_eq!(alone.code, Some(4), "{alone:?}");
    assert!(alone.stderr.contains("can't reach Redis"), "{alone:?}");
    assert!(!place.path("rowlock.db").exists());
}

#[test]
fn dev_drains_too() {
    let redis = Redis::start();
    let place = Place::with_config(&format!("{KINDS}{}", drain_to(&redis.url())));
    let mut dev = place.start(&["dev", "--listen", "127.0.0.1:0"]);
    dev.line_with("  drain      redis to redis://");
    dev.line_with("  elsewhere  send_email: run by `rowlock work --from redis://");
    place.ok(&["enqueue", "send_email"]);
    wait_for(&place, "ready", 1);
    dev.signal("TERM");
    assert_eq!(dev.wait().0, Some(0));
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Where the start block says that it listens.
fn address(process: &mut Process) -> String {
    let line = process.line_with("  http       http://");
    let rest = line.split("http://").nth(1).unwrap();
    rest.split('/').next().unwrap().to_owned()
}

#[test]
fn a_drain_and_a_worker_of_redis_tell_how_they_are() {
    let redis = Redis::start();
    let place = drained(&redis);
    let mut drain = place.start(&["drain", "run", "--listen", "127.0.0.1:0"]);
    let drain_at = address(&mut drain);
    drain.line_with("the sink is there");
    place.ok(&["enqueue", "send_email"]);
    let elsewhere = Place::with_config(KINDS);
    let flags = [
        "work",
        "-v",
        "--from",
        &redis.url(),
        "--listen",
        "127.0.0.1:0",
    ];
    let mut worker = elsewhere.start(&flags);
    let worker_at = address(&mut worker);
    worker.line_with("settled job=1");
    wait_for(&place, "sent", 0);
    for at in [&drain_at, &worker_at] {
        assert!(get(at, "/livez").starts_with("HTTP/1.1 200 "));
        let ready = get(at, "/readyz");
        assert!(ready.starts_with("HTTP/1.1 200 "), "{ready}");
    }
    let numbers = get(&drain_at, "/metrics");
    for line in [
        "rowlock_drain_sent_total{route=\"redis\"} 1",
        "rowlock_drain_verdicts_total{route=\"redis\",answer=\"accepted\"} 1",
        "rowlock_drain_sink_up{route=\"redis\"} 1",
        "rowlock_store_up 1",
    ] {
        assert!(numbers.contains(line), "{line}: {numbers}");
    }
    let numbers = get(&worker_at, "/metrics");
    assert!(numbers.contains("rowlock_"), "{numbers}");
    // It has no store to be asked about.
    assert!(!numbers.contains("\nrowlock_store_up"), "{numbers}");
    assert!(!numbers.contains("\nrowlock_queue_jobs"), "{numbers}");
}
