//! `rowlock switch`: stop a kind, a queue or a pair, and let it go on.

use anyhow::Result;
use jiff::Timestamp;
use rowlock::engine::{Filter, PairRow};
use rowlock::switch::{Mode, Setting, Switch, Target};
use rowlock::{Error, JobState, Name, Rowlock};
use serde::Serialize;
use serde_json::json;

use super::reconcile::unknown;
use crate::cli::{self, SwitchSet, SwitchTarget};
use crate::open::{Access, Setup};
use crate::show::{self, Table};
use crate::{exit, out};

/// Waiting jobs of a kind are counted up to here.
const COUNTED: usize = 1_000;

pub async fn run(setup: &Setup, what: cli::Switch, json: bool) -> Result<u8> {
    match what {
        cli::Switch::Set(what) => set(setup, &what, json).await,
        cli::Switch::Clear { target } => clear(setup, &target, json).await,
        cli::Switch::List => list(setup, json).await,
    }
}

async fn set(setup: &Setup, what: &SwitchSet, json: bool) -> Result<u8> {
    // What makes no sense for any store isn't asked of one.
    Setting::new(what.mode).check(what.target.target)?;
    let rowlock = setup.open(Access::Write).await?;
    let (end, warnings) = turn_on(setup, &rowlock, what).await?;
    warnings.iter().for_each(|words| out::warn(words));
    let SwitchTarget { target, name } = &what.target;
    match json {
        true => out::json(&json!({
            "target": target, "name": name, "mode": what.mode, "until": end,
        }))?,
        false => out::line(&format!(
            "{} is set to {}{}",
            what.target,
            what.mode,
            until_words(end)
        ))?,
    }
    Ok(exit::OK)
}

/// Sets a switch; says until when, and what whoever did it should know.
pub async fn turn_on(
    setup: &Setup,
    rowlock: &Rowlock,
    what: &SwitchSet,
) -> Result<(Option<Timestamp>, Vec<String>)> {
    let SwitchTarget { target, name } = &what.target;
    let mut setting = Setting::new(what.mode);
    setting.reason = Some(what.reason.clone());
    setting.by.clone_from(&what.by);
    setting.check(*target)?;
    setting.until = until(what, rowlock.clock().now())?;
    let pairs = rowlock.schedule().pairs().await?;
    if what.mode == Mode::Reject && !what.lose_jobs {
        safe_to_reject(setup, &what.target, &pairs)?;
    }
    if *target == Target::Pair && !pairs.iter().any(|row| row.pair.name == *name) {
        return Err(unknown(setup, name, &pairs));
    }
    let mut warnings: Vec<String> = Vec::new();
    warnings.extend(stranger(rowlock, *target, name).await?);
    let end = setting.until;
    rowlock
        .schedule()
        .switch(*target, name, Some(setting))
        .await?;
    for row in stopped(&what.target, what.mode, &pairs) {
        warnings.push(shout(setup, what, row, end));
    }
    Ok((end, warnings))
}

/// The end that was asked for; one that is over already would change nothing.
fn until(what: &SwitchSet, now: Timestamp) -> Result<Option<Timestamp>> {
    let end = match (what.time, what.until) {
        (Some(time), _) => now.checked_add(time).map(Some).map_err(|_| {
            exit::with(
                exit::USAGE,
                "--for is too long: leave it out for a switch without an end",
            )
        })?,
        (None, until) => until,
    };
    match end {
        Some(end) if end <= now => Err(exit::with(
            exit::USAGE,
            format!("{end} is over already: nothing would be switched"),
        )),
        end => Ok(end),
    }
}

/// What is refused must come back by itself: only rows that a pair derives do.
fn safe_to_reject(setup: &Setup, target: &SwitchTarget, pairs: &[PairRow]) -> Result<()> {
    let derived = pairs.iter().any(|row| row.pair.kind == target.name);
    if target.target == Target::Kind && derived {
        return Ok(());
    }
    let why = match target.target {
        Target::Queue => "no matter which pair derives them".to_owned(),
        _ => format!("because no pair derives {}", target.name),
    };
    let hold = setup.line(&format!("switch set {target} hold --reason TEXT"));
    Err(exit::with(
        exit::USAGE,
        format!(
            "what {target} rejects is lost, {why}: `{hold}` stores the jobs and runs them later; \
             --lose-jobs rejects all the same"
        ),
    ))
}

/// What to say about a name that nobody has used.
async fn stranger(rowlock: &Rowlock, target: Target, name: &Name) -> Result<Option<String>> {
    let known = match target {
        Target::Kind => {
            let kinds = rowlock.operate().kinds().await?;
            kinds.iter().any(|kind| kind.name == *name)
        }
        Target::Queue => {
            let kinds = rowlock.operate().kinds().await?;
            rowlock.browse().glance().await?.contains_key(name)
                || kinds.iter().any(|kind| kind.queue == *name)
        }
        Target::Pair => true,
    };
    Ok((!known)
        .then(|| format!("nobody has used {target} {name} yet: the switch is on, check the name")))
}

/// The pairs whose rows get no job as long as the switch is on.
fn stopped<'a>(
    target: &SwitchTarget,
    mode: Mode,
    pairs: &'a [PairRow],
) -> impl Iterator<Item = &'a PairRow> {
    let SwitchTarget { target, name } = target.clone();
    pairs.iter().filter(move |row| match target {
        Target::Pair => row.pair.name == name,
        Target::Kind => mode != Mode::Hold && row.pair.kind == name,
        Target::Queue => false,
    })
}

fn shout(setup: &Setup, what: &SwitchSet, row: &PairRow, end: Option<Timestamp>) -> String {
    let happens = match (what.target.target, what.mode) {
        (Target::Pair, _) => "is stopped: rows that need a job get none and pile up",
        (_, Mode::Reject) => "makes no jobs: rows that need one get none and pile up",
        _ => "goes on, and its jobs pile up",
    };
    let clear = setup.command(&format!("switch clear {}", what.target));
    let end = match end {
        Some(end) => format!("until {end}, or until {clear}"),
        None => format!("until {clear}"),
    };
    format!("THE PAIR {} {happens} {end}", row.pair.name)
}

fn until_words(end: Option<Timestamp>) -> String {
    end.map(|end| format!(" until {end}")).unwrap_or_default()
}

async fn clear(setup: &Setup, target: &SwitchTarget, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Write).await?;
    let schedule = rowlock.schedule();
    match schedule.switch(target.target, &target.name, None).await {
        Err(Error::NotFound(_)) => {
            return Err(exit::with(
                exit::NOT_FOUND,
                format!(
                    "no switch of {target} is on: {} shows which are",
                    setup.command("switch list")
                ),
            ));
        }
        other => other?,
    }
    match json {
        true => {
            let SwitchTarget { target, name } = target;
            out::json(&json!({ "target": target, "name": name, "mode": null }))?;
        }
        false => out::line(&format!("cleared {target}"))?,
    }
    Ok(exit::OK)
}

/// A switch with what waits behind it, where that is cheap to know.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    on: &'a Switch,
    waiting: Option<u64>,
}

async fn list(setup: &Setup, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Read).await?;
    let switches = rowlock.schedule().switches().await?;
    if switches.is_empty() && !json {
        out::note("no switch is on");
        return Ok(exit::OK);
    }
    let heading = [
        "TARGET", "MODE", "UNTIL", "REJECTED", "WAITING", "BY", "REASON",
    ];
    let mut table = Table::new(&heading, &[3, 4]);
    for on in &switches {
        let waiting = waiting(&rowlock, on).await?;
        if json {
            out::json(&Shown { on, waiting })?;
            continue;
        }
        let text = |text: &Option<String>| match text {
            Some(text) => show::text(text),
            None => "-".to_owned(),
        };
        let waiting = match (on.target, waiting) {
            (_, Some(jobs)) => show::count(jobs),
            (Target::Pair, None) => "-".to_owned(),
            (_, None) => format!("{}+", show::count(COUNTED as u64)),
        };
        table.row(vec![
            format!("{}:{}", on.target, on.name),
            on.mode.to_string(),
            on.until
                .map_or_else(|| "-".to_owned(), |end| end.to_string()),
            show::count(on.rejected),
            waiting,
            text(&on.by),
            text(&on.reason),
        ]);
    }
    if !json {
        out::lines(&table.lines())?;
    }
    Ok(exit::OK)
}

async fn waiting(rowlock: &Rowlock, on: &Switch) -> Result<Option<u64>> {
    let store = rowlock.operate();
    match on.target {
        Target::Pair => Ok(None),
        Target::Queue => {
            let stats = store.stats().await?;
            Ok(Some(
                stats.queues.get(&on.name).map_or(0, |jobs| jobs.pending),
            ))
        }
        Target::Kind => {
            let filter = Filter {
                state: Some(JobState::Pending),
                kind: Some(on.name.clone()),
                limit: COUNTED + 1,
                ..Filter::default()
            };
            let jobs = store.jobs(filter).await?.len();
            Ok((jobs <= COUNTED).then_some(jobs as u64))
        }
    }
}
