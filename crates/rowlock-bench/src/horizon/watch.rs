//! What is seen while the load runs: the horizon by the guard, dead rows by the server, claims by the worker.

use std::time::Duration;

use anyhow::{Result, ensure};
use rowlock::guard::{Guard, Policy, Seen, What};
use rowlock::{Clock, Rowlock};

use super::load::Load;
use crate::measurement::percentile;
use crate::recorder::{Times, take};
use crate::server::{Server, Session};
use crate::stopwatch::Stopwatch;

/// One look.
#[derive(Debug, Clone, Default)]
pub(super) struct Moment {
    /// Seconds since the beginning.
    pub(super) at: f64,
    /// How old the oldest transaction is that the guard names, in seconds.
    pub(super) age: f64,
    /// How many transactions have begun since the oldest that is held.
    pub(super) behind: f64,
    /// Dead rows that a VACUUM just now could not remove: of the application's table and of the catalogue.
    pub(super) dead: f64,
    pub(super) catalogue: f64,
    /// Dead rows of our own tables, as counted.
    pub(super) ours: f64,
    /// Jobs that wait.
    pub(super) backlog: f64,
    pub(super) claims: Vec<f64>,
    /// Bytes of the log that a slot keeps.
    pub(super) log: f64,
}

impl Moment {
    pub(super) fn line(&self) -> String {
        format!(
            "{:>5.0} s: horizon {:.1} s, {:.0} transactions old; {:.0} dead orders, {:.0} of ours, {:.0} of the \
             catalogue; {:.0} wait, claim p99 {:.2} ms",
            self.at,
            self.age,
            self.behind,
            self.dead,
            self.ours,
            self.catalogue,
            self.backlog,
            percentile(&self.claims, 0.99)
        )
    }
}

pub(super) struct Watch<'a> {
    server: &'a Server,
    session: Session,
    guard: Guard,
    rowlock: Rowlock,
    times: &'a Times,
    clock: Stopwatch,
    pub(super) seen: Vec<Moment>,
    /// Everything that the guard named.
    pub(super) named: Vec<Seen>,
}

impl<'a> Watch<'a> {
    pub(super) async fn new(server: &'a Server, load: &Load, times: &'a Times) -> Result<Self> {
        drop(take(times));
        Ok(Self {
            server,
            session: server.session().await?,
            guard: Guard::new(&load.rowlock, Policy::default()),
            rowlock: load.rowlock.clone(),
            times,
            clock: Stopwatch::start(),
            seen: Vec::new(),
            named: Vec::new(),
        })
    }

    /// Looks so often for so long.
    pub(super) async fn run(
        &mut self,
        load: &Load,
        time: Duration,
        every: Duration,
        say: crate::Progress<'_>,
    ) -> Result<()> {
        let until = self.clock.elapsed() + time;
        while self.clock.elapsed() < until {
            Clock::system().sleep(every).await;
            load.check()?;
            let line = self.look().await?.line();
            say(&line);
        }
        Ok(())
    }

    async fn look(&mut self) -> Result<&Moment> {
        let named = self.guard.look().await?;
        // What is left after it is what can't be removed.
        for table in ["public.orders", "pg_catalog.pg_attribute"] {
            self.session
                .client
                .batch_execute(&format!("VACUUM {table}"))
                .await?;
        }
        let text = self
            .server
            .put(include_str!("look.sql"))
            .replace("'bench'", &format!("'{}'", self.server.schema));
        let row = self.session.client.query_one(&text, &[]).await?;
        #[expect(clippy::cast_precision_loss, reason = "figures for people")]
        let number = |at: usize| row.get::<_, i64>(at) as f64;
        // Statements of our own take milliseconds.
        let others = || {
            named
                .iter()
                .filter(|each| each.judged.spared != Some(rowlock::guard::Spared::Ours))
        };
        let ages = others().filter_map(|each| each.judged.pin.age);
        let behind = others().map(|each| each.judged.pin.transactions).max();
        #[expect(clippy::cast_precision_loss, reason = "figures for people")]
        let moment = Moment {
            at: self.clock.elapsed().as_secs_f64(),
            age: ages.max().unwrap_or_default().as_secs_f64(),
            behind: behind.unwrap_or(0) as f64,
            dead: number(0),
            ours: number(1),
            catalogue: number(2),
            log: number(3),
            backlog: self.rowlock.operate().stats().await?.total.pending as f64,
            claims: take(self.times),
        };
        self.seen.push(moment);
        self.named.extend(named);
        self.seen
            .last()
            .ok_or_else(|| anyhow::anyhow!("it was just added"))
    }

    /// The guard has named a session with its process, its class and its age.
    pub(super) fn ensure_session(&self, pid: i32, class: &str) -> Result<()> {
        let is_it = |each: &&Seen| {
            let (judged, pin) = (&each.judged, &each.judged.pin);
            pin.pid == Some(pid)
                && judged.class.as_ref().is_some_and(|of| of.as_str() == class)
                && pin.age.is_some_and(|age| !age.is_zero())
        };
        let found = self.named.iter().find(is_it).is_some();
        ensure!(
            found,
            "the guard never named process {pid} of class {class} with its age"
        );
        Ok(())
    }

    /// The guard has named something that isn't a session.
    pub(super) fn ensure_named(&self, what: What, name: &str) -> Result<()> {
        let is_it = |each: &Seen| {
            let pin = &each.judged.pin;
            pin.what == what && pin.name.as_deref() == Some(name) && pin.transactions > 0
        };
        ensure!(
            self.named.iter().any(is_it),
            "the guard never named {} {name}",
            what.as_str()
        );
        Ok(())
    }
}
