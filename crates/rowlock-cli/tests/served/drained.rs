//! A sink that is lost, as somebody who looks sees it.

use rowlock_testbed::Redis;

use super::accessible::nothing_is_found;
use super::browser::Browser;
use super::{Home, Served, ok};

/// The numbers of the one route: sent, ready, taken, pushed, sent again.
const ROUTE: &str =
    "[...document.querySelectorAll('#drains tbody td.n')].slice(2).map((cell) => cell.textContent)";

pub fn config(redis: &Redis) -> String {
    let url = redis.url();
    format!("[[drain]]\nkinds = [\"send_email\"]\nto = \"{url}\"\n")
}

/// The store's configuration is the one above.
pub fn a_redis_that_was_lost_is_seen_to_get_its_jobs_again(home: &dyn Home, redis: &Redis) {
    ok(home, &["migrate", "up"]);
    ok(home, &["apply"]);
    for _ in 0..3 {
        ok(home, &["enqueue", "send_email"]);
    }
    let dev = Served::of(&mut home.command(&["dev", "--listen", "127.0.0.1:0"]));
    let mut browser = Browser::open();
    browser.go(&format!("http://{}/drains", dev.address));
    browser.wait(&format!("{ROUTE}.join() === '3,3,0,3,0'"));
    nothing_is_found(&mut browser);
    redis.kill();
    // It has told nobody how full it was.
    browser.wait(&format!("{ROUTE}.join() === '3,–,–,–,–'"));
    assert_eq!(
        browser.look("document.querySelectorAll('#drains .reason').length"),
        1
    );
    redis.restart();
    browser.wait(&format!("{ROUTE}.join() === '3,3,0,3,3'"));
    dev.end();
}
