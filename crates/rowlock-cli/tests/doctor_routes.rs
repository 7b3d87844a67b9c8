//! Every finding of `doctor` about routes and their Redis, provoked and mended by its remedy.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use rowlock_testbed::{Process, Redis, until};

const KINDS: &str =
    "[handlers.send_email]\nbuiltin = \"noop\"\n[handlers.resize]\nbuiltin = \"noop\"\n";
const SIDEKIQ: &str = "lossy = true\n[drain.sidekiq.send_email]\nclass = \"SendEmailJob\"\n";

/// A Redis that keeps its jobs on disk.
fn redis() -> Redis {
    Redis::start_with(&["--appendonly", "yes"])
}

fn drain_to(url: &str) -> String {
    format!("{KINDS}[[drain]]\nkinds = [\"send_email\"]\nto = \"{url}\"\n")
}

/// A store whose kind send_email goes to a Redis, and a drain.
fn well(redis: &Redis) -> (Place, Process) {
    let place = Place::with_config(&drain_to(&redis.url()));
    place.ok(&["apply"]);
    let drain = run(&place);
    let (exit, found) = place.doctor(&[]);
    assert_eq!(exit, Some(0), "{found:#?}");
    assert!(found.iter().all(|each| each["level"] == "ok"), "{found:#?}");
    assert_eq!(found.len(), 27);
    (place, drain)
}

fn run(place: &Place) -> Process {
    let mut drain = place.start(&["drain", "run"]);
    drain.line_with("the sink is there");
    drain
}

/// Runs a remedy as it is printed.
fn mend(place: &Place, redis: &Redis, remedy: &str) {
    let words: Vec<&str> = remedy.split(' ').collect();
    match words[0] {
        "rowlock" => {
            place.ok(&words[1..]);
        }
        "redis-cli" => {
            assert_eq!(words[1..3], ["-u", &redis.url()], "{remedy}");
            redis.command(&words[3..]);
        }
        _ => panic!("{remedy}"),
    }
    let (exit, found) = place.doctor(&[]);
    assert_eq!(exit, Some(0), "{found:#?}");
}

fn stop(drain: Process) {
    drain.signal("TERM");
    assert_eq!(drain.wait().0, Some(0));
}

/// As if the last drain had been heard long ago.
const SILENT: &str = "UPDATE rowlock_worker SET seen_at = seen_at - 3600000";
const OVERDUE: &str =
    "UPDATE rowlock_job SET scheduled_at = scheduled_at - 120000 WHERE state = 'pending'";

#[test]
fn a_route_without_a_drain_is_found() {
    let redis = redis();
    let (place, drain) = well(&redis);
    stop(drain);
    place.sql(SILENT);
    let (level, what, remedy) = place.only("R025", &[]);
    assert_eq!(level, "info");
    assert!(what.starts_with("no drain of route redis runs"), "{what}");
    assert!(what.ends_with("nothing waits"), "{what}");
    assert_eq!(remedy, "rowlock drain run redis");
    // It is the route's finding, not that of a missing worker.
    place.ok(&["enqueue", "send_email"]);
    place.sql(OVERDUE);
    let (level, what, remedy) = place.only("R025", &[]);
    assert_eq!(level, "warn");
    assert!(
        what.contains("1 due, for 2 m") && what.contains(" by now and not sent"),
        "{what}"
    );
    let mut drain = Process::start(&mut place.shell(&format!("exec {remedy}")));
    drain.line_with("the sink is there");
    until("it was sent", || {
        (place.doctor(&[]).0 == Some(0)).then_some(())
    });
    stop(drain);
    place.sql(SILENT);
    let (level, what, _) = place.only("R025", &[]);
    assert_eq!(level, "warn");
    assert!(what.ends_with("1 job is not answered for"), "{what}");
}

#[test]
fn a_route_that_lags_is_found() {
    let redis = redis();
    let (place, drain) = well(&redis);
    stop(drain);
    let few = format!("{}ahead = 1\nbatch = 1\n", drain_to(&redis.url()));
    place.write("rowlock.toml", few);
    for _ in 0..3 {
        place.ok(&["enqueue", "send_email"]);
    }
    let _drain = run(&place);
    until("Redis is as full as it may be", || {
        let told = place.json(&["drain", "status", "--json"]);
        (told["ready"] != 0).then_some(())
    });
    place.sql(OVERDUE);
    let (level, what, remedy) = place.only("R026", &[]);
    assert_eq!(level, "warn");
    assert!(what.contains("due, for 2 m"), "{what}");
    assert_eq!(remedy, format!("rowlock work --from {}", redis.url()));
    let _worker = Process::start(&mut place.shell(&format!("exec {remedy}")));
    until("it has caught up", || {
        (place.doctor(&[]).0 == Some(0)).then_some(())
    });
}

#[test]
fn a_route_that_the_configuration_lacks_is_found() {
    let redis = redis();
    let (place, drain) = well(&redis);
    stop(drain);
    place.write("rowlock.toml", KINDS);
    let (level, what, remedy) = place.only("R028", &[]);
    assert_eq!(level, "warn");
    assert_eq!(
        what,
        "route redis is not in the configuration, and send_email still go by it"
    );
    mend(&place, &redis, &remedy);
}

#[test]
fn a_route_that_was_not_applied_is_found() {
    let redis = redis();
    let (place, _drain) = well(&redis);
    let more = drain_to(&redis.url()).replace("[\"send_email\"]", "[\"resize\", \"send_email\"]");
    place.write("rowlock.toml", more);
    let (level, what, remedy) = place.only("R006", &[]);
    assert_eq!(level, "warn");
    assert_eq!(
        what,
        "route redis: the kinds and queues that go by it differ"
    );
    mend(&place, &redis, &remedy);
    let renamed = drain_to(&redis.url()) + "name = \"mail\"\n";
    place.write("rowlock.toml", renamed);
    let (_, found) = place.doctor(&[]);
    let unwritten = found.iter().find(|each| each["code"] == "R006").unwrap();
    assert_eq!(unwritten["what"], "route mail: nothing goes by it yet");
}

#[test]
fn what_may_be_lost_is_explained() {
    let redis = redis();
    let url = format!("sidekiq+{}", redis.url());
    let place = Place::with_config(&[&drain_to(&url), SIDEKIQ].concat());
    place.ok(&["apply"]);
    let _drain = run(&place);
    let (level, what, remedy) = place.only("R027", &[]);
    assert_eq!(level, "info");
    assert!(
        what.starts_with("route sidekiq is lossy: a job of kinds send_email is gone if"),
        "{what}"
    );
    assert!(remedy.contains("[[pair]]"), "{remedy}");
    // By hand: a pair is written for them. What a pair derives comes back.
    place.sql("CREATE TABLE mails (id INTEGER PRIMARY KEY)");
    let pair = "[[pair]]\nkind = \"send_email\"\nevery = \"1m\"\nkey = [\"id\"]\n\
                query = \"SELECT id FROM mails\"\n";
    place.write("rowlock.toml", [&drain_to(&url), SIDEKIQ, pair].concat());
    place.ok(&["apply"]);
    place.ok(&["reconcile", "run"]);
    let (exit, found) = place.doctor(&[]);
    assert_eq!(exit, Some(0), "{found:#?}");
    assert!(found.iter().all(|each| each["level"] == "ok"), "{found:#?}");
}

#[test]
fn a_redis_that_throws_keys_away_is_found() {
    let redis = redis();
    let (place, _drain) = well(&redis);
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let (level, what, _) = place.only("R022", &[]);
    assert_eq!(level, "info");
    assert!(what.contains("maxmemory-policy allkeys-lru"), "{what}");
    redis.command(&["CONFIG", "SET", "maxmemory", "1gb"]);
    let (level, _, remedy) = place.only("R022", &[]);
    assert_eq!(level, "warn");
    mend(&place, &redis, &remedy);
}

#[test]
fn a_redis_that_keeps_nothing_is_worse_for_sidekiq() {
    let redis = Redis::start();
    let place = Place::with_config(&drain_to(&redis.url()));
    place.ok(&["apply"]);
    let drain = run(&place);
    let (level, what, remedy) = place.only("R023", &[]);
    assert_eq!(level, "info");
    assert!(what.contains("keeps nothing on disk"), "{what}");
    stop(drain);
    let url = format!("sidekiq+{}", redis.url());
    place.write("rowlock.toml", [&drain_to(&url), SIDEKIQ].concat());
    place.ok(&["apply"]);
    let _drain = run(&place);
    let (exit, found) = place.doctor(&[]);
    assert_eq!(exit, Some(6));
    let disk = found.iter().find(|each| each["code"] == "R023").unwrap();
    assert_eq!(disk["level"], "warn", "{disk}");
    assert_eq!(disk["remedy"], remedy.as_str());
    mend(&place, &redis, &remedy);
}

#[test]
fn a_redis_that_can_not_be_used_is_found() {
    let redis = redis();
    let (place, drain) = well(&redis);
    stop(drain);
    redis.command(&["SET", "rowlock:{jobs}:owner", "7"]);
    let (level, what, remedy) = place.only("R024", &[]);
    assert_eq!(level, "error");
    assert!(what.contains("another store's jobs are at"), "{what}");
    assert!(what.contains("?prefix=NAME"), "{what}");
    mend(&place, &redis, &remedy.replace('\'', ""));
    redis.command(&["SET", "rowlock:{jobs}:notes", "mine"]);
    let (level, what, remedy) = place.only("R024", &[]);
    assert_eq!(level, "warn");
    assert!(what.contains("rowlock:{jobs}:notes"), "{what}");
    assert!(remedy.contains("?prefix=NAME"), "{remedy}");
    redis.command(&["DEL", "rowlock:{jobs}:notes"]);
    assert_eq!(place.doctor(&[]).0, Some(0));
    redis.kill();
    let (level, what, remedy) = place.only("R024", &[]);
    assert_eq!(level, "error");
    assert!(what.starts_with("route redis can't be used: "), "{what}");
    assert!(what.contains("can't reach Redis"), "{what}");
    redis.restart();
    mend(&place, &redis, &remedy);
}

#[test]
fn a_redis_that_is_almost_full_is_found() {
    let redis = redis();
    let (place, _drain) = well(&redis);
    let info = redis.command(&["INFO", "memory"]);
    let used = info
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    let used: u64 = used.unwrap().trim().parse().unwrap();
    redis.command(&["CONFIG", "SET", "maxmemory", &used.to_string()]);
    let (level, what, remedy) = place.only("R029", &[]);
    assert_eq!(level, "warn");
    assert!(
        what.contains("no job can be sent when it is full"),
        "{what}"
    );
    mend(&place, &redis, &remedy);
    assert!(
        redis
            .command(&["CONFIG", "GET", "maxmemory"])
            .contains(&(2 * used).to_string())
    );
}
