use jiff::civil::date;
use proptest::prelude::*;

use super::*;

/// The ticks of local days, as a clock on the wall shows them.
fn shown(cron: &str, tz: &str, from: &str, until: &str) -> Vec<String> {
    let calendar = Calendar::new(cron, tz).unwrap();
    let zone = TimeZone::get(tz).unwrap();
    let read = |text: &str| {
        let local: DateTime = text.parse().unwrap();
        local.to_zoned(zone.clone()).unwrap().timestamp()
    };
    let (mut at, until) = (read(from), read(until));
    let mut found = Vec::new();
    while let Some(tick) = calendar.after(at).filter(|tick| *tick < until) {
        let local = tick.to_zoned(zone.clone());
        found.push(local.strftime("%d %H:%M %:z").to_string());
        at = tick;
    }
    found
}

fn refused(cron: &str, tz: &str) -> String {
    Calendar::new(cron, tz).unwrap_err().to_string()
}

#[test]
fn a_time_that_is_left_out_in_spring_comes_when_the_clock_is_put_forward() {
    let berlin = |cron| {
        shown(
            cron,
            "Europe/Berlin",
            "2026-03-28T12:00",
            "2026-03-30T12:00",
        )
    };
    assert_eq!(berlin("30 2 * * *"), ["29 03:00 +02:00", "30 02:30 +02:00"]);
    assert_eq!(
        berlin("0 2,14 * * *"),
        [
            "28 14:00 +01:00",
            "29 03:00 +02:00",
            "29 14:00 +02:00",
            "30 02:00 +02:00"
        ]
    );
    // Two names for one moment are one tick.
    assert_eq!(
        berlin("0 2,3 * * *"),
        ["29 03:00 +02:00", "30 02:00 +02:00", "30 03:00 +02:00"]
    );
    assert_eq!(
        shown(
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00",
            "2026-03-09T12:00"
        ),
        ["08 03:00 -04:00", "09 02:30 -04:00"]
    );
    assert_eq!(
        shown(
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T12:00",
            "2026-10-05T12:00"
        ),
        ["04 02:30 +11:00", "05 02:15 +11:00"]
    );
    // There the day itself begins an hour late.
    assert_eq!(
        shown(
            "@daily",
            "America/Santiago",
            "2026-09-05T12:00",
            "2026-09-07T12:00"
        ),
        ["06 01:00 -03:00", "07 00:00 -03:00"]
    );
}

#[test]
fn a_time_that_comes_twice_in_autumn_counts_once() {
    assert_eq!(
        shown(
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00",
            "2026-10-26T12:00"
        ),
        ["25 02:30 +02:00", "26 02:30 +01:00"]
    );
    assert_eq!(
        shown(
            "0,30 1-2 * * *",
            "America/New_York",
            "2026-10-31T12:00",
            "2026-11-01T12:00"
        ),
        [
            "01 01:00 -04:00",
            "01 01:30 -04:00",
            "01 02:00 -05:00",
            "01 02:30 -05:00"
        ]
    );
    assert_eq!(
        shown(
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04T12:00",
            "2026-04-06T12:00"
        ),
        ["05 01:45 +11:00", "06 01:45 +10:30"]
    );
}

#[test]
fn an_interval_stays_the_same_in_real_time() {
    for (cron, tz, minutes) in [
        ("0 * * * *", "Europe/Berlin", 60),
        ("*/20 * * * *", "Europe/Berlin", 20),
        ("@hourly", "America/New_York", 60),
        ("*/5 * * * *", "America/New_York", 5),
        ("*/30 * * * *", "Australia/Lord_Howe", 30),
        ("* * * * *", "Australia/Lord_Howe", 1),
    ] {
        let calendar = Calendar::new(cron, tz).unwrap();
        let mut at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        at = calendar.after(at).unwrap();
        let end: Timestamp = "2026-12-31T00:00:00Z".parse().unwrap();
        while at < end {
            let next = calendar.after(at).unwrap();
            let step = at.duration_until(next);
            assert_eq!(
                step,
                jiff::SignedDuration::from_mins(minutes),
                "{cron} {tz} {at}"
            );
            at = next;
        }
    }
}

#[test]
fn nicknames_and_the_usual_extensions_are_read() {
    for (cron, ticks) in [
        ("@yearly", vec!["01 00:00 +00:00"]),
        ("@Midnight", vec!["01 00:00 +00:00", "02 00:00 +00:00"]),
        (
            "0 9 * * MON-FRI",
            vec!["01 09:00 +00:00", "02 09:00 +00:00"],
        ),
        (" 0  9 2 JAN * ", vec!["02 09:00 +00:00"]),
        ("0 0 2 * 4", vec!["01 00:00 +00:00", "02 00:00 +00:00"]),
    ] {
        assert_eq!(
            shown(cron, "UTC", "2025-12-31T23:59", "2026-01-03T00:00"),
            ticks,
            "{cron}"
        );
    }
}

#[test]
fn what_is_no_pattern_is_refused_with_the_reason() {
    for (cron, word) in [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("*/10 * * * * *", "seconds"),
        ("0 0 0 1 1 * 2026", "7 fields"),
        ("@reboot", "@hourly"),
        ("61 * * * *", "61 * * * *"),
        ("x * * * *", "x * * * *"),
        ("0 0 30 2 *", "never comes"),
        ("0 0 31 4,6 *", "never comes"),
    ] {
        let why = refused(cron, "UTC");
        assert!(why.contains(word), "{cron}: {why}");
    }
    assert!(refused("@daily", "Mars/Base").contains("Mars/Base"));
    assert!(refused("@daily", "").contains("time zone"));
    Calendar::new("0 0 29 2 *", "UTC").unwrap();
}

pub(in crate::job) const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Pacific/Apia",
];

pub(in crate::job) const PATTERNS: [&str; 12] = [
    "* * * * *",
    "*/7 * * * *",
    "0 * * * *",
    "30 */2 * * *",
    "*/15 1-3 * * *",
    "30 2 * * *",
    "0 0 * * *",
    "15,45 0-3 * * *",
    "0 2,14 * * 0",
    "59 23 31 * *",
    "0 12 29 2 *",
    "0 1 * 3,10,11 SUN",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The rule once more, read off a clock on the wall minute by minute.
    #[test]
    fn every_minute_of_two_days_ticks_as_the_clock_on_the_wall_says(
        tz in prop::sample::select(&ZONES[..]),
        cron in prop::sample::select(&PATTERNS[..]),
        // Most days when some clock is put forward or back are among these.
        day in prop_oneof![0_i64..730, 85_i64..92, 275_i64..282, 294_i64..310, 92_i64..98, 246_i64..252],
    ) {
        let calendar = Calendar::new(cron, tz).unwrap();
        let zone = TimeZone::get(tz).unwrap();
        let start = date(2026, 1, 1).at(0, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap().timestamp();
        let start = start + jiff::SignedDuration::from_hours(24 * day);
        let minute = jiff::SignedDuration::from_mins(1);
        let matches = |reading: DateTime| {
            let reading = reading.to_zoned(TimeZone::UTC).unwrap();
            calendar.pattern.is_time_matching(&reading).unwrap()
        };
        let mut expected = Vec::new();
        let mut at = start;
        for _ in 0..48 * 60 {
            let (before, reading) = (zone.to_datetime(at - minute), zone.to_datetime(at));
            let ticks = if calendar.by_interval {
                matches(reading)
            } else {
                // Readings that this minute is the first to reach or to pass.
                let mut named = before.checked_add(minute).unwrap();
                let highest = (1..=180).map(|n| zone.to_datetime(at - minute * n)).max().unwrap();
                let mut found = false;
                while named <= reading {
                    found |= named > highest && matches(named);
                    named = named.checked_add(minute).unwrap();
                }
                found
            };
            expected.extend(ticks.then_some(at));
            at += minute;
        }
        let mut found = Vec::new();
        let mut tick = start - minute;
        while let Some(next) = calendar.after(tick).filter(|next| *next < at) {
            found.push(next);
            tick = next;
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn the_last_tick_before_a_moment_is_found_from_afar(
        tz in prop::sample::select(&ZONES[..]),
        cron in prop::sample::select(&PATTERNS[1..]),
        begin in 1_750_000_000_i64..1_800_000_000,
        length in 0_i64..400_000,
    ) {
        let calendar = Calendar::new(cron, tz).unwrap();
        let first = calendar.after(Timestamp::from_second(begin).unwrap()).unwrap();
        let end = first + jiff::SignedDuration::from_secs(length);
        let expected = (length > 0).then(|| calendar.walk(first, end).unwrap());
        prop_assert_eq!(calendar.last_before(end, first), expected);
    }
}
