//! Answers that serve everybody for a while.

use super::{Ask, Home, Served, furnish, ok};

/// Whether each job that is added is counted by the very next request.
pub fn is_counted_at_once(served: &Served) -> bool {
    let waiting = || served.get("/stats").ok()["pending"].as_u64().unwrap();
    let before = waiting();
    (1..=20).all(|added| {
        served.post("/jobs", r#"{"kind":"echo"}"#).ok();
        waiting() == before + added
    })
}

pub fn whoever_changes_something_sees_it_in_the_next_answer(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    assert!(is_counted_at_once(&served));
    let paused = |paused: bool| {
        let queues = served.get("/queues").ok();
        let queues = queues["items"].as_array().unwrap();
        let queue = queues.iter().find(|queue| queue["queue"] == "default");
        assert_eq!(queue.unwrap()["paused"], paused);
    };
    for _ in 0..5 {
        served.post("/queues/default/pause", "{}").ok();
        paused(true);
        served.post("/queues/default/resume", "{}").ok();
        paused(false);
    }
}

pub fn whoever_wants_a_new_look_sees_what_others_have_changed(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    let new = Ask::new("GET", "/stats").with("Cache-Control", "max-age=0, no-cache");
    let waiting = || served.ask(&new).ok()["pending"].as_u64().unwrap();
    let before = waiting();
    for added in 1..=3 {
        ok(home, &["enqueue", "echo"]);
        assert_eq!(waiting(), before + added);
    }
}
