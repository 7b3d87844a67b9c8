//! Queues: what waits, what runs, what ends, and what is stopped.

use rowlock::engine::QueueRow;
use rowlock::switch::{Switch, Target};

use super::{Column, Grid, Key, Row, Tone, WAITING, number, text};
use crate::command::stats::oldest;
use crate::command::top::look::Seen;
use crate::command::top::rate;
use crate::command::top::state::Page;
use crate::command::top::text::clean;
use crate::show;

const COLUMNS: [Column; 10] = [
    text("QUEUE", 0),
    number("PENDING", 1),
    number("SCHED", 6),
    number("RETRY", 7),
    number("HELD", 8),
    number("RUN", 2),
    number("DONE/S", 4),
    number("FAIL/S", 5),
    number("OLDEST", 3),
    text("STATE", 3),
];

pub fn grid(seen: &Seen) -> Grid {
    let rows = seen.queues.iter().flatten().map(|row| {
        let rate = seen.rates.of(&row.queue);
        let per_second = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), rate::shown);
        let counts = &row.counts;
        Row {
            key: Key::Queue(row.queue.clone()),
            cells: vec![
                clean(row.queue.as_str()),
                show::count(counts.pending),
                show::count(counts.scheduled),
                show::count(counts.retrying),
                show::count(counts.held),
                show::count(counts.processing),
                per_second(rate.map(|rate| rate.completed)),
                per_second(rate.map(|rate| rate.failed)),
                oldest(counts).replace(' ', ""),
                state(seen, row),
            ],
            tone: match switch(seen, row) {
                Some(_) => Tone::Warn,
                None if row.paused => Tone::Warn,
                None => Tone::Plain,
            },
        }
    });
    Grid {
        columns: &COLUMNS,
        rows: rows.collect(),
        empty: match seen.queues {
            Some(_) => "no queue has a job yet: `rowlock enqueue KIND` adds one",
            None => WAITING,
        },
    }
}

/// The switch of a queue.
fn switch<'a>(seen: &'a Seen, row: &QueueRow) -> Option<&'a Switch> {
    let mut switches = seen.switches.iter();
    switches.find(|on| on.target == Target::Queue && on.name == row.queue)
}

fn state(seen: &Seen, row: &QueueRow) -> String {
    let because = |why: &Option<String>| match why {
        Some(why) => format!(": {}", clean(why)),
        None => String::new(),
    };
    match (switch(seen, row), row.paused) {
        // Switches are read less often: the row knows better.
        (Some(on), true) if on.mode.as_str() != "pause" => {
            format!("{}{}", on.mode, because(&on.reason))
        }
        (_, true) => format!("paused{}", because(&row.reason)),
        (Some(on), false) if on.mode.as_str() == "reject" => {
            format!("reject{}", because(&on.reason))
        }
        (_, false) => "open".to_owned(),
    }
}

pub fn page(seen: &Seen, key: &Key) -> Option<Page> {
    let Key::Queue(name) = key else { return None };
    let mut rows = seen.queues.iter().flatten();
    let row = rows.find(|row| row.queue == *name)?;
    let mut page = Page::new(format!("queue {}", clean(name.as_str())));
    let counts = &row.counts;
    for (what, n) in [
        ("pending", counts.pending),
        ("scheduled", counts.scheduled),
        ("retrying", counts.retrying),
        ("held", counts.held),
        ("processing", counts.processing),
        ("completed", counts.completed),
        ("failed", counts.failed),
        ("cancelled", counts.cancelled),
    ] {
        page.add(what, &show::count(n));
    }
    page.add("oldest", &oldest(counts));
    page.add("state", &state(seen, row));
    if let Some(on) = switch(seen, row) {
        if let Some(by) = &on.by {
            page.add("by", by);
        }
        if let Some(until) = on.until {
            page.add("until", &until.to_string());
        }
        page.add("rejected", &show::count(on.rejected));
    }
    Some(page)
}
