//! What can be wrong with pairs.

use anyhow::Result;
use rowlock::engine::PairRow;
use rowlock::reconcile::stale;
use rowlock::switch::{Mode, Switch, Target};
use rowlock::{Pair, Rowlock};

use super::server::psql;
use super::{Finding, Level, finding};
use crate::command::reconcile::{source, stopped_by, with_source};
use crate::open::{Setup, Store, quoted};
use crate::show;

/// How many states are named.
const STATES: usize = 5;

pub fn look(setup: &Setup, rows: &[PairRow], switches: &[Switch], ours: &[Pair]) -> Vec<Finding> {
    let mut found = Vec::new();
    for row in rows {
        match stopped_by(row, switches) {
            Some(on) => found.push(stopped(setup, row, on)),
            None => found.extend(late(setup, row)),
        }
        found.extend(uncovered(setup, row));
        found.extend(held_back(setup, row));
        let known = ours.iter().any(|pair| pair.name == row.pair.name);
        if !ours.is_empty() && !known {
            found.push(stranger(setup, row));
        }
    }
    found
}

/// Whether a switch is told of with the pair it stops.
pub fn tells(on: &Switch, rows: &[PairRow]) -> bool {
    rows.iter().any(|row| match on.target {
        Target::Pair => row.pair.name == on.name,
        Target::Kind => on.mode == Mode::Reject && row.pair.kind == on.name,
        Target::Queue => false,
    })
}

fn late(setup: &Setup, row: &PairRow) -> Option<Finding> {
    let name = &row.pair.name;
    let late = stale(row).map(|time| format!("is overdue by {}", show::span(time)));
    let error = row.error.as_ref();
    let error = error.map(|error| format!("fails: {}", show::excerpt(error, 300)));
    let words: Vec<_> = late.into_iter().chain(error).collect();
    if words.is_empty() {
        return None;
    }
    let last = match row.last_success {
        Some(_) => format!(
            "the last tick that succeeded ended {} ago",
            show::span(row.age)
        ),
        None => format!("no tick has succeeded since {} ago", show::span(row.age)),
    };
    let what = format!("pair {name} {}; {last}", words.join(" and "));
    let remedy = setup.line(&format!("reconcile run {name}"));
    Some(finding("R017", Level::Error, what, remedy))
}

fn stopped(setup: &Setup, row: &PairRow, on: &Switch) -> Finding {
    let until = on.until.map(|until| format!(" until {until}"));
    let reason = on.reason.as_ref().map(|why| format!(": {why}"));
    let by = on.by.as_ref().map(|who| format!(" by {who}"));
    let what = format!(
        "ROWS OF PAIR {} GET NO JOBS: {}:{} is set to {}{}{}{}",
        row.pair.name,
        on.target,
        on.name,
        on.mode,
        by.unwrap_or_default(),
        until.unwrap_or_default(),
        reason.unwrap_or_default()
    );
    let remedy = setup.line(&format!("switch clear {}:{}", on.target, on.name));
    finding("R018", Level::Error, what, remedy)
}

fn uncovered(setup: &Setup, row: &PairRow) -> Option<Finding> {
    if row.uncovered.is_empty() {
        return None;
    }
    let name = &row.pair.name;
    let named = row.uncovered.iter().take(STATES);
    let named: Vec<_> = named
        .map(|(state, rows)| format!("{state} ({})", show::count(*rows)))
        .collect();
    let more = match row.uncovered.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = format!(
        "pair {name}: rows are in states that nobody claims: {}{more}",
        named.join(", ")
    );
    let remedy = setup.line(&format!("reconcile check {name}"));
    Some(finding("R019", Level::Warn, what, remedy))
}

fn held_back(setup: &Setup, row: &PairRow) -> Option<Finding> {
    let keys = match row.held_back {
        0 => return None,
        1 => "1 key is".to_owned(),
        many => format!("{} keys are", show::count(many)),
    };
    let name = &row.pair.name;
    let what = format!(
        "pair {name}: {keys} held back after a failure, a cancel or a run without an effect ({} \
         without an effect so far)",
        show::count(row.ineffective)
    );
    let remedy = format!(
        "{}  # once what was wrong is mended; reconcile list {name} shows which and why",
        setup.line(&format!("reconcile lift {name} --all"))
    );
    Some(finding("R020", Level::Warn, what, remedy))
}

fn stranger(setup: &Setup, row: &PairRow) -> Finding {
    let name = &row.pair.name;
    let what = format!("pair {name} is not in the configuration and still ticks");
    let remedy = setup.line(&format!("reconcile remove {name}"));
    finding("R021", Level::Warn, what, remedy)
}

/// Queries that walk a whole table at every tick. One that can't be asked is told by its ticks.
pub async fn plans(setup: &Setup, rowlock: &Rowlock, rows: &[PairRow]) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for row in rows {
        // Where its password isn't known, nobody can look.
        let Ok(mut pair) = with_source(setup, row.pair.clone()) else {
            continue;
        };
        // They would be counted in the user's own table; ticks have done that.
        pair.states = None;
        let Ok(examined) = source(rowlock, &pair)?.examine(&pair).await else {
            continue;
        };
        for plan in examined.plans {
            let asks = match plan.statement.as_str() {
                "ask" => "asking for single rows",
                _ => "a tick",
            };
            let what = format!("pair {}: {asks} {}", pair.name, plan.what);
            let remedy = plan.remedy.map(|index| made_in(setup, &pair, &index));
            let check = || setup.line(&format!("reconcile check {}", pair.name));
            found.push(finding(
                "R033",
                Level::Warn,
                what,
                remedy.unwrap_or_else(check),
            ));
        }
    }
    // Both statements may want the same index.
    found.dedup_by(|one, other| one.remedy == other.remedy);
    Ok(found)
}

/// The index as a command, if it is one: otherwise it is advice in words.
fn made_in(setup: &Setup, pair: &Pair, index: &str) -> String {
    if !index.starts_with("CREATE INDEX") {
        return index.to_owned();
    }
    match (&setup.store, &pair.source) {
        (_, Some(url)) if url.starts_with("sqlite:") => index.to_owned(),
        (_, Some(_)) | (Store::Postgres(_), None) => psql(index),
        (Store::Sqlite(address), None) => {
            let path = quoted(&show::path(&address.path));
            format!("sqlite3 {path} {}", quoted(index))
        }
    }
}
