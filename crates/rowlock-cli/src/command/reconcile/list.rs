//! `rowlock reconcile list`: how the pairs are doing.

use anyhow::Result;
use jiff::Timestamp;
use rowlock::engine::{HeldBack, PairRow};
use rowlock::reconcile::Cadence;
use rowlock::{Name, Pair, Rowlock};
use serde::Serialize;

use super::the_one;
use crate::open::{Access, Setup};
use crate::show::{self, Table};
use crate::{exit, out};

/// How many keys are read at once, and shown to people.
const PAGE: usize = 500;
const SHOWN: usize = 50;

/// What an error may take up in a table.
const ERROR: usize = 60;

/// A pair as JSON.
#[derive(Serialize)]
pub struct Shown<'a> {
    name: &'a Name,
    kind: &'a Name,
    every: String,
    last_success: Option<Timestamp>,
    age_seconds: f64,
    found: u64,
    enqueued: u64,
    lost_enqueues: u64,
    ineffective: u64,
    held_back: u64,
    error: Option<&'a str>,
    paused: bool,
    leader: Option<&'a str>,
    uncovered: Vec<Uncovered<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Vec<Key>>,
}

#[derive(Serialize)]
struct Uncovered<'a> {
    state: &'a str,
    rows: u64,
}

/// A key that is held back, or was.
#[derive(Serialize)]
pub struct Key {
    key: String,
    reason: String,
    until: Option<Timestamp>,
    n: u32,
}

impl<'a> Shown<'a> {
    pub fn of(row: &'a PairRow) -> Self {
        let uncovered = row.uncovered.iter();
        Self {
            name: &row.pair.name,
            kind: &row.pair.kind,
            every: cadence(&row.pair),
            last_success: row.last_success,
            age_seconds: row.age.as_secs_f64(),
            found: row.found,
            enqueued: row.enqueued,
            lost_enqueues: row.lost_enqueues,
            ineffective: row.ineffective,
            held_back: row.held_back,
            error: row.error.as_deref(),
            paused: row.switch.is_some(),
            leader: row.leader.as_deref(),
            uncovered: uncovered
                .map(|(state, rows)| Uncovered { state, rows: *rows })
                .collect(),
            keys: None,
        }
    }
}

/// `1m`, or a calendar's pattern and its zone.
pub fn cadence(pair: &Pair) -> String {
    match &pair.cadence {
        Cadence::Every(time) => show::span(*time).replace(' ', ""),
        Cadence::Cron { cron, tz } => format!("{cron} {tz}"),
    }
}

pub async fn all(setup: &Setup, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Read).await?;
    let rows = rowlock.schedule().pairs().await?;
    if json {
        for row in &rows {
            out::json(&Shown::of(row))?;
        }
        return Ok(exit::OK);
    }
    if rows.is_empty() {
        out::note("no pair is declared: write a [[pair]] into rowlock.toml, then `rowlock apply`");
        return Ok(exit::OK);
    }
    out::lines(&table(&rows).lines())?;
    Ok(exit::OK)
}

fn table(rows: &[PairRow]) -> Table {
    let heading = [
        "PAIR",
        "KIND",
        "EVERY",
        "LAST",
        "FOUND",
        "ENQUEUED",
        "LOST",
        "INEFFECTIVE",
        "HELD BACK",
        "STATE",
    ];
    let mut table = Table::new(&heading, &[4, 5, 6, 7, 8]);
    for row in rows {
        table.row(vec![
            row.pair.name.to_string(),
            row.pair.kind.to_string(),
            cadence(&row.pair),
            match row.last_success {
                Some(_) => format!("{} ago", show::span(row.age)),
                None => "never".to_owned(),
            },
            show::count(row.found),
            show::count(row.enqueued),
            show::count(row.lost_enqueues),
            show::count(row.ineffective),
            show::count(row.held_back),
            state(row),
        ]);
    }
    table
}

/// `ok`, or what isn't.
pub fn state(row: &PairRow) -> String {
    let mut parts = Vec::new();
    if let Some(switch) = &row.switch {
        let reason = switch.reason.as_deref().unwrap_or("no reason given");
        parts.push(format!("paused: {}", show::text(reason)));
    }
    if let Some(error) = &row.error {
        parts.push(format!("failing: {}", show::excerpt(error, ERROR)));
    }
    if let Some(late) = rowlock::reconcile::stale(row).filter(|_| row.switch.is_none()) {
        parts.push(format!("overdue by {}", show::span(late)));
    }
    match parts.is_empty() {
        true => "ok".to_owned(),
        false => parts.join(", "),
    }
}

pub async fn one(setup: &Setup, name: &Name, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Read).await?;
    let row = the_one(setup, &rowlock, name).await?;
    if json {
        let mut shown = Shown::of(&row);
        let keys = held(&rowlock, name, usize::MAX).await?;
        shown.keys = Some(keys.into_iter().map(Key::from).collect());
        out::json(&shown)?;
        return Ok(exit::OK);
    }
    out::lines(&table(std::slice::from_ref(&row)).lines())?;
    let mut lines = vec![format!("  query     {}", one_line(&row.pair.query))];
    if let Some(error) = &row.error {
        lines.push(format!("  error     {}", show::text(error)));
    }
    if let Some(leader) = &row.leader {
        lines.push(format!("  leader    {}", show::text(leader)));
    }
    for (state, rows) in &row.uncovered {
        let rows = show::count(*rows);
        let state = show::text(state);
        lines.push(format!("  uncovered {rows} rows in state {state}"));
    }
    out::lines(&(lines.join("\n") + "\n"))?;
    keys(setup, &rowlock, &row).await?;
    Ok(exit::OK)
}

fn one_line(query: &str) -> String {
    show::text(&query.split_whitespace().collect::<Vec<_>>().join(" "))
}

async fn keys(setup: &Setup, rowlock: &Rowlock, row: &PairRow) -> Result<()> {
    let keys = held(rowlock, &row.pair.name, SHOWN + 1).await?;
    if keys.is_empty() {
        return Ok(());
    }
    let now = rowlock.clock().now();
    let mut table = Table::new(&["KEY", "REASON", "N", "UNTIL"], &[2]);
    for key in keys.iter().take(SHOWN) {
        let until = match key.not_before {
            _ if key.reason == "done" => "not held back".to_owned(),
            None => "lifted".to_owned(),
            Some(until) if until <= now => "over".to_owned(),
            Some(until) => format!("{until} (in {})", show::span(show::between(now, until))),
        };
        table.row(vec![
            show::text(&key.key),
            key.reason.clone(),
            key.n.to_string(),
            until,
        ]);
    }
    out::lines(&table.lines())?;
    if keys.len() > SHOWN {
        out::note("there are more: all of them with --json");
    }
    if row.held_back > 0 {
        let lift = setup.command(&format!("reconcile lift {} KEY", row.pair.name));
        out::note(&format!(
            "{lift} lets ticks have a key again, --all every one"
        ));
    }
    Ok(())
}

impl From<HeldBack> for Key {
    fn from(held: HeldBack) -> Self {
        Self {
            key: held.key,
            reason: held.reason,
            until: held.not_before,
            n: held.n,
        }
    }
}

async fn held(rowlock: &Rowlock, pair: &Name, most: usize) -> Result<Vec<HeldBack>> {
    let schedule = rowlock.schedule();
    let mut all: Vec<HeldBack> = Vec::new();
    while all.len() < most {
        let limit = PAGE.min(most - all.len());
        let after = all.last().map(|last| last.key.clone());
        let page = schedule.held_back(pair, after.as_deref(), limit).await?;
        let over = page.len() < limit;
        all.extend(page);
        if over {
            break;
        }
    }
    Ok(all)
}
