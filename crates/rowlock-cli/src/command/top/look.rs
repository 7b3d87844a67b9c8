//! One look at the store. It reads what is on the screen, and every other time the counts of its head,
//! so that a screen that stays open costs a server less than two statements a second.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rowlock::clock::Elapsed;
use rowlock::engine::{CronRow, PairRow, QueueRow, RouteRow, WorkerRow};
use rowlock::switch::Switch;
use rowlock::{Error, JobState, Record, Rowlock};

use super::panel::Panel;
use super::rate::Rates;
use super::state::View;
use crate::command::doctor::Finding;
use crate::open::{Access, Setup};
use crate::show;

/// How long a store may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// As many jobs as anybody pages through.
const JOBS: usize = 200;

/// Everything that was read last.
#[derive(Debug, Default)]
pub struct Seen {
    /// When, by the clock that the engine goes by: ages on the screen are of that moment.
    pub now: Timestamp,
    pub queues: Option<Vec<QueueRow>>,
    pub rates: Rates,
    pub switches: Vec<Switch>,
    pub workers: Option<Vec<WorkerRow>>,
    pub running: Option<Vec<Record>>,
    pub failed: Option<Vec<Record>>,
    pub pairs: Option<Vec<PairRow>>,
    pub crons: Option<Vec<CronRow>>,
    pub routes: Option<Vec<RouteRow>>,
    pub health: Option<Vec<Finding>>,
}

/// What a look reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Plan {
    queues: bool,
    switches: bool,
    workers: bool,
    running: bool,
    failed: bool,
    schedule: bool,
    routes: bool,
}

impl Plan {
    /// For a panel at its `turn`th look. The first one reads everything that the panel shows.
    pub fn of(panel: Panel, view: View, turn: u64) -> Self {
        let even = turn.is_multiple_of(2);
        let first = turn == 0;
        let mut plan = Self {
            queues: even || panel == Panel::Queues,
            ..Self::default()
        };
        match panel {
            Panel::Queues => plan.switches = even,
            Panel::Workers => (plan.workers, plan.running) = (true, true),
            Panel::Jobs => match view {
                View::Running => plan.running = true,
                // It reads the end of the history.
                View::Failed => plan.failed = !even || first,
            },
            Panel::Pairs => plan.schedule = !even || first,
            Panel::Routes => plan.routes = !even || first,
            Panel::Health => {}
        }
        plan
    }
}

/// An open store, and how far its clock is ahead of ours.
#[derive(Debug, Clone)]
pub struct Link {
    pub rowlock: Rowlock,
    ahead: SignedDuration,
}

impl Link {
    pub async fn open(setup: &Setup) -> anyhow::Result<Self> {
        let (rowlock, _) = setup.open_quietly(Access::Read).await?;
        Ok(Self::to(rowlock).await?)
    }

    /// A store that is open already.
    pub async fn to(rowlock: Rowlock) -> Result<Self, Error> {
        let (theirs, _) = rowlock.schedule().crons().await?;
        let ahead = rowlock.clock().now().duration_until(theirs);
        Ok(Self { rowlock, ahead })
    }

    /// What time it is for the engine.
    pub fn now(&self) -> Timestamp {
        let ours = self.rowlock.clock().now();
        ours.saturating_add(self.ahead).unwrap_or(ours)
    }
}

/// What came of a look. Without a link the next one opens the store anew.
#[derive(Debug)]
pub struct Looked {
    pub link: Option<Link>,
    pub found: Result<Found, String>,
}

/// What was read; nothing where nothing was asked for.
#[derive(Debug, Default)]
pub struct Found {
    now: Timestamp,
    at: Elapsed,
    queues: Option<Vec<QueueRow>>,
    switches: Option<Vec<Switch>>,
    workers: Option<Vec<WorkerRow>>,
    running: Option<Vec<Record>>,
    failed: Option<Vec<Record>>,
    pairs: Option<Vec<PairRow>>,
    crons: Option<Vec<CronRow>>,
    routes: Option<Vec<RouteRow>>,
}

impl Seen {
    /// Whether what a panel shows was never read.
    pub fn lacks(&self, panel: Panel, view: View) -> bool {
        match (panel, view) {
            (Panel::Queues, _) => self.queues.is_none(),
            (Panel::Workers, _) => self.workers.is_none(),
            (Panel::Jobs, View::Running) => self.running.is_none(),
            (Panel::Jobs, View::Failed) => self.failed.is_none(),
            (Panel::Pairs, _) => self.pairs.is_none(),
            (Panel::Routes, _) => self.routes.is_none(),
            (Panel::Health, _) => self.health.is_none(),
        }
    }

    /// Takes what was read; the rest stays as it was.
    pub fn take(&mut self, found: Found) {
        fn take<T>(old: &mut Option<T>, new: Option<T>) {
            if new.is_some() {
                *old = new;
            }
        }
        self.now = found.now;
        if let Some(rows) = &found.queues {
            self.rates.add(found.at, rows);
        }
        take(&mut self.queues, found.queues);
        self.switches = found.switches.unwrap_or(std::mem::take(&mut self.switches));
        take(&mut self.workers, found.workers);
        take(&mut self.running, found.running);
        take(&mut self.failed, found.failed);
        take(&mut self.pairs, found.pairs);
        take(&mut self.crons, found.crons);
        take(&mut self.routes, found.routes);
    }
}

/// Opens the store if it isn't, and looks.
pub async fn look(setup: &Setup, link: Option<Link>, plan: Plan) -> Looked {
    let clock = rowlock::Clock::system();
    let open = async {
        match link {
            Some(link) => Ok(link),
            None => Link::open(setup).await,
        }
    };
    let link = match clock.timeout(PATIENCE, open).await {
        Some(Ok(link)) => link,
        Some(Err(why)) => return Looked::failed(format!("{why:#}")),
        None => return Looked::failed(silent()),
    };
    match clock.timeout(PATIENCE, read(&link, plan)).await {
        Some(Ok(found)) => Looked {
            link: Some(link),
            found: Ok(found),
        },
        // Busy, and still the same store.
        Some(Err(why @ Error::Unavailable(_))) => Looked {
            link: Some(link),
            found: Err(why.to_string()),
        },
        Some(Err(why)) => Looked::failed(why.to_string()),
        None => Looked::failed(silent()),
    }
}

impl Looked {
    fn failed(why: String) -> Self {
        Self {
            link: None,
            found: Err(why),
        }
    }
}

fn silent() -> String {
    let time = show::span(PATIENCE);
    format!("the store didn't answer for {time}: is it reachable, is it overloaded?")
}

pub async fn read(link: &Link, plan: Plan) -> Result<Found, Error> {
    let (store, schedule) = (link.rowlock.operate(), link.rowlock.schedule());
    let mut found = Found::default();
    if plan.queues {
        found.queues = Some(store.queues().await?);
        found.at = link.rowlock.clock().elapsed();
    }
    if plan.switches {
        found.switches = Some(schedule.switches().await?);
    }
    if plan.workers {
        found.workers = Some(store.workers().await?);
    }
    if plan.running {
        found.running = Some(store.running(JOBS).await?);
    }
    if plan.failed {
        found.failed = Some(store.ended(JobState::Failed, JOBS).await?);
    }
    if plan.schedule {
        found.pairs = Some(schedule.pairs().await?);
        found.crons = Some(schedule.crons().await?.1);
    }
    if plan.routes {
        found.routes = Some(link.rowlock.routes().routes().await?);
    }
    found.now = link.now();
    Ok(found)
}
