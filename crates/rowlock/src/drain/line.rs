//! A line: one route between a store and a sink, and the single steps that a drain takes on it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::{Options, Route, Sink};
use crate::claim::WorkerId;
use crate::clock::{Clock, Elapsed};
use crate::engine::{Applied, Engine, Routes};
use crate::error::{Error, Result};
use crate::event;
use crate::job::{JobId, Name, Token};
use crate::log;
use crate::reconcile::{Answers, Questions};
use crate::settle::{Settled, Settlement, until_written};
use crate::store::Rowlock;
use crate::verify::Ran;

/// One route, its store and its sink. Each step is whole in itself and may be taken by any number of
/// processes at once.
pub struct Line {
    pub(super) route: Name,
    pub(super) holder: WorkerId,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) rowlock: Rowlock,
    pub(super) routes: Arc<dyn Routes>,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) clock: Clock,
    pub(super) questions: Option<Arc<Questions>>,
    pub(super) answers: Option<Arc<Answers>>,
    pub(super) ran: Option<Ran>,
    pub(super) lease: Duration,
    pub(super) batch: usize,
    pub(super) ahead: usize,
    /// How many jobs waited in the sink when it was last told.
    pub(super) ready: AtomicUsize,
    /// How many jobs are sent at once: fewer after a push that failed.
    pub(super) pace: AtomicUsize,
    /// Something may have been lost: everything sent is asked about.
    pub(super) doubt: AtomicBool,
    /// Reports whose verdicts the store refuses: how often it did, and when they are tried again.
    pub(super) refused: Mutex<HashMap<(JobId, Token), (u32, Elapsed)>>,
    up: watch::Sender<bool>,
    /// Why the sink can't be used, as it was last said.
    away: Mutex<Option<String>>,
    store: OnceLock<u64>,
    #[cfg(feature = "test-hooks")]
    pub(super) highest: std::sync::atomic::AtomicI64,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Line").field(&self.route).finish()
    }
}

impl Line {
    /// Nothing is connected yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a sink that can't be used.
    pub fn new(rowlock: &Rowlock, route: &Route, options: &Options) -> Result<Self> {
        Ok(Self {
            route: route.name.clone(),
            holder: route.holder(),
            engine: rowlock.engine(),
            rowlock: rowlock.clone(),
            routes: rowlock.routes(),
            sink: route.sink(rowlock.clock())?,
            clock: rowlock.clock().clone(),
            questions: None,
            answers: None,
            ran: options.ran.clone(),
            lease: options.lease,
            batch: route.batch,
            ahead: route.ahead,
            ready: AtomicUsize::new(0),
            pace: AtomicUsize::new(route.batch),
            doubt: AtomicBool::new(true),
            refused: Mutex::default(),
            up: watch::channel(false).0,
            away: Mutex::default(),
            store: OnceLock::new(),
            #[cfg(feature = "test-hooks")]
            highest: Default::default(),
        })
    }

    /// Writes the route down where it isn't yet, and its first heartbeat.
    pub(super) async fn declare(&self, route: &Route) -> Result<()> {
        let declared = self
            .routes
            .declare_route(&route.name, &route.kinds, &route.queues, false)
            .await?;
        if let Applied::Changed(differences) = declared {
            log::warn!(
                route = %route.name,
                differences = differences.join(", "),
                "the kind table differs from this drain's declaration: the table rules, `rowlock apply` writes it"
            );
        }
        self.routes.keep_route(&self.holder, self.lease).await?;
        Ok(())
    }

    /// The longest that a push may take from the claim on: what isn't in the sink by then never comes.
    pub(super) fn patience(&self) -> Duration {
        self.lease / 6
    }

    /// Sees whether the sink is there. What it may have lost is asked about at the next
    /// [`adopt`](Self::adopt).
    ///
    /// # Errors
    /// Whatever the sink answers; the line is down until it opens.
    pub async fn open(&self) -> Result<()> {
        let store = match self.store.get() {
            Some(store) => *store,
            None => {
                let store = self.routes.store_id().await?;
                *self.store.get_or_init(|| store)
            }
        };
        match self.sink.open(store).await {
            Ok(fresh) => {
                if fresh {
                    self.doubt.store(true, Ordering::Relaxed);
                }
                let was_up = self.up.send_replace(true);
                *self.away.lock().unwrap_or_else(PoisonError::into_inner) = None;
                event::sink_up(&self.route, true);
                if !was_up {
                    log::info!(route = %self.route, "the sink is there");
                }
                Ok(())
            }
            Err(why) => Err(self.down(why)),
        }
    }

    /// Nothing is claimed until the sink opens again.
    pub(super) fn down(&self, why: Error) -> Error {
        self.up.send_replace(false);
        self.doubt.store(true, Ordering::Relaxed);
        let words = why.to_string();
        let mut last = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = last.as_ref() != Some(&words);
        *last = Some(words);
        drop(last);
        event::sink_up(&self.route, false);
        if is_new {
            log::warn!(route = %self.route, %why, "the sink can't be used, jobs wait in the store");
        }
        why
    }

    /// Waits until the sink is there.
    pub(super) async fn is_up(&self) {
        // The sender is this line's own.
        let _ = self.up.subscribe().wait_for(|up| *up).await;
    }

    /// Writes verdicts, for as long as that takes.
    pub(super) async fn settle(&self, verdicts: &[Settlement]) -> Vec<Settled> {
        match verdicts {
            [] => Vec::new(),
            some => {
                let written = until_written(&*self.engine, &self.clock, some).await;
                some.iter().zip(written).map(settled).collect()
            }
        }
    }
}

/// What no worker has said is said again when the sink is asked again.
fn settled((verdict, written): (&Settlement, Result<Settled>)) -> Settled {
    written.unwrap_or_else(|why| {
        let job = verdict.id;
        event::refused();
        log::error!(%job, %why, "the store refuses a verdict, the job stays with the route");
        Settled::LeaseLost
    })
}
