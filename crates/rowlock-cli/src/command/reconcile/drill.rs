//! `rowlock reconcile drill`: the queue is thrown away, and comes back.

use anyhow::Result;
use indicatif::ProgressBar;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rowlock::engine::{Filter, Ticked};
use rowlock::{Error, JobId, JobState, Name, Pair, Rowlock};
use serde_json::json;

use super::run::{paused, rows, tick, watched};
use super::{failed, source, stopped_by, the_one, with_source};
use crate::open::{Access, Setup};
use crate::{exit, out, show};

/// How many jobs are looked at and deleted in one transaction: workers come in between.
const PAGE: usize = 500;

/// What is queued of a kind.
#[derive(Default)]
struct Queued {
    /// Jobs that rows of the pair ask for.
    asked: Vec<JobId>,
    /// Jobs that would be gone for good.
    stay: u64,
}

pub async fn run(setup: &Setup, name: &Name, yes: bool, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Write).await?;
    let row = the_one(setup, &rowlock, name).await?;
    let switches = rowlock.schedule().switches().await?;
    if let Some(on) = stopped_by(&row, &switches) {
        let why = match &row.switch {
            Some(_) => paused(setup, &row),
            None => format!(
                "kind {} is set to reject, so nothing would come back: {} lets it go on",
                on.name,
                setup.command(&format!("switch clear kind:{}", on.name))
            ),
        };
        return Err(exit::with(exit::CONFLICT, why));
    }
    let pair = with_source(setup, row.pair)?;
    let bar = ProgressBar::hidden();
    let look = queued(&rowlock, &pair);
    let queued = watched(&rowlock, &bar, "looking at what is queued", look).await?;
    // A query that fails is noticed before anything is gone.
    let asking = tick(&rowlock, &pair, true).await?;
    let stay = match queued.stay {
        0 => String::new(),
        1 => "; 1 job that no row asks for stays".to_owned(),
        stay => format!("; {} jobs that no row asks for stay", show::count(stay)),
    };
    let question = format!(
        "this deletes {} of {}; {} still ask for them{stay}.",
        jobs(queued.asked.len() as u64),
        pair.kind,
        rows(asking.found),
    );
    out::confirm(&question, yes, "nothing was deleted")?;
    let delete = delete(&rowlock, queued.asked);
    let deleted = watched(&rowlock, &bar, "deleting", delete).await?;
    let empty = rowlock.clock().now();
    let back = tick(&rowlock, &pair, false).await.map_err(|why| {
        let again = setup.command(&format!("reconcile run {name}"));
        exit::with(
            exit::FAILED,
            format!(
                "{why:#}; {} gone until a tick succeeds: mend it, then {again}",
                jobs_are(deleted)
            ),
        )
    })?;
    let now = rowlock.clock().now();
    say(setup, &pair, deleted, (empty, now), &back, json)
}

/// The jobs that wait, by whether a row asks for them.
async fn queued(rowlock: &Rowlock, pair: &Pair) -> Result<Queued> {
    let source = source(rowlock, pair)?;
    let mut next = Filter {
        state: Some(JobState::Pending),
        kind: Some(pair.kind.clone()),
        limit: PAGE,
        ..Filter::default()
    };
    let mut queued = Queued::default();
    loop {
        let page = rowlock.operate().jobs(next.clone()).await?;
        next.after = page.last().map(|job| job.id);
        let keyed = page.iter().filter_map(|job| {
            // What was too long for an index is only known by its hash, and can't be asked for.
            let key = job.unique_key.clone().filter(|key| key.starts_with('['))?;
            Some((job.id, key))
        });
        let (ids, keys): (Vec<JobId>, Vec<String>) = keyed.unzip();
        let wanted = match keys.is_empty() {
            true => Vec::new(),
            false => source
                .ask(pair, &keys)
                .await
                .map_err(|why| failed(&pair.name, why))?,
        };
        let before = queued.asked.len();
        let asked = ids.into_iter().zip(wanted);
        queued
            .asked
            .extend(asked.filter_map(|(id, wanted)| wanted.then_some(id)));
        queued.stay += (page.len() - (queued.asked.len() - before)) as u64;
        if page.len() < PAGE {
            return Ok(queued);
        }
    }
}

async fn delete(rowlock: &Rowlock, ids: Vec<JobId>) -> Result<u64> {
    let engine = rowlock.engine();
    let mut deleted = 0;
    for some in ids.chunks(PAGE) {
        for answer in engine.delete(some.to_vec()).await? {
            match answer {
                Ok(()) => deleted += 1,
                // A worker was faster, and has it now or is done with it.
                Err(Error::NotFound(_) | Error::Conflict { .. }) => {}
                Err(why) => return Err(why.into()),
            }
        }
    }
    Ok(deleted)
}

fn say(
    setup: &Setup,
    pair: &Pair,
    deleted: u64,
    (empty, now): (Timestamp, Timestamp),
    back: &Ticked,
    json: bool,
) -> Result<u8> {
    // The leader may have been faster than we.
    let there = back.enqueued + back.live;
    if json {
        out::json(&json!({
            "name": pair.name, "deleted": deleted, "empty_at": empty, "back_at": now,
            "found": back.found, "back": there, "held_back": back.held_back,
            "rejected": back.rejected,
        }))?;
    } else {
        let mut line = format!(
            "queue empty {} · back {} ({} of {}, one tick)",
            time_of_day(empty),
            time_of_day(now),
            show::count(there),
            show::count(back.found),
        );
        if back.held_back > 0 {
            let list = setup.line(&format!("reconcile list {}", pair.name));
            line += &format!(" · {} held back ({list})", show::count(back.held_back));
        }
        if back.rejected > 0 {
            line += &format!(" · {} refused by a switch", show::count(back.rejected));
        }
        if there + back.held_back == back.found {
            line += " · nothing lost";
        }
        out::line(&line)?;
    }
    Ok(match back.rejected {
        0 => exit::OK,
        _ => exit::FAILED,
    })
}

fn time_of_day(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system())
        .strftime("%H:%M:%S")
        .to_string()
}

fn jobs(count: u64) -> String {
    match count {
        1 => "1 queued job".to_owned(),
        many => format!("{} queued jobs", show::count(many)),
    }
}

fn jobs_are(count: u64) -> String {
    format!("{} {}", jobs(count), if count == 1 { "is" } else { "are" })
}
