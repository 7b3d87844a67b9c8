//! A drain: every route's line, until it is asked to stop.

use std::sync::Arc;
use std::time::Duration;

use super::serve::{Serving, Tally};
use super::{Line, Route};
use crate::claim::WorkerId;
use crate::error::{Error, Result};
use crate::job::Name;
use crate::log;
use crate::reconcile::{self, Answers, Pair, Questions, Scheduler, Sources};
use crate::run::shift::host;
use crate::run::task::Tasks;
use crate::run::{Pulse, Signals, Stop, Stopper};
use crate::store::Rowlock;
use crate::verify::Ran;

/// How long a store that is busy at the start is waited for at a time.
const STORE_PAUSE: Duration = Duration::from_millis(500);
/// How long the last pushes and verdicts of a stopping drain may take.
const LAST_PUSHES: Duration = Duration::from_secs(10);

/// How a drain works.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long it takes to be missed. A push takes a sixth of it at most, so all drains of a route
    /// should have the same.
    pub lease: Duration,
    /// How often to look for due jobs when nothing rings.
    pub poll: Duration,
    /// Where it notes whether its heartbeat is answered: keep a clone to ask.
    pub pulse: Pulse,
    /// Where it writes down which verdicts were accepted, for [`verify`](crate::verify); none: nowhere.
    pub ran: Option<Ran>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            pulse: Pulse::default(),
            ran: None,
        }
    }
}

/// Sends due jobs on, and applies what becomes of them. Any number may run side by side.
#[derive(Debug)]
pub struct Drain {
    rowlock: Rowlock,
    routes: Vec<Route>,
    pairs: Vec<Pair>,
    options: Options,
}

/// What a drain did, told when it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drained {
    /// Jobs that were sent.
    pub sent: u64,
    /// Verdicts that were applied.
    pub settled: u64,
    /// Jobs that a sink had lost, and that went back to be sent again.
    pub lost: u64,
}

impl Drain {
    /// A drain without routes.
    #[must_use]
    pub fn new(rowlock: Rowlock) -> Self {
        Self {
            rowlock,
            routes: Vec::new(),
            pairs: Vec::new(),
            options: Options::default(),
        }
    }

    /// Drains a route.
    #[must_use]
    pub fn route(mut self, route: Route) -> Self {
        self.routes.push(route);
        self
    }

    /// Tells it of a pair whose rows are in another database, for the questions before and after.
    #[must_use]
    pub fn pair(mut self, pair: Pair) -> Self {
        self.pairs.push(pair);
        self
    }

    /// How it works.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Drains until SIGTERM or Ctrl-C.
    ///
    /// # Errors
    /// As [`Drain::run_until`].
    pub async fn run(self) -> Result<Drained> {
        let stopper = Stopper::default();
        let signals = Signals::listen()?;
        tokio::select! {
            done = self.run_until(stopper.stop()) => done,
            never = signals.ask(&stopper) => match never {},
        }
    }

    /// Drains until it is asked to stop.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) without routes or with one that can't be used, and
    /// whatever the store answers at the start. A sink that is away is waited for.
    pub async fn run_until(self, mut stop: Stop) -> Result<Drained> {
        if self.routes.is_empty() {
            return Err(Error::invalid("the drain has no routes"));
        }
        let (rowlock, options) = (&self.rowlock, &self.options);
        let clock = rowlock.clock().clone();
        let sources = Sources::new(&*rowlock.lead(), &self.pairs)?;
        let questions = Arc::new(Questions::new(rowlock, sources.clone()));
        let mut asking = Tasks::default();
        let answers = Arc::new(Answers::start(&mut asking, Arc::clone(&questions)));
        let stored = rowlock.schedule().pairs().await?;
        let derived = |kind: &Name| {
            let stored = stored.iter().map(|row| &row.pair.kind);
            stored
                .chain(self.pairs.iter().map(|pair| &pair.kind))
                .any(|of| of == kind)
        };
        let mut lines = Vec::with_capacity(self.routes.len());
        for route in &self.routes {
            route.check(derived)?;
            let mut line = Line::new(rowlock, route, options)?;
            line.questions = Some(Arc::clone(&questions));
            line.answers = Some(Arc::clone(&answers));
            if !declared(&line, route, &mut stop).await? {
                return Ok(Drained::default());
            }
            lines.push(Arc::new(line));
        }
        let holder = WorkerId::random(&host())?.to_string();
        let asked = Arc::clone(&questions);
        let mut scheduler = Scheduler::new(rowlock, sources, asked, holder, options.lease);
        let mut tasks = Tasks::default();
        let tally = Arc::new(Tally::default());
        for line in &lines {
            let serving = Serving {
                line: Arc::clone(line),
                tally: Arc::clone(&tally),
                options: options.clone(),
                stop: stop.clone(),
            };
            serving.start(&mut tasks);
        }
        tokio::select! {
            () = stop.asked() => {}
            () = scheduler.run() => {}
            () = reconcile::upkeep(rowlock.engine(), clock.clone(), options.lease) => {}
        }
        // What is under way comes to its end: its rows would wait for the next drain otherwise.
        if clock.timeout(LAST_PUSHES, tasks.join()).await.is_none() {
            log::warn!(
                "a sink or the store doesn't answer: the next drain asks the sink what it holds"
            );
        }
        if clock
            .timeout(LAST_PUSHES, scheduler.leave())
            .await
            .is_none()
        {
            log::warn!("posts were not given up, others wait for the lease");
        }
        options.pulse.left();
        Ok(tally.told())
    }
}

/// Waits for a store that is busy. Whether it came to that before it was time to stop.
async fn declared(line: &Line, route: &Route, stop: &mut Stop) -> Result<bool> {
    loop {
        match line.declare(route).await {
            Err(Error::Unavailable(why)) => {
                log::warn!(route = %route.name, why, "the drain waits for the store");
            }
            declared => return declared.map(|()| true),
        }
        tokio::select! {
            () = stop.asked() => return Ok(false),
            () = line.clock.sleep(STORE_PAUSE) => {}
        }
    }
}
