//! `rowlock job retry|cancel|delete`: by number, or by filter in pages.

use anyhow::Result;
use jiff::Timestamp;
use rowlock::engine::{Cancel, Filter};
use rowlock::verify::{Answer, Op, Told};
use rowlock::{Error, JobId, JobState, Record, Rowlock};
use serde_json::json;

use super::job::filter;
use crate::cli::Change;
use crate::open::{Access, Setup};
use crate::{exit, out, show};

/// How many are changed in one transaction: small enough to let workers in between.
const PAGE: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Retry,
    Cancel,
    Delete,
}

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    Retried,
    Cancelled,
    Asked,
    Deleted,
}

const ALL: [Done; 4] = [Done::Retried, Done::Cancelled, Done::Asked, Done::Deleted];

impl Done {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retried => "retried",
            Self::Cancelled => "cancelled",
            Self::Asked => "asked",
            Self::Deleted => "deleted",
        }
    }

    fn line(self, whom: &str) -> String {
        match self {
            Self::Asked => format!("asked {whom} to stop"),
            other => format!("{} {whom}", other.as_str()),
        }
    }
}

#[derive(Debug, Default)]
struct Tally {
    told: Option<Told>,
    done: [u64; ALL.len()],
    conflicts: u64,
    missing: u64,
}

pub async fn run(setup: &Setup, action: Action, change: &Change, json: bool) -> Result<u8> {
    let which = &change.which;
    if which.ids.is_empty() && !which.is_filter() && !(change.all && change.yes) {
        return Err(exit::with(
            exit::USAGE,
            "which jobs? give their numbers, a filter such as --kind or --state, or --all --yes",
        ));
    }
    let told = change.told.as_ref().map(Told::open).transpose()?;
    let rowlock = setup.open(Access::Write).await?;
    let mut tally = Tally {
        told,
        ..Tally::default()
    };
    if which.ids.is_empty() {
        let mut left = which.limit.map_or(u64::MAX, u64::from);
        let mut next = filter(which, rowlock.clock().now(), PAGE);
        next.state = meant(action, next.state);
        while left > 0 {
            let page = page(&rowlock, action, &mut next).await?;
            let Some(mut ids) = page else { break };
            ids.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            left -= ids.len() as u64;
            apply(&rowlock, action, ids, json, false, &mut tally).await?;
        }
        if !json {
            out::line(&summary(&tally, action))?;
        }
    } else {
        let mut ids = which.ids.clone();
        let mut seen = std::collections::HashSet::new();
        ids.retain(|id| seen.insert(*id));
        for some in ids.chunks(PAGE) {
            apply(&rowlock, action, some.to_vec(), json, true, &mut tally).await?;
        }
    }
    Ok(match tally {
        Tally { conflicts: 1.., .. } => exit::CONFLICT,
        Tally { missing: 1.., .. } => exit::NOT_FOUND,
        _ => exit::OK,
    })
}

/// The next page of jobs that the action makes sense for; none at the end.
async fn page(rowlock: &Rowlock, action: Action, next: &mut Filter) -> Result<Option<Vec<JobId>>> {
    let jobs = rowlock.operate().jobs(next.clone()).await?;
    let Some(last) = jobs.last() else {
        return Ok(None);
    };
    next.after = Some(last.id);
    let wanted = |job: &&Record| makes_sense(action, job);
    Ok(Some(jobs.iter().filter(wanted).map(|job| job.id).collect()))
}

/// Changes some jobs; says of each what became of it.
pub async fn change(
    rowlock: &Rowlock,
    action: Action,
    ids: Vec<JobId>,
) -> Result<Vec<Result<Done, Error>>, Error> {
    let engine = rowlock.engine();
    Ok(match action {
        Action::Retry => as_done(engine.redrive(ids).await?, Done::Retried),
        Action::Delete => as_done(engine.delete(ids).await?, Done::Deleted),
        Action::Cancel => {
            let answers = engine.cancel(ids).await?;
            let done = |cancel| match cancel {
                Cancel::Cancelled => Done::Cancelled,
                Cancel::Requested => Done::Asked,
            };
            answers.into_iter().map(|answer| answer.map(done)).collect()
        }
    })
}

/// Whether an action makes sense for a job that a filter has found.
pub fn makes_sense(action: Action, job: &Record) -> bool {
    action != Action::Cancel || !job.state.is_terminal()
}

/// The state that is meant when nobody says one: nobody wants last week's mails again by leaving out a
/// word.
pub fn meant(action: Action, state: Option<JobState>) -> Option<JobState> {
    match action {
        Action::Retry => state.or(Some(JobState::Failed)),
        _ => state,
    }
}

/// Changes some jobs and tells of it; `named` when the user asked for exactly these.
async fn apply(
    rowlock: &Rowlock,
    action: Action,
    ids: Vec<JobId>,
    json: bool,
    named: bool,
    tally: &mut Tally,
) -> Result<()> {
    let answers = change(rowlock, action, ids.clone()).await?;
    let logged = match &tally.told {
        Some(told) => told.write(&for_verify(rowlock.clock().now(), &ids, &answers)),
        None => Ok(()),
    };
    // What the log doesn't name we name, so that somebody can.
    let named_here = named || logged.is_err();
    let mut lines = String::new();
    for (id, answer) in ids.iter().zip(answers) {
        match answer {
            Ok(done) => {
                tally.done[done as usize] += 1;
                if json {
                    lines += &json!({ "id": id, "status": done.as_str() }).to_string();
                    lines.push('\n');
                } else if named_here {
                    lines += &done.line(&id.to_string());
                    lines.push('\n');
                }
            }
            // It went between the look and the change: that is what filters are about.
            Err(Error::NotFound(_)) if !named => {}
            Err(why) => {
                match why {
                    Error::NotFound(_) => tally.missing += 1,
                    _ => tally.conflicts += 1,
                }
                out::error(&why.to_string());
            }
        }
    }
    let said = out::lines(&lines);
    if let Err(why) = logged {
        let done = format!("{}, as told above, and no more", summary(tally, action));
        return Err(exit::unlogged(&done, &why));
    }
    match said {
        // The change was asked for, the words are a courtesy: it goes on without them.
        Err(why) if why.is::<out::Closed>() => Ok(()),
        other => other,
    }
}

/// What a checker must know: these jobs may run again, and those be missing.
fn for_verify(
    t: Timestamp,
    ids: &[JobId],
    answers: &[Result<Done, Error>],
) -> Vec<Answer<'static>> {
    let op = |answer: &Result<Done, Error>| match answer {
        Ok(Done::Retried) => Some(Op::Redrive),
        Ok(Done::Deleted) => Some(Op::Delete),
        Ok(Done::Cancelled | Done::Asked) => Some(Op::Cancel),
        Err(_) => None,
    };
    let answer = |(id, answer): (&JobId, _)| {
        Some(Answer {
            t,
            op: op(answer)?,
            id: Some(*id),
            unique_key: None,
            ok: true,
        })
    };
    ids.iter().zip(answers).filter_map(answer).collect()
}

fn as_done(answers: Vec<Result<(), Error>>, done: Done) -> Vec<Result<Done, Error>> {
    answers
        .into_iter()
        .map(|answer| answer.map(|()| done))
        .collect()
}

fn summary(tally: &Tally, action: Action) -> String {
    let count = |done: Done| tally.done[done as usize];
    let mut parts: Vec<String> = ALL
        .into_iter()
        .filter(|done| count(*done) > 0)
        .map(|done| done.line(&show::count(count(done))))
        .collect();
    if parts.is_empty() {
        let none = match action {
            Action::Retry => Done::Retried,
            Action::Cancel => Done::Cancelled,
            Action::Delete => Done::Deleted,
        };
        parts.push(none.line("0"));
    }
    parts.join(" · ")
}
