//! `rowlock enqueue`: one job.

use anyhow::Result;
use rowlock::config::Config;
use rowlock::verify::{Answer, Told};
use rowlock::{Enqueued, Error, Kind, Name, NewJob, Payload, Record, Rowlock, Status};

use crate::cli::Enqueue;
use crate::open::{Access, Setup};
use crate::{exit, out, show};

pub async fn run(setup: &Setup, what: Enqueue, json: bool) -> Result<u8> {
    let Some(name) = what.kind.clone() else {
        return Err(exit::with(
            exit::USAGE,
            "which kind? rowlock enqueue KIND [JSON]",
        ));
    };
    let declared = setup.config.kinds()?;
    // Everything is checked before the store is touched, or even made.
    let job = new_job(&name, &what, &declared, &setup.config)?;
    let told = what.told.as_ref().map(Told::open).transpose()?;
    let rowlock = setup.open(Access::Write).await?;
    let known = Known::of(&rowlock, declared).await?;
    if !known.has(&name) {
        if what.known {
            return Err(exit::with(exit::USAGE, known.complaint(&name)));
        }
        out::warn(&known.complaint(&name));
    }
    let answer = rowlock.enqueue(&job).await;
    let logged = match told {
        Some(told) => {
            let now = rowlock.clock().now();
            told.write(&[Answer::enqueue(now, &job, answer.as_ref().ok())])
        }
        None => Ok(()),
    };
    let answer = answer?;
    let said = say(&rowlock, &name, answer, &what, json).await;
    match logged {
        Ok(()) => said.map(|()| exit::OK),
        Err(why) => Err(exit::unlogged(&what_is(answer), &why)),
    }
}

async fn say(
    rowlock: &Rowlock,
    name: &Name,
    answer: Enqueued,
    what: &Enqueue,
    json: bool,
) -> Result<()> {
    if json {
        return out::json(&answer);
    }
    let record = match answer.id {
        Some(id) => rowlock.operate().job(id).await?,
        None => None,
    };
    out::line(&words(name, answer, record, what))
}

/// What stays true although it could not be written down.
fn what_is(answer: Enqueued) -> String {
    match answer.id {
        Some(id) if answer.status == Status::Duplicate => format!("job {id} has this key"),
        Some(id) => format!("job {id} is {}", answer.status.as_str()),
        None => "the job was refused by a switch".to_owned(),
    }
}

fn new_job(name: &Name, what: &Enqueue, declared: &[Kind], config: &Config) -> Result<NewJob> {
    let mut job = bare(name, declared)?;
    if let Some(text) = &what.payload {
        job = job.payload(payload(text, config)?);
    }
    if let Some(queue) = &what.queue {
        job = job.queue(queue.clone());
    }
    if let Some(priority) = what.priority {
        job = job.priority(priority);
    }
    if let Some(delay) = what.delay {
        job = job.delay(delay);
    }
    if let Some(at) = what.at {
        job = job.at(at);
    }
    if let Some(attempts) = what.max_attempts {
        job = job.max_attempts(attempts)?;
    }
    if let Some(key) = &what.unique {
        job = job.unique(key)?;
    }
    if let Some(until) = what.unique_until {
        job = job.unique_until(until);
    }
    let job = what.tags.iter().cloned().fold(job, NewJob::tag);
    Ok(traced(job, what.traceparent.as_deref())?)
}

/// The job in the trace that a flag names, or that other tools hand on.
pub fn traced(job: NewJob, flag: Option<&str>) -> Result<NewJob, Error> {
    match (flag, std::env::var("TRACEPARENT")) {
        (Some(context), _) => job.trace_context(context),
        // One that is malformed is nobody's trace.
        (None, Ok(context)) => Ok(job.clone().trace_context(context).unwrap_or(job)),
        (None, Err(_)) => Ok(job),
    }
}

/// A job of a kind: what the configuration declares counts until the kind has a row.
pub fn bare(name: &Name, declared: &[Kind]) -> Result<NewJob, Error> {
    match declared.iter().find(|kind| kind.name == *name) {
        Some(kind) => Ok(NewJob::of_kind(kind.clone())),
        None => NewJob::new(name.as_str()),
    }
}

fn payload(text: &str, config: &Config) -> Result<Payload> {
    Payload::parse_within(text, config.limits.payload).map_err(|why| {
        let hint = match why.to_string().contains("not valid JSON") {
            true => "; in a shell, put it in single quotes: '{\"to\":\"ada\"}'",
            false => "",
        };
        exit::explain(&why, format!("{why}{hint}"))
    })
}

/// The kinds that somebody is known to run.
pub struct Known(Vec<Kind>);

impl Known {
    /// Those with a row, and those of our own configuration.
    pub async fn of(rowlock: &Rowlock, mut declared: Vec<Kind>) -> Result<Self> {
        declared.extend(rowlock.operate().kinds().await?);
        Ok(Self(declared))
    }

    pub fn has(&self, name: &Name) -> bool {
        self.0.iter().any(|kind| kind.name == *name)
    }

    /// What to say about a kind that isn't among them.
    pub fn complaint(&self, name: &Name) -> String {
        let mut names: Vec<_> = self.0.iter().map(|kind| kind.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let list = match names.len() {
            0 => "no kind is known yet".to_owned(),
            1..=10 => format!("known: {}", names.join(" ")),
            n => format!("{n} other kinds are known"),
        };
        format!(
            "nobody is known to run {name}: such a job waits until a worker declares the kind ({list})"
        )
    }
}

fn words(name: &Name, answer: Enqueued, record: Option<Record>, what: &Enqueue) -> String {
    let status = answer.status.as_str();
    let Some(id) = answer.id else {
        return format!("{status}  {name}  a switch refuses this kind or its queue");
    };
    let mut line = format!("{status} {id}  {name}");
    // A job that is gone again has been run already.
    let Some(record) = record else { return line };
    if answer.status == Status::Duplicate {
        line.push_str(&format!("  {} with the same key", record.state));
        return line;
    }
    let later = match (what.delay, what.at) {
        (Some(delay), _) => Some(format!("  in {}", show::span(delay))),
        (_, Some(_)) => Some(format!("  at {}", record.scheduled_at)),
        _ => None,
    };
    if later.is_none() || record.queue.as_str() != Kind::DEFAULT_QUEUE {
        line.push_str(&format!("  queue {}", record.queue));
    }
    line.push_str(&later.unwrap_or_default());
    line
}
