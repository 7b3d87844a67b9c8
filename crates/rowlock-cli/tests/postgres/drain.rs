//! Jobs that go on to Redis from a server, by the role that may work and no more.

use rowlock_testbed::{Process, Redis, until};
use serde_json::Value;

use crate::store::Store;

const KINDS: &str = "[handlers.send_email]\nbuiltin = \"noop\"\n";

/// A store whose kind send_email goes to a Redis.
fn drained(redis: &Redis) -> Store {
    let config = format!(
        "{KINDS}[[drain]]\nkinds = [\"send_email\"]\nto = \"{}\"\n",
        redis.url()
    );
    let store = Store::new(&config);
    let applied = store.ok(&["apply"]);
    let line = "changed    route redis  kind send_email: \"direct\" -> \"redis\"\n";
    assert!(applied.ends_with(line), "{applied}");
    store
}

fn wait_for(store: &Store, what: &str, number: u64) -> Value {
    until(&format!("{what} is {number}"), || {
        let status = store.json(&["drain", "status", "--json"]);
        Some(status).filter(|status| status[what] == number)
    })
}

#[test]
fn a_worker_of_redis_runs_what_a_server_holds() {
    let redis = Redis::start();
    let store = drained(&redis);
    store.ok(&["migrate", "roles", "--run"]);
    store.sql("CREATE ROLE drainer LOGIN IN ROLE rowlock_worker");
    for _ in 0..3 {
        store.ok(&["enqueue", "send_email"]);
    }
    let mut command = store.command(&["drain", "run"]);
    let mut drain = Process::start(command.env("ROWLOCK_URL", store.url_of("drainer")));
    drain.line_with("the sink is there");
    wait_for(&store, "ready", 3);
    let shown = store.ok(&["job", "show", "1"]);
    assert!(shown.contains("\n  sent      by route redis\n"), "{shown}");
    // The server isn't reached: there is none at that address.
    let mut work = store.command(&["work", "--from", &redis.url(), "--once", "--json"]);
    let worked = Process::run(work.env("ROWLOCK_URL", "postgres://127.0.0.1:1/none"), "");
    assert_eq!(worked.stdout, "{\"lost\":0,\"settled\":3}\n", "{worked:?}");
    wait_for(&store, "sent", 0);
    assert_eq!(store.json(&["stats", "--json"])["completed"], 3);
    let (exit, found) = doctor(&store);
    assert_eq!(exit, Some(0), "{found}");
    drain.signal("TERM");
    let (code, lines) = drain.wait();
    assert_eq!(code, Some(0), "{lines:?}");
}

fn doctor(store: &Store) -> (Option<i32>, String) {
    let finished = store.run(&["doctor"]);
    (finished.code, finished.stdout)
}

#[test]
fn a_route_of_a_server_is_given_up() {
    let redis = Redis::start();
    let store = drained(&redis);
    store.ok(&["enqueue", "send_email"]);
    let drain = store.start(&["drain", "run"]);
    wait_for(&store, "ready", 1);
    assert_eq!(store.run(&["drain", "recall", "redis"]).code, Some(7));
    drain.signal("KILL");
    drain.wait();
    let recalled = store.ok(&["drain", "recall", "redis", "--yes"]);
    assert_eq!(
        recalled,
        "recalled redis: kind send_email goes directly again, 1 job went back\n"
    );
    assert_eq!(store.ok(&["drain", "status", "--json"]), "");
    let worked = store.ok(&["work", "--once", "--quiet", "--json"]);
    assert_eq!(worked, "{\"lost\":0,\"settled\":1}\n");
}
