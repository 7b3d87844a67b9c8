//! Pairs and crons: when each last did its work, and what went wrong.

use rowlock::engine::{CronRow, PairRow};

use super::{Column, Grid, Key, Row, Tone, WAITING, number, text};
use crate::command::reconcile::{cadence, state};
use crate::command::top::look::Seen;
use crate::command::top::state::Page;
use crate::command::top::text::{clean, short};
use crate::show;

const COLUMNS: [Column; 9] = [
    text("NAME", 0),
    text("IS", 5),
    text("KIND", 6),
    text("EVERY", 4),
    number("LAST", 1),
    number("LOST", 2),
    number("INEFF", 3),
    number("HELD", 3),
    text("STATE", 1),
];

pub fn grid(seen: &Seen) -> Grid {
    let pairs = seen.pairs.iter().flatten().map(pair);
    let crons = seen.crons.iter().flatten().map(|row| cron(seen, row));
    Grid {
        columns: &COLUMNS,
        rows: pairs.chain(crons).collect(),
        empty: match seen.pairs {
            Some(_) => "no pair and no cron is declared: docs/pairs.md and docs/cron.md say how",
            None => WAITING,
        },
    }
}

fn pair(row: &PairRow) -> Row {
    let is = state(row);
    let pair = &row.pair;
    Row {
        key: Key::Named(format!("pair {}", pair.name)),
        tone: match is.as_str() {
            "ok" => Tone::Plain,
            _ if row.error.is_some() => Tone::Bad,
            _ => Tone::Warn,
        },
        cells: vec![
            clean(pair.name.as_str()),
            "pair".to_owned(),
            clean(pair.kind.as_str()),
            clean(&cadence(pair)),
            match row.last_success {
                Some(_) => short(row.age),
                None => "never".to_owned(),
            },
            show::count(row.lost_enqueues),
            show::count(row.ineffective),
            show::count(row.held_back),
            clean(&is),
        ],
    }
}

fn cron(seen: &Seen, row: &CronRow) -> Row {
    let cron = &row.cron;
    let none = || "-".to_owned();
    let last = row.last.map(|(tick, _)| show::between(tick, seen.now));
    let next = short(show::between(seen.now, row.next_at));
    Row {
        key: Key::Named(format!("cron {}", cron.name)),
        tone: match row.paused {
            true => Tone::Warn,
            false => Tone::Plain,
        },
        cells: vec![
            clean(cron.name.as_str()),
            "cron".to_owned(),
            clean(cron.kind.as_str()),
            clean(&cron.cron),
            last.map_or_else(|| "never".to_owned(), short),
            none(),
            none(),
            none(),
            match row.paused {
                true => "paused".to_owned(),
                false => format!("next in {next}"),
            },
        ],
    }
}

pub fn page(seen: &Seen, key: &Key) -> Option<Page> {
    let Key::Named(name) = key else { return None };
    let (is, name) = name.split_once(' ')?;
    let mut page = Page::new(clean(&format!("{is} {name}")));
    if is == "cron" {
        let mut rows = seen.crons.iter().flatten();
        let row = rows.find(|row| row.cron.name.as_str() == name)?;
        let cron = &row.cron;
        page.add("kind", cron.kind.as_str());
        page.add("pattern", &cron.cron);
        page.add("zone", &cron.tz);
        page.add("missed", cron.missed.as_str());
        page.add("next", &row.next_at.to_string());
        if let Some((tick, job)) = row.last {
            page.add("last", &tick.to_string());
            if let Some(job) = job {
                page.add("job", &job.to_string());
            }
        }
        return Some(page);
    }
    let mut rows = seen.pairs.iter().flatten();
    let row = rows.find(|row| row.pair.name.as_str() == name)?;
    page.add("kind", row.pair.kind.as_str());
    page.add("every", &cadence(&row.pair));
    page.add("state", &state(row));
    if let Some(last) = row.last_success {
        page.add("last", &last.to_string());
    }
    page.add("took", &show::span(row.duration));
    for (what, n) in [
        ("found", row.found),
        ("enqueued", row.enqueued),
        ("lost", row.lost_enqueues),
        ("no effect", row.ineffective),
        ("held back", row.held_back),
        ("ticks", row.ticks),
    ] {
        page.add(what, &show::count(n));
    }
    for (state, rows) in &row.uncovered {
        let rows = show::count(*rows);
        page.add("uncovered", &format!("{rows} rows in state {state}"));
    }
    if let Some(leader) = &row.leader {
        page.add("leader", leader);
    }
    if let Some(error) = &row.error {
        page.add("error", error);
    }
    page.add("query", &row.pair.query);
    Some(page)
}
