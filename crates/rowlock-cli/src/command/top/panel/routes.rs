//! Routes: what waits for a drain, what was sent, and whether a drain runs.

use std::time::Duration;

use rowlock::Name;
use rowlock::engine::RouteRow;

use super::{Column, Grid, Key, Row, Tone, WAITING, number, text};
use crate::command::top::look::Seen;
use crate::command::top::state::Page;
use crate::command::top::text::{clean, short};
use crate::show;

const COLUMNS: [Column; 7] = [
    text("ROUTE", 0),
    number("UNSENT", 1),
    number("LAG", 1),
    number("SENT", 2),
    text("DRAIN", 1),
    text("KINDS", 3),
    text("QUEUES", 4),
];

pub fn grid(seen: &Seen) -> Grid {
    let rows = seen.routes.iter().flatten().map(|row| Row {
        key: Key::Named(row.route.to_string()),
        tone: match row.drained {
            true => Tone::Plain,
            false => Tone::Bad,
        },
        cells: vec![
            clean(row.route.as_str()),
            counted(row.unsent),
            lag(row),
            counted(row.sent),
            drain(seen, row),
            names(&row.kinds),
            names(&row.queues),
        ],
    });
    Grid {
        columns: &COLUMNS,
        rows: rows.collect(),
        empty: match seen.routes {
            Some(_) => "every job goes directly: docs/draining.md says when not to",
            None => WAITING,
        },
    }
}

fn counted(jobs: u64) -> String {
    match jobs {
        most if most >= RouteRow::MOST => format!("{}+", show::count(RouteRow::MOST)),
        some => show::count(some),
    }
}

fn lag(row: &RouteRow) -> String {
    match row.unsent {
        0 => "-".to_owned(),
        _ => short(Duration::from_millis(row.lag_ms)),
    }
}

fn drain(seen: &Seen, row: &RouteRow) -> String {
    match (row.seen_at, row.drained) {
        (None, _) => "never".to_owned(),
        (Some(_), true) => "runs".to_owned(),
        (Some(at), false) => format!("gone {}", short(show::between(at, seen.now))),
    }
}

fn names(names: &[Name]) -> String {
    let names: Vec<String> = names.iter().map(|name| clean(name.as_str())).collect();
    match names.is_empty() {
        true => "-".to_owned(),
        false => names.join(" "),
    }
}

pub fn page(seen: &Seen, key: &Key) -> Option<Page> {
    let Key::Named(name) = key else { return None };
    let mut rows = seen.routes.iter().flatten();
    let row = rows.find(|row| row.route.as_str() == name)?;
    let mut page = Page::new(format!("route {}", clean(name)));
    page.add("unsent", &counted(row.unsent));
    page.add("lag", &lag(row));
    page.add("sent", &counted(row.sent));
    page.add("drain", &drain(seen, row));
    page.add("kinds", &names(&row.kinds));
    page.add("queues", &names(&row.queues));
    page.add(
        "",
        "`rowlock drain status` also asks the sink how full it is",
    );
    Some(page)
}
