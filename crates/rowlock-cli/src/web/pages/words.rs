//! Numbers, times and states as pages show them.

use std::time::Duration;

use jiff::Timestamp;
use maud::{Markup, html};
use rowlock::engine::browse::MOST;
use serde_json::Value;

use crate::show;

/// How long ago a time was, or how long it is until then; the exact time in its title.
pub fn ago(now: Timestamp, at: Timestamp) -> Markup {
    let exact = at.strftime("%Y-%m-%d %H:%M:%S%.3f UTC").to_string();
    let words = match now.duration_since(at).as_secs() {
        0 => "now".to_owned(),
        past @ 1.. => format!("{} ago", coarse(past.unsigned_abs())),
        ahead => format!("in {}", coarse(ahead.unsigned_abs())),
    };
    html! { time datetime=(at.to_string()) title=(exact) { (words) } }
}

/// As much as a glance needs.
fn coarse(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} m", seconds / 60),
        3_600..86_400 => format!("{} h {} m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// The time in a field of an answer; a dash where there is none.
pub fn time(now: Timestamp, of: &Value, field: &str) -> Markup {
    match text(of, field).parse() {
        Ok(at) => ago(now, at),
        Err(_) => html! { span.none { "–" } },
    }
}

pub fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of[field].as_str().unwrap_or_default()
}

pub fn number(of: &Value, field: &str) -> u64 {
    of[field].as_u64().unwrap_or_default()
}

pub fn list<'a>(of: &'a Value, field: &str) -> &'a [Value] {
    of[field].as_array().map_or(&[], Vec::as_slice)
}

pub fn items(of: &Value) -> &[Value] {
    list(of, "items")
}

/// `1,234`, and `10,000+` where counting has stopped.
pub fn count(n: u64) -> String {
    match n >= MOST {
        true => format!("{}+", show::count(n)),
        false => show::count(n),
    }
}

/// The same beside a count that has stopped: what was seen of the others is what they are at least.
pub fn counted(n: u64, capped: bool) -> String {
    match capped && 0 < n && n < MOST {
        true => format!("{}+", show::count(n)),
        false => count(n),
    }
}

/// The same for what is counted exactly.
pub fn exact(n: u64) -> String {
    show::count(n)
}

/// A number that steps back when it is nothing.
pub fn cell(shown: &str) -> Markup {
    let nothing = shown == "0";
    html! { td.n.none[nothing] { (shown) } }
}

/// Jobs that were given up: in the colour of what is wrong, unless there are none.
pub fn failures(n: u64) -> Markup {
    html! { td.n.none[n == 0].bad[n > 0] { (exact(n)) } }
}

/// Seconds as people say them; a dash where there are none.
pub fn seconds(of: &Value, field: &str) -> String {
    match of[field].as_f64() {
        Some(seconds) => span(seconds),
        None => "–".to_owned(),
    }
}

pub fn span(seconds: f64) -> String {
    let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
    show::span(time)
}

/// A state, told by its word and not by its colour alone.
pub fn state(word: &str) -> Markup {
    let class = match word {
        "completed" | "ok" => "good",
        "failed" | "error" => "bad",
        "processing" | "info" => "busy",
        "pending" => "wait",
        "warn" | "paused" | "hold" | "pause" | "reject" | "held back" | "nobody drains" => "warn",
        _ => "off",
    };
    html! { span class={ "badge " (class) } { (word) } }
}

/// What to type, where there is nothing yet.
pub fn empty(words: &str, command: &str) -> Markup {
    html! {
        div.empty {
            p { (words) }
            pre { code { (command) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_now_with_the_exact_time_beside() {
        let at: Timestamp = "2030-01-31T09:00:00.5Z".parse().unwrap();
        let from = |text: &str| ago(text.parse().unwrap(), at).into_string();
        assert!(from("2030-01-31T09:00:03.6Z").contains(">3 s ago<"));
        assert!(from("2030-01-31T11:30:00Z").contains(">2 h 29 m ago<"));
        assert!(from("2030-01-31T08:50:00Z").contains(">in 10 m<"));
        assert!(from("2030-01-31T09:00:00.6Z").contains("title=\"2030-01-31 09:00:00.500 UTC\""));
        assert_eq!([count(9_999), count(10_000)], ["9,999", "10,000+"]);
        let shown = [(0, true), (7, true), (7, false), (10_000, true)];
        let shown = shown.map(|(n, capped)| counted(n, capped));
        assert_eq!(shown, ["0", "7+", "7", "10,000+"]);
    }
}
