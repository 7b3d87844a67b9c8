use std::collections::BTreeSet;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;
use crate::job::calendar::tests::{PATTERNS, ZONES};

fn at(text: &str) -> Timestamp {
    format!("2026-06-01T{text}Z").parse().unwrap()
}

fn every_five_minutes() -> Calendar {
    Calendar::new("*/5 * * * *", "UTC").unwrap()
}

#[test]
fn a_tick_on_time_fires_whatever_the_policy() {
    for policy in [Missed::Skip, Missed::One, Missed::All] {
        for now in ["03:00:00", "03:00:59", "03:01:00"] {
            let due = due(&every_five_minutes(), at("03:00:00"), at(now), policy);
            assert_eq!(due.ticks, [at("03:00:00")], "{policy:?} {now}");
            assert_eq!((due.missed, due.next_at), (0, at("03:05:00")));
        }
        let early = due(
            &every_five_minutes(),
            at("03:00:00"),
            at("02:59:59"),
            policy,
        );
        assert_eq!((early.ticks.len(), early.next_at), (0, at("03:00:00")));
    }
}

#[test]
fn missed_ticks_go_by_the_policy() {
    let ticks = |policy| {
        let due = due(
            &every_five_minutes(),
            at("03:00:00"),
            at("03:20:30"),
            policy,
        );
        assert_eq!((due.missed, due.next_at), (4, at("03:25:00")), "{policy:?}");
        due.ticks
    };
    assert_eq!(ticks(Missed::Skip), [at("03:20:00")]);
    assert_eq!(ticks(Missed::One), [at("03:15:00"), at("03:20:00")]);
    let all = ["03:00:00", "03:05:00", "03:10:00", "03:15:00", "03:20:00"].map(at);
    assert_eq!(ticks(Missed::All), all);
}

#[test]
fn a_year_away_is_made_up_for_in_rounds_or_in_one_step() {
    let calendar = Calendar::new("* * * * *", "Europe/Berlin").unwrap();
    let (then, now) = (
        at("00:00:00"),
        at("00:00:00") + SignedDuration::from_hours(24 * 365),
    );
    let first = due(&calendar, then, now, Missed::All);
    assert_eq!((first.ticks.len(), first.missed), (MOST_TICKS, MOST_TICKS));
    let second = due(&calendar, first.next_at, now, Missed::All);
    assert_eq!(second.ticks[0], first.next_at);
    let one = due(&calendar, then, now, Missed::One);
    let minutes = |n| now - SignedDuration::from_mins(n);
    assert_eq!(one.ticks, [minutes(2), minutes(1), now]);
    let skip = due(&calendar, then, now, Missed::Skip);
    assert_eq!(skip.ticks, [minutes(1), now]);
    assert_eq!((one.missed, one.next_at), (MOST_TICKS, minutes(-1)));
}

/// What happens to a cron's row: somebody looks, and what they saw is written now, later or never.
#[derive(Debug, Clone)]
enum Step {
    /// The clock moves by so many seconds, also back.
    Clock(i64),
    /// Somebody looks and fires at once.
    Fire,
    /// Somebody looks, and others come first.
    Look,
    /// Whoever looked first fires now, or is refused.
    Late,
    /// Whoever looked first is gone.
    Die,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => prop_oneof![1_i64..90, Just(3 * 3600), -7_200_i64..0, 0_i64..90_000].prop_map(Step::Clock),
        3 => Just(Step::Fire),
        2 => Just(Step::Look),
        2 => Just(Step::Late),
        1 => Just(Step::Die),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_tick_fires_twice_and_none_is_lost_whoever_looks_when(
        tz in prop::sample::select(&ZONES[..]),
        cron in prop::sample::select(&PATTERNS[..]),
        policy in prop::sample::select(&[Missed::Skip, Missed::One, Missed::All][..]),
        // Around days when clocks are put forward or back.
        begin in prop::sample::select(&["2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z",
            "2026-03-08T03:00:00Z", "2026-10-31T22:00:00Z", "2026-04-04T10:00:00Z"][..]),
        steps in steps(),
    ) {
        let calendar = Calendar::new(cron, tz).unwrap();
        let mut now: Timestamp = begin.parse().unwrap();
        let first = calendar.after(now).unwrap();
        let (mut next_at, mut latest) = (first, now);
        let mut fired = BTreeSet::new();
        let mut seen: Vec<(Timestamp, Timestamp, DueTicks)> = Vec::new();
        let drain = std::iter::repeat_n(Step::Fire, 120);
        for step in steps.into_iter().chain([Step::Clock(90_000)]).chain(drain) {
            let look = match step {
                Step::Clock(by) => {
                    now += SignedDuration::from_secs(by);
                    latest = latest.max(now);
                    continue;
                }
                Step::Look => {
                    seen.push((next_at, now, due(&calendar, next_at, now, policy)));
                    continue;
                }
                Step::Die => {
                    seen.pop();
                    continue;
                }
                Step::Late if seen.is_empty() => continue,
                Step::Late => seen.remove(0),
                Step::Fire => (next_at, now, due(&calendar, next_at, now, policy)),
            };
            let (expected, then, look) = look;
            if expected != next_at {
                // The row has moved on: the engine refuses it.
                continue;
            }
            prop_assert!(look.next_at > next_at || (look.next_at == next_at && look.ticks.is_empty()));
            let late = then - SignedDuration::from_secs(60);
            let missed = look.ticks.iter().filter(|tick| **tick < late).count();
            match policy {
                Missed::Skip => prop_assert_eq!(missed, 0),
                Missed::One => prop_assert_eq!(missed, look.missed.min(1)),
                Missed::All => prop_assert_eq!(missed, look.missed),
            }
            for tick in look.ticks {
                prop_assert!(tick >= next_at && tick < look.next_at && tick <= then, "{}", tick);
                prop_assert!(fired.insert(tick), "{} fired twice", tick);
            }
            // What is on time fires under every policy.
            let mut tick = next_at;
            while tick < look.next_at {
                prop_assert!(tick < late || fired.contains(&tick), "{} is lost", tick);
                tick = calendar.after(tick).unwrap();
            }
            next_at = look.next_at;
        }
        prop_assert!(next_at > now, "it went on to where it has to wait");
        if policy == Missed::All {
            let mut tick = first;
            while tick < next_at {
                prop_assert!(fired.remove(&tick), "{} is lost", tick);
                tick = calendar.after(tick).unwrap();
            }
            prop_assert!(fired.is_empty(), "{:?} are no ticks", fired);
        }
        prop_assert!(next_at <= calendar.after(latest).unwrap());
    }
}
