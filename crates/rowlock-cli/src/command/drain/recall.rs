//! `rowlock drain recall`: a route is given up, and nothing it held is lost.

use std::time::Duration;

use anyhow::Result;
use rowlock::drain::{Line, Options, Route, Sink};
use rowlock::engine::{RouteRow, SentJob};
use rowlock::settle::{Settled, Settlement, Verdict};
use rowlock::{Name, Rowlock};
use serde_json::json;

use super::the_one;
use crate::open::{Access, Setup};
use crate::{exit, out, show};

/// How many jobs go back in one transaction: others come in between.
const PAGE: usize = 500;
/// How often what a running drain has claimed meanwhile goes back.
const ROUNDS: usize = 5;
/// How long fetching what workers have said may take.
const BRING_IN: Duration = Duration::from_secs(30);
/// How long a sink may take to forget them.
const PATIENCE: Duration = Duration::from_secs(3);

pub async fn run(setup: &Setup, name: &Name, yes: bool, json: bool) -> Result<u8> {
    let declared = setup.routes()?.into_iter();
    let declared = declared.into_iter().find(|route| route.name == *name);
    let rowlock = setup.open(Access::Write).await?;
    let row = the_one(setup, &rowlock, name).await?;
    if row.sent > 0 && row.drained && !yes {
        return Err(still_drained(&row));
    }
    let routes = rowlock.routes();
    routes.declare_route(name, &[], &[], true).await?;
    let reached = match &declared {
        Some(route) => bring_in(&rowlock, route).await,
        None => false,
    };
    let mut back = 0;
    // A drain that still runs may have claimed more meanwhile.
    for _ in 0..ROUNDS {
        match give_back(&rowlock, name, declared.as_ref()).await? {
            0 => break,
            some => back += some,
        }
    }
    let forgotten = routes.forget_route(&holder(name)).await?;
    match json {
        true => out::json(&json!({ "route": name, "returned": back }))?,
        false => out::line(&format!(
            "recalled {name}: {} again, {} went back",
            directly(&row),
            jobs(back)
        ))?,
    }
    if back > 0 {
        out::warn("jobs that were running just now may run again: their answers are refused");
    }
    if back > 0 && !reached {
        out::warn(
            "the sink was not reached: what waits there runs again if its workers come back to it before a \
             drain of the same place has",
        );
    }
    if row.drained {
        out::warn("a drain of it still runs: stop it");
    }
    if !forgotten {
        out::warn("it holds jobs again: stop its drain, and recall it once more");
    }
    if declared.is_some() {
        out::warn(&format!(
            "the configuration still has a [[drain]] {name}: take it out, or the next `apply` and the \
             next `drain run` bring it back"
        ));
    }
    Ok(exit::OK)
}

fn holder(name: &Name) -> rowlock::claim::WorkerId {
    rowlock::claim::WorkerId::route(name)
}

fn still_drained(row: &RouteRow) -> anyhow::Error {
    exit::with(
        exit::CONFLICT,
        format!(
            "route {} holds {}, and a drain runs that will bring back what becomes of them: what is \
             running would run again. Wait for `rowlock drain status` to say SENT 0, or add --yes",
            row.route,
            match row.has_sent_more() {
                true => format!("at least {}", jobs(row.sent)),
                false => jobs(row.sent),
            }
        ),
    )
}

/// Fetches what workers have said, and ends what a sink has for good. Whether the sink was reached.
async fn bring_in(rowlock: &Rowlock, route: &Route) -> bool {
    let bring = async {
        let line = Line::new(rowlock, route, &Options::default())?;
        line.open().await?;
        while line.collect(Duration::ZERO).await? != (0, 0) {}
        line.adopt().await
    };
    let brought = rowlock.clock().timeout(BRING_IN, bring).await;
    let why = match brought {
        Some(Ok(_)) => return true,
        Some(Err(why)) => why.to_string(),
        None => format!("it took longer than {}", show::span(BRING_IN)),
    };
    out::note(&format!("what the sink knows is left there: {why}"));
    false
}

/// Everything that the route holds becomes pending; where the sink still answers it forgets it first, so
/// that nobody takes it there any more.
async fn give_back(rowlock: &Rowlock, name: &Name, declared: Option<&Route>) -> Result<u64> {
    let (routes, engine) = (rowlock.routes(), rowlock.engine());
    let mut sink = declared.and_then(|route| route.sink(rowlock.clock()).ok());
    let (mut after, mut back) = (None, 0);
    loop {
        let page = routes.sent(&holder(name), after, PAGE).await?;
        if page.is_empty() {
            return Ok(back);
        }
        after = page.last().map(|job| job.id);
        if let Some(open) = &sink
            && !forget(rowlock, &**open, &page).await
        {
            sink = None;
        }
        let releases = page.iter().map(|job| Settlement {
            id: job.id,
            token: job.token,
            verdict: Verdict::Release,
            started_at: None,
        });
        let settled = engine.settle(releases.collect()).await?;
        let moved = settled.iter().filter(|done| **done == Settled::Accepted);
        back += moved.count() as u64;
    }
}

/// Whether it did, in time.
async fn forget(rowlock: &Rowlock, sink: &dyn Sink, page: &[SentJob]) -> bool {
    let ids: Vec<_> = page.iter().map(|job| (job.id, job.token)).collect();
    let done = rowlock.clock().timeout(PATIENCE, sink.forget(&ids)).await;
    let why = match done {
        Some(Ok(())) => return true,
        Some(Err(why)) => why.to_string(),
        None => format!("it didn't answer for {}", show::span(PATIENCE)),
    };
    out::note(&format!("the sink is left as it is: {why}"));
    false
}

fn directly(row: &RouteRow) -> String {
    let count = row.kinds.len() + row.queues.len();
    let all = row.kinds.iter().map(|kind| format!("kind {kind}"));
    let all = all.chain(row.queues.iter().map(|queue| format!("queue {queue}")));
    match count {
        0 => "nothing goes by it".to_owned(),
        1 => format!("{} goes directly", all.collect::<String>()),
        _ => format!("{} go directly", all.collect::<Vec<_>>().join(", ")),
    }
}

fn jobs(count: u64) -> String {
    match count {
        1 => "1 job".to_owned(),
        many => format!("{} jobs", show::count(many)),
    }
}
