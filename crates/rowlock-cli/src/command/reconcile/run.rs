//! `rowlock reconcile run`: a tick by hand, beside whoever leads.

use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rowlock::engine::{PairRow, Ticked};
use rowlock::reconcile::tick_by_hand;
use rowlock::{Name, Pair, Rowlock};
use serde::Serialize;

use super::{chosen, failed, with_source};
use crate::open::{Access, Setup};
use crate::{exit, out, show};

/// Nobody watches a bar for less.
const LONG: Duration = Duration::from_secs(1);
/// How often it moves.
const MOVES: Duration = Duration::from_millis(100);

/// What a tick did, as JSON.
#[derive(Serialize)]
pub struct Shown<'a> {
    name: &'a Name,
    dry: bool,
    found: u64,
    enqueued: u64,
    live: u64,
    held_back: u64,
    rejected: u64,
    keys: &'a [String],
}

impl<'a> Shown<'a> {
    pub fn of(pair: &'a Pair, ticked: &'a Ticked, dry: bool) -> Self {
        Self {
            name: &pair.name,
            dry,
            found: ticked.found,
            enqueued: ticked.enqueued,
            live: ticked.live,
            held_back: ticked.held_back,
            rejected: ticked.rejected,
            keys: &ticked.sample,
        }
    }
}

pub async fn run(setup: &Setup, names: &[Name], dry: bool, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Write).await?;
    let rows = rowlock.schedule().pairs().await?;
    let rows = chosen(setup, rows, names)?;
    if rows.is_empty() && !json {
        out::note("no pair is declared: write a [[pair]] into rowlock.toml, then `rowlock apply`");
    }
    let mut first = None;
    for row in rows {
        if let (Some(_), false) = (&row.switch, dry) {
            let why = paused(setup, &row);
            match names.is_empty() {
                true => out::warn(&why),
                false => return Err(exit::with(exit::CONFLICT, why)),
            }
            continue;
        }
        let pair = with_source(setup, row.pair)?;
        // One that fails doesn't keep the others from their rows.
        match tick(&rowlock, &pair, dry).await {
            Ok(ticked) => say(&pair, &ticked, dry, json)?,
            Err(why) => match &first {
                None => first = Some(why),
                Some(_) => out::error(&format!("{why:#}")),
            },
        }
    }
    first.map_or(Ok(exit::OK), Err)
}

/// What to say about a pair that a switch has stopped.
pub fn paused(setup: &Setup, row: &PairRow) -> String {
    let name = &row.pair.name;
    let reason = row.switch.as_ref().and_then(|on| on.reason.as_deref());
    format!(
        "pair {name} is paused ({}): {} lets it go on",
        show::text(reason.unwrap_or("no reason given")),
        setup.command(&format!("switch clear pair:{name}"))
    )
}

/// All shards, all batches; with a bar if it takes long.
pub async fn tick(rowlock: &Rowlock, pair: &Pair, dry: bool) -> Result<Ticked> {
    let bar = ProgressBar::hidden();
    let told = bar.clone();
    let progress = move |so_far: &Ticked| {
        told.set_message(format!(
            "{} rows · {} {}",
            show::count(so_far.found),
            if dry { "would enqueue" } else { "enqueued" },
            show::count(so_far.enqueued)
        ));
    };
    let work = tick_by_hand(rowlock, pair, dry, progress);
    let ticked = watched(rowlock, &bar, pair.name.as_str(), work).await;
    ticked.map_err(|why| failed(&pair.name, why))
}

/// Waits for some work, and shows the bar once it has taken a second.
pub async fn watched<T>(
    rowlock: &Rowlock,
    bar: &ProgressBar,
    what: &str,
    work: impl Future<Output = T>,
) -> T {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = rowlock.clock().sleep(LONG) => {}
    }
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}  {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(what.to_owned());
    // The target draws nothing unless stderr is a terminal.
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar.enable_steady_tick(MOVES);
    let done = work.await;
    bar.finish_and_clear();
    done
}

pub fn rows(count: u64) -> String {
    match count {
        1 => "1 row".to_owned(),
        many => format!("{} rows", show::count(many)),
    }
}

fn say(pair: &Pair, ticked: &Ticked, dry: bool, json: bool) -> Result<()> {
    if json {
        return out::json(&Shown::of(pair, ticked, dry));
    }
    let word = if dry { "would enqueue" } else { "enqueued" };
    let mut parts = vec![
        format!("found {}", show::count(ticked.found)),
        format!("{} with a live job", show::count(ticked.live)),
        format!("{} held back", show::count(ticked.held_back)),
    ];
    if ticked.rejected > 0 {
        let rejected = show::count(ticked.rejected);
        parts.push(format!("{rejected} refused by a switch"));
    }
    parts.push(format!("{word} {}", show::count(ticked.enqueued)));
    out::line(&format!("{}  {}", pair.name, parts.join(" · ")))?;
    if !ticked.sample.is_empty() {
        let keys: Vec<_> = ticked.sample.iter().map(|key| show::text(key)).collect();
        let more = if keys.len() as u64 == ticked.enqueued {
            ""
        } else {
            " ..."
        };
        out::line(&format!("  {}{more}", keys.join(" ")))?;
    }
    Ok(())
}
