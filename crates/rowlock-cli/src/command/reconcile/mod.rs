//! `rowlock reconcile`: the pairs, which turn rows that need work into jobs.

mod check;
mod drill;
pub mod keys;
pub mod list;
pub mod run;

pub use list::{cadence, state};

use std::sync::Arc;

use anyhow::Result;
use rowlock::engine::{PairRow, Source};
use rowlock::reconcile::Sources;
use rowlock::switch::{Mode, Switch, Target};
use rowlock::{Error, Name, Pair, Rowlock};

use crate::cli::Reconcile;
use crate::exit;
use crate::open::{Setup, is_postgres};

pub async fn run(setup: &Setup, what: Reconcile, json: bool) -> Result<u8> {
    match what {
        Reconcile::List { pair: None } => list::all(setup, json).await,
        Reconcile::List { pair: Some(pair) } => list::one(setup, &pair, json).await,
        Reconcile::Run { pairs, dry_run } => run::run(setup, &pairs, dry_run, json).await,
        Reconcile::Check { pairs } => check::run(setup, &pairs, json).await,
        Reconcile::Drill { pair, yes } => drill::run(setup, &pair, yes, json).await,
        Reconcile::Lift(what) => keys::lift(setup, &what, json).await,
        Reconcile::Remove { pair } => keys::remove(setup, &pair, json).await,
    }
}

/// The error for a pair that isn't declared, with the one that was meant.
pub fn unknown(setup: &Setup, name: &Name, rows: &[PairRow]) -> anyhow::Error {
    let distance = |row: &&PairRow| strsim::jaro_winkler(name.as_str(), row.pair.name.as_str());
    let nearest = rows
        .iter()
        .max_by(|one, other| distance(one).total_cmp(&distance(other)));
    let hint = match nearest {
        _ if declared(setup, name) => format!(
            "the configuration has it: {} writes it",
            setup.command("apply")
        ),
        Some(row) => format!("did you mean {}?", row.pair.name),
        None => "no pair is declared yet: write a [[pair]] into rowlock.toml".to_owned(),
    };
    exit::with(exit::NOT_FOUND, format!("pair {name} not found: {hint}"))
}

fn declared(setup: &Setup, name: &Name) -> bool {
    let pairs = setup.config.pairs().unwrap_or_default();
    pairs.iter().any(|pair| pair.name == *name)
}

/// The rows that are meant; none named: all.
fn chosen(setup: &Setup, rows: Vec<PairRow>, names: &[Name]) -> Result<Vec<PairRow>> {
    for name in names {
        if !rows.iter().any(|row| row.pair.name == *name) {
            return Err(unknown(setup, name, &rows));
        }
    }
    let meant = |row: &PairRow| names.is_empty() || names.contains(&row.pair.name);
    Ok(rows.into_iter().filter(meant).collect())
}

pub async fn the_one(setup: &Setup, rowlock: &Rowlock, name: &Name) -> Result<PairRow> {
    let rows = rowlock.schedule().pairs().await?;
    let mut found = chosen(setup, rows, std::slice::from_ref(name))?;
    found
        .pop()
        .ok_or_else(|| Error::NotFound(format!("pair {name}")).into())
}

/// The stored pair. Where its rows are is in the configuration: the store keeps no login.
pub fn with_source(setup: &Setup, mut pair: Pair) -> Result<Pair> {
    let Some(stored) = pair.source.take() else {
        return Ok(pair);
    };
    let ours = setup.pairs()?.into_iter();
    let mut same = ours.filter(|ours| ours.name == pair.name);
    pair.source = match same.find_map(|ours| ours.source) {
        Some(source) => Some(source),
        None if is_postgres(&stored) => {
            return Err(exit::with(
                exit::USAGE,
                format!(
                    "pair {} reads {stored}, which is stored without its login: name the configuration \
                     that declares the pair with --config",
                    pair.name
                ),
            ));
        }
        None => Some(stored),
    };
    Ok(pair)
}

/// The tables that a pair reads.
pub fn source(rowlock: &Rowlock, pair: &Pair) -> Result<Arc<dyn Source>> {
    let sources = Sources::new(&*rowlock.lead(), std::slice::from_ref(pair))?;
    let source = sources.of(pair).cloned();
    source.ok_or_else(|| Error::Bug(format!("pair {} has no source", pair.name)).into())
}

/// The switch that keeps rows of this pair from getting a job.
pub fn stopped_by<'a>(row: &'a PairRow, switches: &'a [Switch]) -> Option<&'a Switch> {
    let rejects = |on: &&Switch| {
        on.target == Target::Kind && on.mode == Mode::Reject && on.name == row.pair.kind
    };
    row.switch
        .as_ref()
        .or_else(|| switches.iter().find(rejects))
}

/// A query that fails is no usage error: what was typed is right, and the database says no.
pub fn failed(pair: &Name, why: Error) -> anyhow::Error {
    match why {
        Error::Invalid(words) if words.starts_with(&format!("pair {pair}: ")) => {
            exit::with(exit::FAILED, words)
        }
        Error::Invalid(words) => exit::with(exit::FAILED, format!("pair {pair}: {words}")),
        why => why.into(),
    }
}
