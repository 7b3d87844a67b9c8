//! Workers: when each was heard, and what it holds.

use std::collections::BTreeMap;

use rowlock::Record;
use rowlock::claim::WorkerId;
use rowlock::engine::WorkerRow;

use super::{Column, Grid, Key, Row, Tone, WAITING, number, text};
use crate::command::top::look::Seen;
use crate::command::top::state::Page;
use crate::command::top::text::{clean, short};
use crate::show;

const COLUMNS: [Column; 6] = [
    text("WORKER", 0),
    number("HEARD", 1),
    number("LEASE", 4),
    number("HOLDS", 2),
    text("JOBS", 3),
    number("UP", 5),
];

/// The processes; a route is none.
fn processes(seen: &Seen) -> impl Iterator<Item = &WorkerRow> {
    let rows = seen.workers.iter().flatten();
    rows.filter(|row| !row.id.as_str().starts_with(WorkerId::ROUTE))
}

pub fn grid(seen: &Seen) -> Grid {
    let rows = processes(seen).map(|row| {
        let silent = show::between(row.seen_at, seen.now);
        Row {
            key: Key::Named(row.id.as_str().to_owned()),
            cells: vec![
                clean(row.id.as_str()),
                short(silent),
                short(row.lease),
                show::count(row.holds),
                kinds(seen, row),
                short(show::between(row.joined_at, seen.now)),
            ],
            tone: match silent {
                long if long > row.lease => Tone::Bad,
                long if long > row.lease / 2 => Tone::Warn,
                _ => Tone::Plain,
            },
        }
    });
    Grid {
        columns: &COLUMNS,
        rows: rows.collect(),
        empty: match seen.workers {
            Some(_) => "no worker has joined: `rowlock work` starts one",
            None => WAITING,
        },
    }
}

/// What it holds, as far as it was read.
fn held<'a>(seen: &'a Seen, row: &'a WorkerRow) -> impl Iterator<Item = &'a Record> {
    let jobs = seen.running.iter().flatten();
    jobs.filter(|job| job.locked_by.as_deref() == Some(row.id.as_str()))
}

/// `3 mail, 1 report`.
fn kinds(seen: &Seen, row: &WorkerRow) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for job in held(seen, row) {
        *kinds.entry(job.kind.as_str()).or_default() += 1;
    }
    let parts = kinds.iter().map(|(kind, n)| format!("{n} {}", clean(kind)));
    match kinds.is_empty() {
        true => "-".to_owned(),
        false => parts.collect::<Vec<_>>().join(", "),
    }
}

pub fn page(seen: &Seen, key: &Key) -> Option<Page> {
    let Key::Named(id) = key else { return None };
    let row = processes(seen).find(|row| row.id.as_str() == id)?;
    let mut page = Page::new(format!("worker {}", clean(id)));
    page.add("joined", &row.joined_at.to_string());
    page.add("heard", &row.seen_at.to_string());
    page.add("lease", &show::span(row.lease));
    page.add("holds", &show::count(row.holds));
    for job in held(seen, row) {
        let line = format!("{}  {}  queue {}", job.id, job.kind, job.queue);
        page.add("job", &line);
    }
    Some(page)
}
